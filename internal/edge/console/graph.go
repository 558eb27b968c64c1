package console

import (
	"cmp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

const (
	// mostNodes is how many resources a drawing has, and mostEdges how many edges.
	mostNodes, mostEdges = 250, 2000
	// Sizes in a drawing, in pixels: of a box, of the space around it, and of a character.
	boxWidth, boxHeight, rowGap, columnGap, margin = 210, 42, 14, 70, 12
	boxCharacters                                  = 26
)

// node is a resource in a drawing. Each is in a column to the right of all that lead to it.
type node struct {
	Name, Type, Full string
	URL              string
	X, Y             int
	Chosen           bool

	column int
	from   []int // those that lead to it
}

// edge is a curve in a drawing.
type edge struct {
	X1, Y1, X2, Y2, Bend1, Bend2 int
	Parent                       bool
	Title                        string
}

// drawing is what the page of a graph shows.
type drawing struct {
	Find          string
	Version       int
	All, Left     int // resources of the stack, and those that are not drawn
	LeftEdges     int
	Nodes         []node
	Edges         []edge
	Width, Height int
}

// graphPage draws the resources of a stack, or what is around those whose URN contains a text.
func graphPage(c *call) (answer, error) {
	s, err := c.readState()
	if err != nil {
		return answer{}, err
	}
	d := drawing{Find: c.URL.Query().Get("find"), Version: s.Version, All: len(s.resources)}
	d.draw(c.stack, s)
	p := c.stackPageOf("Graph")
	p.Data = d
	return c.page("graph", p)
}

// chosen returns the indices of the resources to draw, in order: those that match with what they depend on, and what
// depends on them; without a text, the first ones.
func (d *drawing) chosen(s state) (drawn []int, matches map[int]bool) {
	known := s.byURN()
	wanted, matches := map[int]bool{}, map[int]bool{}
	find := strings.ToLower(d.Find)
	for i, r := range s.resources {
		if find == "" || strings.Contains(strings.ToLower(string(r.URN)), find) {
			wanted[i], matches[i] = true, find != ""
		}
	}
	if find != "" {
		for i, r := range s.resources {
			for _, id := range append([]urn.URN{r.Parent}, r.Dependencies...) {
				if to, ok := known[id]; ok && matches[i] && r.Type != string(resource.RootStackType) {
					wanted[to] = true
				} else if ok && matches[to] {
					wanted[i] = true
				}
			}
		}
	}
	root := s.root() // all would hang on it
	for i := range s.resources {
		if i == root {
			continue
		}
		if wanted[i] && len(drawn) < mostNodes {
			drawn = append(drawn, i)
		} else if wanted[i] {
			d.Left++
		}
	}
	return drawn, matches
}

// draw gives the resources and their edges places.
func (d *drawing) draw(stack deployments.StackName, s state) {
	drawn, matches := d.chosen(s)
	at := map[urn.URN]int{} // nodes, by URN
	type pair struct {
		from, to int
		parent   bool
	}
	var pairs []pair
	for _, i := range drawn {
		r := s.resources[i]
		n := node{Name: short(boxCharacters, r.URN.Name()), Type: shortType(r.Type), Full: safetext.Line(string(r.URN)),
			URL: resourceURL(stack, r.URN), Chosen: matches[i]}
		to := len(d.Nodes)
		seen := map[int]bool{}
		add := func(id urn.URN, parent bool) {
			from, ok := at[id]
			if !ok || seen[from] {
				return
			}
			seen[from] = true
			n.column = max(n.column, d.Nodes[from].column+1)
			n.from = append(n.from, from)
			if len(pairs) < mostEdges {
				pairs = append(pairs, pair{from, to, parent})
			} else {
				d.LeftEdges++
			}
		}
		for _, id := range r.Dependencies {
			add(id, false)
		}
		add(r.Parent, true)
		at[r.URN] = to
		d.Nodes = append(d.Nodes, n)
	}
	d.place()
	for _, p := range pairs {
		from, to := d.Nodes[p.from], d.Nodes[p.to]
		e := edge{X1: from.X + boxWidth, Y1: from.Y + boxHeight/2, X2: to.X, Y2: to.Y + boxHeight/2, Parent: p.parent,
			Title: from.Name + " → " + to.Name}
		e.Bend1, e.Bend2 = e.X1+(e.X2-e.X1)/2, e.X2-(e.X2-e.X1)/2
		d.Edges = append(d.Edges, e)
	}
}

// place gives each node a place: columns from left to right, and in a column each node as near as possible to what
// leads to it.
func (d *drawing) place() {
	var columns [][]int
	for i, n := range d.Nodes {
		for len(columns) <= n.column {
			columns = append(columns, nil)
		}
		columns[n.column] = append(columns[n.column], i)
	}
	for x, column := range columns {
		rank := map[int]int{}
		for _, i := range column {
			for _, from := range d.Nodes[i].from {
				rank[i] += d.Nodes[from].Y / len(d.Nodes[i].from)
			}
		}
		slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
		for y, i := range column {
			n := &d.Nodes[i]
			n.X, n.Y = margin+x*(boxWidth+columnGap), margin+y*(boxHeight+rowGap)
			d.Width, d.Height = max(d.Width, n.X+boxWidth+margin), max(d.Height, n.Y+boxHeight+margin)
		}
	}
}

// shortType returns the end of a type, which tells most.
func shortType(t string) string {
	if parts := strings.Split(t, ":"); len(parts) == 3 {
		t = parts[0] + ":" + parts[2]
	}
	return short(boxCharacters+4, t)
}
