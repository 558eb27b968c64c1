package state

import (
	"bufio"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Sizes in a drawing, in pixels: of a box, of the space around it, and of a character.
const (
	boxHeight, rowGap, columnGap, margin = 40, 14, 90, 20
	characterWidth, boxPadding           = 7.3, 24
)

// node is a resource in a drawing. Each is in a column to the right of all that lead to it.
type node struct {
	name, typ   string
	edges       []edge // that lead to it
	column      int
	rank        float64 // where it would stand in its column: beside those that lead to it
	x, y, width float64
}

// drawing is a graph whose nodes have places.
type drawing struct {
	nodes         []node
	columns       [][]int // the nodes of each column, from top to bottom
	width, height float64
}

// draw writes the graph as SVG.
func (g graph) draw(to io.Writer) error {
	d := drawing{}
	known := map[urn.URN]int{}
	for i, r := range g.resources {
		n := node{name: safetext.Line(r.URN.Name()), typ: safetext.Line(string(r.Type)), edges: g.edges(known, i)}
		if r.Delete {
			n.name += " (deleting)"
		}
		for _, e := range n.edges {
			n.column = max(n.column, d.nodes[e.from].column+1)
		}
		known[r.URN] = i
		d.nodes = append(d.nodes, n)
	}
	d.place()
	return d.write(to)
}

// place gives each node a place: columns from left to right, and in a column each node as near as possible to what
// leads to it.
func (d *drawing) place() {
	for i, n := range d.nodes {
		for len(d.columns) <= n.column {
			d.columns = append(d.columns, nil)
		}
		d.columns[n.column] = append(d.columns[n.column], i)
	}
	x := float64(margin)
	for _, column := range d.columns {
		for _, i := range column {
			d.nodes[i].rank = d.meanRow(i)
		}
		slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(d.nodes[a].rank, d.nodes[b].rank) })
		width := 0.0
		for row, i := range column {
			n := &d.nodes[i]
			n.x, n.y = x, margin+float64(row*(boxHeight+rowGap))
			n.width = characterWidth*float64(max(display.Widest(n.name), display.Widest(n.typ))) + boxPadding
			width, d.height = max(width, n.width), max(d.height, n.y+boxHeight+margin)
		}
		d.width = x + width + margin
		x += width + columnGap
	}
}

// meanRow returns the mean height of the nodes that lead to a node.
func (d *drawing) meanRow(i int) float64 {
	sum := 0.0
	for _, e := range d.nodes[i].edges {
		sum += d.nodes[e.from].y
	}
	return sum / float64(max(1, len(d.nodes[i].edges)))
}

// style is for light and for dark pages.
const style = `<style>
  :root { color-scheme: light dark; }
  rect { fill: light-dark(#f6f4ef, #22262c); stroke: light-dark(#b8b2a7, #59616c); }
  text { font: 12px ui-monospace, monospace; fill: light-dark(#1d2126, #e8e6e3); }
  .type { fill: light-dark(#5c6570, #9aa3ad); }
  path { fill: none; stroke-width: 1.2; }
</style>
`

// write writes the drawing: edges first, so that boxes cover them.
func (d *drawing) write(to io.Writer) error {
	w := bufio.NewWriter(to)
	_, _ = fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f">`+"\n%s", d.width,
		d.height, style) // Flush returns the first error
	for _, n := range d.nodes {
		for _, e := range n.edges {
			d.writeEdge(w, e, n)
		}
	}
	for _, n := range d.nodes {
		_, _ = fmt.Fprintf(w, `<g transform="translate(%.0f %.0f)"><rect width="%.0f" height="%d" rx="6"/>`+
			`<text x="12" y="17">%s</text><text class="type" x="12" y="32">%s</text></g>`+"\n", n.x, n.y, n.width, boxHeight,
			xmlText(n.name), xmlText(n.typ))
	}
	_, _ = fmt.Fprintln(w, "</svg>")
	return w.Flush()
}

// writeEdge writes a curve with an arrowhead, and the edge's label as what a browser shows under the pointer.
func (d *drawing) writeEdge(w io.Writer, e edge, to node) {
	from := d.nodes[e.from]
	x1, y1, x2, y2 := from.x+from.width, from.y+boxHeight/2, to.x, to.y+boxHeight/2
	bend := (x2 - x1) / 2
	title := from.name + " → " + to.name
	if e.label != "" {
		title += ": " + e.label
	}
	_, _ = fmt.Fprintf(w, `<path stroke="%s" d="M%.0f %.0fC%.0f %.0f %.0f %.0f %.0f %.0fm-6 -3l6 3l-6 3"><title>%s</title>`+
		"</path>\n", xmlText(e.color), x1, y1, x1+bend, y1, x2-bend, y2, x2, y2, xmlText(title))
}

// xmlText escapes a text for XML, where it may be that of an element or of an attribute.
func xmlText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return b.String()
}
