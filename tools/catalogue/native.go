package main

import (
	"maps"
	"slices"
	"strings"
)

// generateAzure makes the rules of azure-native from the paths of resources, which the documentation of the bridged
// provider shows, and from the arguments of the functions that get a resource: these are the variables of its path. A
// type has a rule if one path alone fits it, and its arguments the parts of that path.
func (f *file) generateAzure(bridged *sdk) {
	paths := armPaths(bridged)
	for _, token := range slices.Sorted(maps.Keys(f.sdk.Resources)) {
		if f.curated[token] {
			continue
		}
		pkg, name := token[:strings.LastIndex(token, ":")], token[strings.LastIndex(token, ":")+1:]
		get := f.sdk.Functions[pkg+":get"+name]
		if get == nil {
			f.Left[token] = "no function gets it by the parts of its path"
			continue
		}
		var args, found []string
		for arg, in := range get.Inputs {
			if in.Required && arg != "resourceGroupName" {
				args = append(args, arg)
			}
		}
		slices.Sort(args)
		module := strings.TrimPrefix(pkg, "azure-native:")
		for _, p := range paths {
			if t, ok := assigned(p, module, name, args); ok {
				found = append(found, t)
			}
		}
		if slices.Sort(found); len(slices.Compact(found)) != 1 || !get.Inputs["resourceGroupName"].Required {
			f.Left[token] = "no path, or more than one, fits it"
			continue
		}
		f.add(token, token, entry{Rules: []rule{{Read: found[0], Confidence: "medium", Source: "documentation + functions"}}})
	}
}

// armPaths returns the paths below a resource group that documentation shows, in parts: the namespace, and then types
// and names in turn.
func armPaths(s *sdk) [][]string {
	seen := map[string][]string{}
	for _, r := range s.Resources {
		for _, i := range r.Imports {
			parts := strings.Split(i, "/")
			if len(parts) < 9 || len(parts)%2 == 0 || parts[3] != "resourceGroups" || parts[5] != "providers" {
				continue
			}
			key := parts[6]
			for n := 7; n < len(parts); n += 2 {
				key += "/" + parts[n]
				if parts[n+1] == "default" {
					key += "=default"
				}
			}
			seen[strings.ToLower(key)] = parts[6:]
		}
	}
	var all [][]string
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, seen[key])
	}
	return all
}

// assigned returns the template of a path for a type whose name ends with the path's last type, if each argument
// belongs to one of its names without doubt.
func assigned(path []string, module, name string, args []string) (string, bool) {
	namespace := strings.ToLower(path[0][strings.Index(path[0], ".")+1:])
	last := stem(path[len(path)-2])
	before, ok := strings.CutSuffix(strings.ToLower(name), last)
	parent := namespace
	if len(path) > 4 {
		parent = strings.ToLower(path[len(path)-4])
	}
	if namespace != module || !ok || !strings.HasPrefix(parent, before) && !strings.HasPrefix(namespace, before) {
		return "", false
	}
	template := "/subscriptions/${value:subscription}/resourceGroups/${resourceGroupName}/providers/" + path[0]
	left := slices.Clone(args)
	for i := 1; i < len(path); i += 2 {
		template += "/" + path[i] + "/"
		if path[i+1] == "default" {
			template += "default"
			continue
		}
		fitting := slices.DeleteFunc(slices.Clone(left), func(a string) bool {
			part, of := strings.ToLower(strings.TrimSuffix(a, "Name")), stem(path[i])
			return !strings.HasSuffix(of, part) && !strings.HasSuffix(part, of)
		})
		if len(fitting) == 0 && len(left) == 1 {
			fitting = left
		}
		if len(fitting) != 1 {
			return "", false
		}
		template += "${" + fitting[0] + "}"
		left = slices.DeleteFunc(left, func(a string) bool { return a == fitting[0] })
	}
	return template, len(left) == 0
}

// stem returns the singular of the name of a type, in lower case.
func stem(plural string) string {
	s := strings.ToLower(plural)
	switch {
	case strings.HasSuffix(s, "ies"):
		return strings.TrimSuffix(s, "ies") + "y"
	case strings.HasSuffix(s, "sses"), strings.HasSuffix(s, "xes"):
		return strings.TrimSuffix(s, "es")
	}
	return strings.TrimSuffix(s, "s")
}

// generateCloudControl makes the rules of aws-native from the table of CloudFormation's schemas.
func (f *file) generateCloudControl(path string) error {
	rows, err := readTable(path)
	if err != nil {
		return err
	}
	tokens := map[string]string{}
	for token := range f.sdk.Resources {
		tokens[strings.ToLower(token)] = token
	}
	for _, row := range rows {
		cfn := strings.Split(row[0], "::")
		if len(row) < 6 || len(cfn) != 3 {
			continue
		}
		token := tokens[strings.ToLower("aws-native:"+cfn[1]+":"+cfn[2])]
		if token == "" || f.curated[token] {
			continue
		}
		one, why := cloudControl(f.sdk.Resources[token], row)
		if why != "" {
			f.Left[token] = why
			continue
		}
		f.add(token, token, entry{Rules: []rule{one}})
	}
	for token := range f.sdk.Resources {
		if _, ok := f.Left[token]; !ok && !f.hasRule(token) {
			f.Left[token] = "no source says where its id comes from"
		}
	}
	return nil
}

// cloudControl makes the rule of one row. An id that the server assigns is looked for in the list of the type, by its
// name.
func cloudControl(r *resource, row []string) (rule, string) {
	inputs := map[string]string{}
	for name := range r.Inputs {
		inputs[strings.ToLower(name)] = name
	}
	var parts []string
	for _, p := range strings.Fields(row[2]) {
		name, ok := inputs[strings.ToLower(strings.TrimPrefix(p, "/properties/"))]
		if ok && !strings.Contains(strings.TrimPrefix(p, "/properties/"), "/") {
			parts = append(parts, "${"+name+"}")
		}
	}
	if strings.HasPrefix(row[1], "A") {
		if len(parts) != len(strings.Fields(row[2])) {
			return rule{}, "a part of its id is no input"
		}
		return rule{Read: strings.Join(parts, "|"), Confidence: "medium", Source: "cloudformation"}, ""
	}
	if row[3] != "True" || row[5] != "" || r.Inputs["name"].Kind != "string" {
		return rule{}, "its service assigns the id"
	}
	return rule{List: map[string]any{"match": map[string]string{"name": "${name}"}}, Pause: "10s",
		Confidence: "medium", Source: "cloudformation"}, ""
}
