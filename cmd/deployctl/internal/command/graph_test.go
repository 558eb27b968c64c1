package command

import (
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

func TestAGraphHasTheResourcesTheirDependenciesAndParents(t *testing.T) {
	const root, net, web = urn.URN("urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"),
		urn.URN("urn:pulumi:dev::shop::a:b:Net::net"), urn.URN(`urn:pulumi:dev::shop::a:b:Web::we"b`)
	g := graph{dependencies: "green", parents: "red", fragment: "rankdir=LR", resources: []apitype.ResourceV3{
		{URN: root}, {URN: net, Parent: root},
		{URN: web, Parent: root, Dependencies: []resource.URN{net, net},
			PropertyDependencies: map[resource.PropertyKey][]resource.URN{"subnet": {net}, "zone": {net}}},
		{URN: net, Parent: root, Delete: true},
	}}
	for name, c := range map[string]struct {
		change func(*graph)
		has    []string
		lacks  []string
	}{
		"everything": {func(*graph) {}, []string{"strict digraph {\n    rankdir=LR\n", `r0 [label="` + string(root) +
			`"]`,
			`r0 -> r2 [color="red"]`, `r1 -> r2 [color="green", label="subnet, zone"]`, `::we\"b"]`,
			`::net (deleting)"]`}, nil},
		"without parents":      {func(g *graph) { g.parents = "" }, []string{"r1 -> r2"}, []string{"r0 -> "}},
		"without dependencies": {func(g *graph) { g.dependencies = "" }, []string{"r0 -> r2"}, []string{"r1 -> "}},
		"short names": {func(g *graph) { g.short = true }, []string{`r1 [label="net"]`, `r3 [label="net (deleting)"]`},
			[]string{"urn:"}},
	} {
		t.Run(name, func(t *testing.T) {
			drawn := g
			c.change(&drawn)
			var out strings.Builder
			if err := drawn.write(&out); err != nil {
				t.Fatal(err)
			}
			for _, text := range c.has {
				if !strings.Contains(out.String(), text) {
					t.Errorf("it does not have %s:\n%s", text, out.String())
				}
			}
			for _, text := range c.lacks {
				if strings.Contains(out.String(), text) {
					t.Errorf("it has %s:\n%s", text, out.String())
				}
			}
		})
	}
}
