package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// node is a resource of a program.
type node struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Properties are its inputs without the links.
	Properties map[string]any `json:"properties"`
	// Needs are the nodes that it links to, all before it.
	Needs []string `json:"needs"`
}

// kinds of the fake provider: named by the program, by autonaming, and by the server; the last cannot be found again.
const (
	named  = "fake:index:Named"
	auto   = "fake:index:Auto"
	tagged = "fake:index:Tagged"
	server = "fake:index:Server"
	// The id of the one is a template, and a function finds the other.
	scoped = "fake:index:Scoped"
	filed  = "fake:index:Filed"
)

// findable tells the service how a create whose answer was lost is found again.
const findable = `{"` + named + `": {"read": "property:name"}, "` + auto + `": {"read": "property:name"}, "` + tagged +
	`": {"list": "property:settings.mark"}, "` + scoped + `": {"read": "${config:account}:${zone}:${name}"}, "` + filed +
	`": {"invoke": {"function": "fake:index:search", "args": {"mark": "${settings.mark}"}, "ids": "things[*].arn",
		"after": ":"}}}`

// graph makes a program such as people write: a few networks that everything stands in, layers upon them, many leaves.
func graph(r *rand.Rand, n int, types ...string) []node {
	nodes := make([]node, n)
	for i := range nodes {
		name := fmt.Sprintf("r%03d", i)
		at := &nodes[i]
		*at = node{Name: name, Type: types[r.IntN(len(types))], Needs: []string{},
			Properties: map[string]any{"size": 1 + r.IntN(5)}}
		switch at.Type {
		case named:
			at.Properties["name"] = "the-" + name
		case tagged, filed:
			at.Properties["settings"] = map[string]any{"mark": "the-" + name}
		}
		roots := max(1, n/20)
		if i < roots {
			continue
		}
		at.Needs = append(at.Needs, nodes[r.IntN(roots)].Name)
		for range r.IntN(3) {
			if need := nodes[max(0, i-40)+r.IntN(min(i, 40))].Name; !slices.Contains(at.Needs, need) {
				at.Needs = append(at.Needs, need)
			}
		}
	}
	return nodes
}

// write writes the program in a language, "yaml" or "nodejs", as a project.
func write(dir, project, language string, nodes []node) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	put := func(name, text string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	if language == "nodejs" {
		graph, err := json.Marshal(nodes)
		return errors.Join(err, put("graph.json", string(graph)), put("index.js", nodeProgram),
			put("package.json", `{"name": "`+project+`", "private": true, "main": "index.js", "dependencies": {"@pulumi/pulumi": "3.248.0"}}`),
			put("Pulumi.yaml", "name: "+project+"\nruntime: nodejs\n"))
	}
	var text strings.Builder
	fmt.Fprintf(&text, "name: %s\nruntime: yaml\nresources:\n", project)
	for _, n := range nodes {
		inputs, err := json.Marshal(n.inputs())
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "  %s:\n    type: %s\n    properties: %s\n", n.Name, n.Type, inputs)
	}
	return put("Pulumi.yaml", text.String())
}

// inputs are those of a resource in a program of YAML, with links to what it needs.
func (n node) inputs() map[string]any {
	properties := map[string]any{}
	maps.Copy(properties, n.Properties)
	links := make([]string, 0, len(n.Needs))
	for _, need := range n.Needs {
		links = append(links, "${"+need+".arn}")
	}
	properties["links"] = links
	return properties
}

const nodeProgram = `const pulumi = require("@pulumi/pulumi");
const made = {};
for (const r of require("./graph.json")) {
  const links = r.needs.map((name) => made[name].arn);
  made[r.name] = new pulumi.CustomResource(r.type, r.name,
    { ...r.properties, links, arn: undefined }, { version: "0.1.0" });
}
`
