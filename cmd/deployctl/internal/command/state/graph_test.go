package state

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
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

// box is where a drawing has a resource.
type box struct{ x, y, width float64 }

// boxes reads the drawing, which must be XML, and returns the boxes by the name in them and the number of arrows.
func boxes(t *testing.T, drawn string) (found map[string]box, arrows int) {
	t.Helper()
	found = map[string]box{}
	var at box
	decoder := xml.NewDecoder(strings.NewReader(drawn))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found, arrows
		}
		if err != nil {
			t.Fatalf("the drawing is no XML: %v\n%s", err, drawn)
		}
		start, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case start.Name.Local == "path":
			arrows++
		case start.Name.Local == "g":
			_, err = fmt.Sscanf(start.Attr[0].Value, "translate(%f %f)", &at.x, &at.y)
		case start.Name.Local == "rect":
			_, err = fmt.Sscan(start.Attr[0].Value, &at.width)
		case start.Name.Local == "text" && len(start.Attr) == 2: // without a class: the name
			var name string
			if err = decoder.DecodeElement(&name, &start); err == nil {
				found[name] = at
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestADrawingHasEachResourceToTheRightOfWhatItDependsOn(t *testing.T) {
	of := func(name string, parent urn.URN, needs ...resource.URN) apitype.ResourceV3 {
		return apitype.ResourceV3{URN: urn.URN("urn:pulumi:dev::shop::a:b:C::" + name), Type: "a:b:C", Parent: parent,
			Dependencies: needs}
	}
	root := of("root", "")
	net, evil := of("net", root.URN), of(`<script>"&`+"\x1b[2J", root.URN)
	web := of("web", root.URN, net.URN, net.URN)
	old := of("net", root.URN)
	old.Delete = true
	g := graph{dependencies: `"><script>`, parents: "#AA6639",
		resources: []apitype.ResourceV3{root, net, evil, web, old}}
	var out strings.Builder
	if err := g.draw(&out); err != nil {
		t.Fatal(err)
	}
	found, arrows := boxes(t, out.String())
	if len(found) != 5 || arrows != 5 || strings.Contains(out.String(), "<script") ||
		strings.Contains(out.String(), "\x1b") {
		t.Errorf("it has %d boxes and %d arrows:\n%s", len(found), arrows, out.String())
	}
	for _, pair := range [][2]string{{"root", "net"}, {"net", "web"}, {"root", "net (deleting)"}} {
		if from, to := found[pair[0]], found[pair[1]]; from.x+from.width > to.x {
			t.Errorf("%s is at %v, and %s at %v", pair[0], from, pair[1], to)
		}
	}
	for a, one := range found {
		for b, other := range found {
			if a != b && one.x == other.x && one.y == other.y {
				t.Errorf("%s and %s are in one place", a, b)
			}
		}
	}
}
