package main

import (
	"embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

//go:embed curated
var written embed.FS

// curated is what was written by hand about a package.
type curated struct {
	Package, Terraform, NPM, Versions string
	Source                            string // of types, if it is one for all
	Sources                           []source
	Values                            map[string][]any
	Functions, Bind                   map[string]string
	Tagged, Listed                    map[string]finder
	Rules                             []rule
	Types                             map[string]yaml.Node
	Placeholders                      bool              // the documentation has forms of ids such as <zone_id>/<hostname>
	Wrong                             map[string]string // types whose rules would be wrong, and why
	Needs                             map[string]string // what a program must set so that a rule can be used, by token
	Popular                           string
}

// finder finds what bears a mark by a function of the provider.
type finder struct {
	Service, After, Region string
	Function, IDs          string
	Args                   map[string]any
}

const markKey = "deployctl-mark"

// tagged finds a resource of AWS by the tagging API, which answers with ARNs.
func (f finder) tagged(functions map[string]string) rule {
	args := map[string]any{
		"tagFilters":          []any{map[string]any{"key": markKey, "values": []string{"${mark}"}}},
		"resourceTypeFilters": []string{f.Service},
	}
	if f.Region != "" {
		args["region"] = f.Region
	}
	i := map[string]any{"function": functions["aws_resourcegroupstaggingapi_resources"], "args": args,
		"ids": "resourceTagMappingLists[*].resourceArn"}
	if f.After != "" {
		i["after"] = f.After
	}
	return rule{Invoke: i, Mark: "tags." + markKey, Pause: "15s", Confidence: "medium", Source: "hand"}
}

// listed finds a resource of AWS by a function that filters by tags.
func (f finder) listed(functions map[string]string) rule {
	args := map[string]any{"tags": map[string]any{markKey: "${mark}"}}
	if f.Function == "aws_instances" {
		args = map[string]any{"instanceTags": args["tags"]}
	}
	maps.Copy(args, f.Args)
	return rule{Invoke: map[string]any{"function": functions[f.Function], "args": args, "ids": f.IDs},
		Mark: "tags." + markKey, Pause: "10s", Confidence: "medium", Source: "hand"}
}

// readCurated reads what was written by hand.
func readCurated() ([]curated, error) {
	var all []curated
	for _, name := range []string{"aws", "gcp", "azure", "native", "others"} {
		data, err := written.ReadFile("curated/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		var list []curated
		if strings.Contains(string(data), "\n- package:") {
			err = yaml.Unmarshal(data, &list)
		} else {
			list = make([]curated, 1)
			err = yaml.Unmarshal(data, &list[0])
		}
		if err != nil {
			return nil, fmt.Errorf("%s.yaml: %w", name, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// rules returns the rules of each type that were written by hand, by its key.
func (c *curated) rules() (map[string][]rule, error) {
	all := map[string][]rule{}
	for _, key := range slices.Sorted(maps.Keys(c.Types)) {
		node := c.Types[key]
		one, err := decodeRules(&node)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", c.Package, key, err)
		}
		if c.Terraform == "" {
			key = c.Package + ":" + key
		}
		all[key] = one
	}
	for tf, f := range c.Tagged {
		all[tf] = append(all[tf], f.tagged(c.Functions))
	}
	for tf, f := range c.Listed {
		all[tf] = append(all[tf], f.listed(c.Functions))
	}
	for key := range all {
		for i := range all[key] {
			if all[key][i].Source == "" {
				all[key][i].Confidence, all[key][i].Source = "medium", "hand"
			}
		}
	}
	return all, nil
}

// decodeRules reads a template, or an object with rules.
func decodeRules(node *yaml.Node) ([]rule, error) {
	var template string
	if node.Decode(&template) == nil {
		return []rule{{Read: template}}, nil
	}
	var many struct{ Rules []rule }
	if node.Decode(&many) == nil {
		return many.Rules, nil
	}
	var one struct{ Rules rule }
	err := node.Decode(&one)
	return []rule{one.Rules}, err
}

var angles = regexp.MustCompile(`<([a-z0-9_]+)>`)

// placeholders makes rules of documentation that shows forms of ids such as <zone_id>/<hostname>.
func (f *file) placeholders() {
	for token, r := range f.sdk.Resources {
		if f.curated[token] || len(r.Imports) != 1 || strings.ContainsAny(r.Imports[0], "{|") {
			continue
		}
		template := angles.ReplaceAllStringFunc(r.Imports[0], func(s string) string {
			return "${" + camel(strings.Trim(s, "<>")) + "}"
		})
		if strings.Contains(template, "$") {
			one := rule{Read: template, Confidence: "medium", Source: "documentation"}
			f.add(token, token, entry{Rules: []rule{one}})
		}
	}
}
