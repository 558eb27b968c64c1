package state

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

// GraphCommand returns deployctl graph.
func GraphCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "graph", Usage: "draw the resources and their dependencies as a graph: SVG, or the DOT language",
		ArgsUsage: "[FILE]",
		Description: "An edge leads from a resource to one that depends on it, or to its child. The graph is written " +
			"to FILE, or to standard output. A FILE that ends in .svg is a drawing that a browser shows; any other is a " +
			"graph in the DOT language, for Graphviz.",
		Flags: console.OnStack(
			&cli.StringFlag{Name: "format", Usage: "`FORMAT` of the graph: dot or svg; not set: by the name of FILE"},
			&cli.BoolFlag{Name: "ignore-parent-edges", Usage: "leave out the edges from parents to children"},
			&cli.BoolFlag{Name: "ignore-dependency-edges", Usage: "leave out the edges of dependencies"},
			&cli.StringFlag{Name: "dependency-edge-color", Usage: "draw the edges of dependencies in `COLOR`",
				Value: "#246C60"},
			&cli.StringFlag{Name: "parent-edge-color", Usage: "draw the edges from parents to children in `COLOR`",
				Value: "#AA6639"},
			&cli.BoolFlag{Name: "short-node-name", Usage: "label resources with their names instead of their URNs"},
			&cli.StringFlag{Name: "dot-fragment", Usage: "add `DOT` to the beginning of the graph, such as " +
				"'node [shape=box]'"}),
		Action: console.Action(s, runGraph),
	}
}

func runGraph(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	list, err := s.Resources(ctx, info, false)
	if err != nil {
		return err
	}
	g := graph{
		resources: list, short: s.Flags.Bool("short-node-name"), fragment: s.Flags.String("dot-fragment"),
	}
	if !s.Flags.Bool("ignore-dependency-edges") {
		g.dependencies = s.Flags.String("dependency-edge-color")
	}
	if !s.Flags.Bool("ignore-parent-edges") {
		g.parents = s.Flags.String("parent-edge-color")
	}
	path := s.Flags.Args().First()
	write, err := g.writer(s.Flags.String("format"), path)
	if err != nil {
		return err
	}
	if path == "" || path == "-" {
		return write(s.Out)
	}
	file, err := os.Create(s.Path(path))
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// graph is a graph of resources.
type graph struct {
	resources []apitype.ResourceV3
	// dependencies and parents are the colours of their edges; without a colour, they are left out.
	dependencies, parents string
	short                 bool   // labels are names
	fragment              string // DOT that is added as it is
}

// writer returns what writes the graph in a format, which the name of the file decides if it is not given.
func (g graph) writer(format, path string) (func(io.Writer) error, error) {
	if format == "" && strings.EqualFold(filepath.Ext(path), ".svg") {
		format = "svg"
	}
	switch format {
	case "svg":
		return g.draw, nil
	case "", "dot":
		return g.write, nil
	}
	return nil, deployments.Errorf(deployments.CodeInvalid, "--format takes dot or svg, not %q", format)
}

// write writes the graph in the DOT language. Nodes are numbered, because several copies may have one URN; an edge
// starts at the last copy before the resource, which the reference is about.
func (g graph) write(to io.Writer) error {
	w := bufio.NewWriter(to)
	_, _ = fmt.Fprintln(w, "strict digraph {") // Flush returns the first error
	if g.fragment != "" {
		_, _ = fmt.Fprintf(w, "    %s\n", g.fragment)
	}
	nodes := map[urn.URN]int{}
	for i, r := range g.resources {
		_, _ = fmt.Fprintf(w, "    r%d [label=%s];\n", i, dotText(g.label(r)))
		for _, e := range g.edges(nodes, i) {
			label := ""
			if e.label != "" {
				label = ", label=" + dotText(e.label)
			}
			_, _ = fmt.Fprintf(w, "    r%d -> r%d [color=%s%s];\n", e.from, i, dotText(e.color), label)
		}
		nodes[r.URN] = i
	}
	_, _ = fmt.Fprintln(w, "}")
	return w.Flush()
}

// edge leads to a resource from its parent, or from one that it depends on. label is the properties that were computed
// from that.
type edge struct {
	from         int
	color, label string
}

// edges returns the edges to a resource from those before it, by URN.
func (g graph) edges(nodes map[urn.URN]int, i int) (edges []edge) {
	r := g.resources[i]
	if from, ok := nodes[r.Parent]; ok && g.parents != "" {
		edges = append(edges, edge{from, g.parents, ""})
	}
	if g.dependencies == "" {
		return edges
	}
	properties := map[urn.URN][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.PropertyDependencies)) {
		for _, u := range r.PropertyDependencies[name] {
			properties[u] = append(properties[u], string(name))
		}
	}
	for _, u := range r.Dependencies {
		from, ok := nodes[u]
		e := edge{from, g.dependencies, strings.Join(properties[u], ", ")}
		if ok && !slices.Contains(edges, e) {
			edges = append(edges, e)
		}
	}
	return edges
}

func (g graph) label(r apitype.ResourceV3) string {
	text := string(r.URN)
	if g.short {
		text = r.URN.Name()
	}
	if r.Delete {
		text += " (deleting)"
	}
	return text
}

// dotText quotes a text for the DOT language, which knows no escapes but those of quotes and of labels.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
