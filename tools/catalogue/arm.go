package main

import (
	"regexp"
	"slices"
	"strings"
)

// importedPath is imported for the paths of Azure Resource Manager. The casing of the documentation counts, because
// providers compare it.
func (f *file) importedPath(template string, r *resource) (string, fit) {
	paths := slices.DeleteFunc(slices.Clone(r.Imports), func(p string) bool { return !strings.HasPrefix(p, "/") })
	switch {
	case len(paths) == 0 && len(r.Imports) > 0 && template != "":
		return "", contradicts
	case len(paths) == 0:
		return "", silent
	case template == "":
		return fromPath(paths[0], r), silent
	}
	for _, p := range paths {
		if form, ok := spelledAs(template, p); ok {
			return form, confirms
		}
	}
	return "", contradicts
}

// spelledAs returns a template with the literals of a path that it matches but for their casing.
func spelledAs(template, path string) (string, bool) {
	var form strings.Builder
	at := 0
	form.WriteString("(?i)^")
	for _, m := range variable.FindAllStringSubmatchIndex(template, -1) {
		form.WriteString("(" + regexp.QuoteMeta(template[at:m[0]]) + ")")
		if name := template[m[2]:m[3]]; strings.HasSuffix(name, "_id") && !strings.HasSuffix(name, "subscription_id") {
			form.WriteString("(?:/.+)")
		} else {
			form.WriteString("(?:[^/]+)")
		}
		at = m[1]
	}
	form.WriteString("(" + regexp.QuoteMeta(template[at:]) + ")$")
	literals := regexp.MustCompile(form.String()).FindStringSubmatch(path)
	if literals == nil {
		return "", false
	}
	var out strings.Builder
	for i, m := range variable.FindAllString(template, -1) {
		out.WriteString(literals[i+1] + m)
	}
	return out.String() + literals[len(literals)-1], true
}

// fromPath makes a template from an example of a path: the name of each part must be one input without doubt. It
// returns "" if one is not.
func fromPath(path string, r *resource) string {
	const start, subscription = "/subscriptions/", "${value:subscription}"
	parts := strings.Split(path, "/")
	if !strings.HasPrefix(path, start) || len(parts)%2 == 0 || len(parts) < 9 || parts[5] != "providers" {
		return ""
	}
	if parts[3] != "resourceGroups" || r.Inputs["resourceGroupName"].Kind != "string" ||
		r.Inputs["name"].Kind != "string" {
		return ""
	}
	parts[2], parts[4] = subscription, "${resource_group_name}"
	for i := 8; i < len(parts); i += 2 {
		kind := parts[i-1]
		switch last := i == len(parts)-1; {
		case last:
			parts[i] = "${name}"
		case parts[i] == "default":
		default:
			parent := strings.TrimSuffix(kind, "s") + "Name"
			if r.Inputs[parent].Kind != "string" {
				return ""
			}
			parts[i] = "${" + snake(parent) + "}"
		}
	}
	return strings.Join(parts, "/")
}

var capital = regexp.MustCompile(`[A-Z]`)

// snake is the inverse of camel.
func snake(name string) string {
	return capital.ReplaceAllStringFunc(name, func(c string) string { return "_" + strings.ToLower(c) })
}
