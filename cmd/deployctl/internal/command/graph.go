package command

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

func graphCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "graph", Usage: "print the resources and their dependencies as a graph in the DOT language",
		ArgsUsage: "[FILE]",
		Description: "An edge leads from a resource to one that depends on it, or to its child. The graph is written " +
			"to FILE, or to standard output: deployctl graph | dot -Tsvg > graph.svg draws it with Graphviz.",
		Flags: onStack(
			&cli.BoolFlag{Name: "ignore-parent-edges", Usage: "leave out the edges from parents to children"},
			&cli.BoolFlag{Name: "ignore-dependency-edges", Usage: "leave out the edges of dependencies"},
			&cli.StringFlag{Name: "dependency-edge-color", Usage: "draw the edges of dependencies in `COLOR`",
				Value: "#246C60"},
			&cli.StringFlag{Name: "parent-edge-color", Usage: "draw the edges from parents to children in `COLOR`",
				Value: "#AA6639"},
			&cli.BoolFlag{Name: "short-node-name", Usage: "label resources with their names instead of their URNs"},
			&cli.StringFlag{Name: "dot-fragment", Usage: "add `DOT` to the beginning of the graph, such as " +
				"'node [shape=box]'"}),
		Action: action(s, runGraph),
	}
}

func runGraph(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	list, err := s.resources(ctx, info, false)
	if err != nil {
		return err
	}
	g := graph{
		resources: list, short: s.flags.Bool("short-node-name"), fragment: s.flags.String("dot-fragment"),
	}
	if !s.flags.Bool("ignore-dependency-edges") {
		g.dependencies = s.flags.String("dependency-edge-color")
	}
	if !s.flags.Bool("ignore-parent-edges") {
		g.parents = s.flags.String("parent-edge-color")
	}
	path := s.flags.Args().First()
	if path == "" || path == "-" {
		return g.write(s.Out)
	}
	file, err := os.Create(s.path(path))
	if err != nil {
		return err
	}
	if err := g.write(file); err != nil {
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
		if from, ok := nodes[r.Parent]; ok && g.parents != "" {
			_, _ = fmt.Fprintf(w, "    r%d -> r%d [color=%s];\n", from, i, dotText(g.parents))
		}
		if g.dependencies != "" {
			g.writeDependencies(w, nodes, i)
		}
		nodes[r.URN] = i
	}
	_, _ = fmt.Fprintln(w, "}")
	return w.Flush()
}

// writeDependencies writes an edge for each dependency, labelled with the properties that were computed from it.
func (g graph) writeDependencies(w io.Writer, nodes map[urn.URN]int, i int) {
	r := g.resources[i]
	properties := map[urn.URN][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.PropertyDependencies)) {
		for _, u := range r.PropertyDependencies[name] {
			properties[u] = append(properties[u], string(name))
		}
	}
	for _, u := range r.Dependencies {
		from, ok := nodes[u]
		if !ok {
			continue
		}
		label := ""
		if names := strings.Join(properties[u], ", "); names != "" {
			label = ", label=" + dotText(names)
		}
		_, _ = fmt.Fprintf(w, "    r%d -> r%d [color=%s%s];\n", from, i, dotText(g.dependencies), label)
	}
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
