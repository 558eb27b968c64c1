package console

import (
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
)

const (
	// latestUpdates is how many updates the first page of a stack lists.
	latestUpdates = 10
	// driftRows is how many lines about drift a page has, and queueRows how many updates that wait.
	driftRows, queueRows = 200, 100
	// stackEvery is after how many seconds the page of a stack that is changing is worth another look.
	stackEvery = 3
)

// overview is the first page of a stack.
type overview struct {
	deployments.StackInfo
	Active    *ongoing
	Queue     []ongoing
	More      int // updates that wait, and are not listed
	TagNames  []string
	Updates   []historyRow
	Schedules []deployments.Schedule
	Drift     *drift
	// Not* say why a part is not known.
	NotSchedules, NotDrift string
}

// drift is what the last drift check has found.
type drift struct {
	deployments.Drift
	URL, RemediatedURL string
	Rows               [][]string // resource, property, expected, actual
	More               int
}

// stackPageOf returns what the pages of a stack have in common.
func (c *call) stackPageOf(current string) page {
	at := stackURL(c.stack)
	organization := home{Organization: c.stack.Organization}
	p := page{Title: c.stack.Project + "/" + c.stack.Stack, Path: []link{{c.stack.Organization, organization.url("")},
		{c.stack.Project, at}, {c.stack.Stack, at}}}
	for _, t := range []link{{"Overview", ""}, {"Resources", "/resources"}, {"Graph", "/graph"}, {"Outputs", "/outputs"},
		{"Updates", "/updates"}} {
		p.Tabs = append(p.Tabs, tab{link{t.Text, at + t.To}, t.Text == current})
	}
	if current != "Overview" {
		p.Title = current + " of " + p.Title
	}
	return p
}

// overviewPage shows how a stack is.
func overviewPage(c *call) (answer, error) {
	began := time.Now()
	info, err := c.console.Service.Stack(c.Context(), c.stack)
	if err != nil {
		return answer{}, err
	}
	o := overview{StackInfo: info}
	for name := range info.Tags {
		o.TagNames = append(o.TagNames, name)
	}
	slices.Sort(o.TagNames)
	if a := info.Active; a != nil {
		active := ongoingOf(*a)
		active.URL = urlOf(c.stack, a)
		o.Active = &active
	}
	for i, u := range info.Queued {
		if i == queueRows {
			o.More = len(info.Queued) - i
			break
		}
		o.Queue = append(o.Queue, ongoingOf(u))
	}
	if o.Updates, err = c.history(deployments.Page{Number: 1, Size: latestUpdates}); err != nil {
		return answer{}, err
	}
	if o.Schedules, err = c.console.Service.Schedules(c.Context(), c.stack); err != nil {
		_, o.NotSchedules = c.told(err)
	}
	o.readDrift(c)
	p := c.stackPageOf("Overview")
	p.Data = o
	if info.Active != nil || len(info.Queued) > 0 {
		p.Refresh = pause(stackEvery, began)
	}
	return c.page("overview", p)
}

// readDrift reads what the last drift check has found.
func (o *overview) readDrift(c *call) {
	found, err := c.console.Service.Drift(c.Context(), c.stack)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return // it was never checked
	}
	if err != nil {
		_, o.NotDrift = c.told(err)
		return
	}
	o.Drift = &drift{Drift: found, URL: updateURL(deployments.UpdateName{StackName: c.stack,
		Version: found.Update.Version})}
	if found.Remediation != nil {
		o.Drift.RemediatedURL = updateURL(deployments.UpdateName{StackName: c.stack, Version: found.Remediation.Version})
	}
	rows := projection.DriftRows(found.Resources)
	o.Drift.More = max(0, len(rows)-driftRows)
	o.Drift.Rows = rows[:len(rows)-o.Drift.More]
}
