package languages

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Two resources that need each other: the second links to the first, and the first gets a link to the second by a
// binding. The name of the second is configuration, and so is whether there is the binding.
const (
	boundInYAML = `
name: bound
runtime: yaml
config:
  name: {type: string, default: one}
resources:
  first:
    type: fake:index:Named
    properties: {name: first}
  second:
    type: fake:index:Named
    properties: {name: "${name}", links: ["${first.arn}"]}
`
	bindingInYAML = `  firstKnowsSecond:
    type: deployctl:index:Binding
    properties:
      resource: ${first.urn}
      inputs: {links: ["${second.arn}"]}
`
	boundInNode = `
import * as pulumi from "@pulumi/pulumi";

class Named extends pulumi.CustomResource {
    declare readonly arn: pulumi.Output<string>;
    constructor(label: string, name: string, links: pulumi.Input<string>[]) {
        super("fake:index:Named", label, { name, links, arn: undefined }, { version: "0.1.0" });
    }
}

class Binding extends pulumi.CustomResource {
    constructor(name: string, args: { resource: pulumi.Input<string>; inputs: pulumi.Inputs }) {
        super("deployctl:index:Binding", name, args);
    }
}

const config = new pulumi.Config();
const first = new Named("first", "first", []);
const second = new Named("second", config.get("name") ?? "one", [first.arn]);
if (config.get("bound") !== "no") {
    new Binding("firstKnowsSecond", { resource: first.urn, inputs: { links: [second.arn] } });
}
`
	boundInGo = `
package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

type named struct {
	pulumi.CustomResourceState
	Arn pulumi.StringOutput ` + "`pulumi:\"arn\"`" + `
}

func make(ctx *pulumi.Context, label, name string, links pulumi.StringArray) (*named, error) {
	var n named
	inputs := pulumi.Map{"name": pulumi.String(name), "links": links}
	return &n, ctx.RegisterResource("fake:index:Named", label, inputs, &n, pulumi.Version("0.1.0"))
}

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		first, err := make(ctx, "first", "first", pulumi.StringArray{})
		if err != nil {
			return err
		}
		name := config.Get(ctx, "name")
		if name == "" {
			name = "one"
		}
		second, err := make(ctx, "second", name, pulumi.StringArray{first.Arn})
		if err != nil || config.Get(ctx, "bound") == "no" {
			return err
		}
		var binding pulumi.CustomResourceState
		return ctx.RegisterResource("deployctl:index:Binding", "firstKnowsSecond", pulumi.Map{
			"resource": first.URN(),
			"inputs":   pulumi.Map{"links": pulumi.StringArray{second.Arn}},
		}, &binding)
	})
}
`
)

// bindingLives plays the life of a binding. Unbound takes it out of the program.
func bindingLives(t *testing.T, p *harness.Tool, unbound func()) {
	t.Helper()
	// The first, the second, the binding and the stack; and the first once more.
	p.Expect(t, harness.Changes{"create": 4, "update": 1}, "up")
	links := func(want ...string) {
		t.Helper()
		if got := linksOf(t, p, "first"); !slices.Equal(got, want) {
			t.Errorf("the first links to %q, not to %q", got, want)
		}
	}
	links(arnOf(t, p, "second"))
	p.Expect(t, harness.Changes{"same": 4}, "up")
	p.Expect(t, harness.Changes{"same": 4}, "preview")
	p.Expect(t, harness.Changes{"same": 4}, "refresh")

	p.Must(t, "config", "set", "name", "two") // which replaces the second
	before := linksOf(t, p, "first")
	p.Expect(t, harness.Changes{"replace": 1, "update": 2, "same": 2}, "up")
	if links(arnOf(t, p, "second")); slices.Equal(before, linksOf(t, p, "first")) {
		t.Error("the second was replaced, and the first links to it as before")
	}
	p.Expect(t, harness.Changes{"same": 4}, "up")

	unbound()
	p.Expect(t, harness.Changes{"update": 1, "delete": 1, "same": 3}, "up")
	links()
	p.Expect(t, harness.Changes{"same": 3}, "up")
	p.Expect(t, harness.Changes{"delete": 3}, "destroy")
}

// stored returns the state of a resource.
func stored(t *testing.T, p *harness.Tool, name string) apitype.ResourceV3 {
	t.Helper()
	var state struct{ Deployment apitype.DeploymentV3 }
	harness.Must(t, json.Unmarshal([]byte(p.Must(t, "stack", "export")), &state))
	i := slices.IndexFunc(state.Deployment.Resources, func(r apitype.ResourceV3) bool { return r.URN.Name() == name })
	if i < 0 {
		t.Fatalf("the state has no %s", name)
	}
	return state.Deployment.Resources[i]
}

func linksOf(t *testing.T, p *harness.Tool, name string) (links []string) {
	t.Helper()
	list, _ := stored(t, p, name).Outputs["links"].([]any)
	for _, l := range list {
		links = append(links, l.(string))
	}
	return links
}

func arnOf(t *testing.T, p *harness.Tool, name string) string {
	t.Helper()
	return stored(t, p, name).Outputs["arn"].(string)
}

func yamlBindingLives(t *testing.T, h *harness.Home) {
	_, env := harness.Cloud(t)
	dir := t.TempDir()
	harness.Files{"Pulumi.yaml": boundInYAML + bindingInYAML}.Write(t, dir)
	p := h.Deployctl(dir, env)
	p.Must(t, "stack", "init", "dev")
	bindingLives(t, p, func() { harness.Files{"Pulumi.yaml": boundInYAML}.Write(t, dir) })
}

// programBindingLives is the same for programs that ask their configuration whether there is the binding.
func programBindingLives(t *testing.T, h *harness.Home, dir string) {
	_, env := harness.Cloud(t)
	p := h.Deployctl(dir, env)
	useStack(t, p)
	bindingLives(t, p, func() { p.Must(t, "config", "set", "bound", "no") })
}
