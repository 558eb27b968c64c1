package console

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

const (
	// resourcesSize is how many resources a page lists, and shownReferences how many of what one depends on.
	resourcesSize, shownReferences = 100, 5
	// shownValues is how many values of a resource, or outputs of a stack, a page shows, and shownText how long a text may
	// be.
	shownValues, shownText = 500, 2000
)

// resourceRow is a resource of a stack.
type resourceRow struct {
	stored
	URL          string
	Parent       *link
	Dependencies []link
	More         int // dependencies that are not listed
	Marks        []string
}

// resourceURL returns the page of a resource of a stack.
func resourceURL(s deployments.StackName, id urn.URN) string {
	return stackURL(s) + "/resources?" + url.Values{"urn": {string(id)}}.Encode()
}

func (c *call) linkTo(id urn.URN) link {
	return link{safetext.Line(id.Name()), resourceURL(c.stack, id)}
}

// row describes a resource in a line.
func (c *call) row(r stored, most int) resourceRow {
	row := resourceRow{stored: r, URL: resourceURL(c.stack, r.URN)}
	if r.Parent != "" {
		to := c.linkTo(r.Parent)
		row.Parent = &to
	}
	for i, id := range r.Dependencies {
		if i == most {
			row.More = len(r.Dependencies) - i
			break
		}
		row.Dependencies = append(row.Dependencies, c.linkTo(id))
	}
	for mark, set := range map[string]bool{"protected": r.Protect, "read, not owned": r.External,
		"is being deleted": r.Delete, "tainted": r.Taint, "not healthy": len(r.InitErrors) > 0} {
		if set {
			row.Marks = append(row.Marks, mark)
		}
	}
	slices.Sort(row.Marks)
	return row
}

// resourcesPage lists the resources of a stack, those whose URN contains a text, or shows one.
func resourcesPage(c *call) (answer, error) {
	number, err := c.asked()
	if err != nil {
		return answer{}, err
	}
	s, err := c.readState()
	if err != nil {
		return answer{}, err
	}
	if id := c.URL.Query().Get("urn"); id != "" {
		return c.resourcePage(s, urn.URN(id))
	}
	wanted := c.URL.Query().Get("find")
	lower := strings.ToLower(wanted)
	var found []stored
	for _, r := range s.resources {
		if strings.Contains(strings.ToLower(string(r.URN)), lower) {
			found = append(found, r)
		}
	}
	from, to := deployments.Page{Number: number, Size: resourcesSize}.Bounds(len(found))
	var rows []resourceRow
	for _, r := range found[from:to] {
		rows = append(rows, c.row(r, shownReferences))
	}
	p := c.stackPageOf("Resources")
	p.Data = struct {
		Find       string
		All, Found int
		From       int
		Rows       []resourceRow
		Pages      pages
		Version    int
	}{wanted, len(s.resources), len(found), from + 1, rows, c.pagesAt(number, to < len(found)), s.Version}
	return c.page("resources", p)
}

// value is a property as a page shows it.
type value struct {
	Name, Text, URL string
	Long            bool // it has several lines
}

// shown returns properties as pages show them, with secrets as [secret].
func shown(properties map[string]any) (list []value, more int) {
	readable := projection.ReadableProperties(properties)
	for _, name := range slices.Sorted(maps.Keys(readable)) {
		if strings.HasPrefix(name, "__") { // what only the provider knows
			continue
		}
		if len(list) == shownValues {
			more++
			continue
		}
		v := value{Name: safetext.Visible(name)}
		if text, plain := readable[name].(string); plain {
			v.URL, v.Text = web(text), safetext.Text(text)
		} else {
			v.Text = indented(readable[name])
		}
		if runes := []rune(v.Text); len(runes) > shownText {
			v.Text, v.URL = string(runes[:shownText])+"…", ""
		}
		v.Long = strings.Contains(v.Text, "\n")
		list = append(list, v)
	}
	return list, more
}

// resourcePage shows one resource.
func (c *call) resourcePage(s state, id urn.URN) (answer, error) {
	i, found := s.byURN()[id]
	if !found {
		return answer{}, deployments.Errorf(deployments.CodeNotFound, "the stack has no such resource any more")
	}
	all, err := s.values(c, i)
	if err != nil {
		return answer{}, err
	}
	data := struct {
		Row             resourceRow
		Inputs, Outputs []value
		MoreInputs      int
		MoreOutputs     int
		Dependents      []link
		MoreDependents  int
		Children        []link
		MoreChildren    int
	}{Row: c.row(s.resources[i], shownValues)}
	data.Inputs, data.MoreInputs = shown(all.Inputs)
	data.Outputs, data.MoreOutputs = shown(all.Outputs)
	add := func(list *[]link, more *int, of urn.URN) {
		if len(*list) < resourcesSize {
			*list = append(*list, c.linkTo(of))
		} else {
			*more++
		}
	}
	for _, r := range s.resources {
		if slices.Contains(r.Dependencies, id) {
			add(&data.Dependents, &data.MoreDependents, r.URN)
		}
		if r.Parent == id {
			add(&data.Children, &data.MoreChildren, r.URN)
		}
	}
	p := c.stackPageOf("Resources")
	p.Title = short(100, id.Name())
	p.Data = data
	return c.page("resource", p)
}
