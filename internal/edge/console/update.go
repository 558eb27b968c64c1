package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
)

const (
	// stepsSize is how many steps a page lists, and messagesSize how many messages the page of a log.
	stepsSize, messagesSize = 100, 500
	// lastMessages is how many messages the page of an update shows.
	lastMessages = 30
	// updateEvery is after how many seconds the page of an update that runs is worth another look.
	updateEvery = 2
)

// update is what the page of an update shows.
type update struct {
	deployments.UpdateInfo
	Running  bool
	Took     string
	Changed  string
	NextURL  string // of the update that continues it
	LogURL   string
	Waiting  []string // what waits for a person
	Phase    string
	Tally    projection.Tally
	All      bool // unchanged resources are listed, too
	OtherURL string
	Steps    []step
	Sames    int // resources that are not listed, as nothing happens to them
	Omitted  int // resources that are too many to be kept
	Pages    pages
	Restarts []mark
	Messages []message
	Earlier  int // messages that are not shown
	Policies []*projection.PolicyPack
	// Temporal are the workflows of the update in Temporal's Web UI.
	Temporal []link
	NotLog   string // why the log is not known
}

// updateInfo returns the update that the path names.
func (c *call) updateInfo() (deployments.UpdateInfo, error) {
	name := deployments.UpdateName{StackName: c.stack, Version: c.PathValue("version")}
	if err := name.Validate(); err != nil {
		return deployments.UpdateInfo{}, err
	}
	info, err := c.console.Service.Info(c.Context(), name)
	info.Update = name // the history has the name at that time
	if deployments.CodeOf(err) != deployments.CodeNotFound {
		return info, err
	}
	// It may wait: then only the queue of its stack knows it.
	stack, failed := c.console.Service.Stack(c.Context(), c.stack)
	if failed != nil {
		return info, err
	}
	for _, u := range stack.Queued {
		if u.Update == name {
			return u, nil
		}
	}
	return info, err
}

// updatePage shows what an update does, or has done.
func updatePage(c *call) (answer, error) {
	began := time.Now()
	number, err := c.asked()
	if err != nil {
		return answer{}, err
	}
	info, err := c.updateInfo()
	if err != nil {
		return answer{}, err
	}
	u := update{UpdateInfo: info, Running: info.Ended.IsZero(), Changed: changed(info.Changes),
		All: c.URL.Query().Get("all") != "", LogURL: updateURL(info.Update) + "/log"}
	u.OtherURL = updateURL(info.Update)
	if !u.All {
		u.OtherURL += "?all=1"
	}
	if info.Next != "" {
		u.NextURL = updateURL(deployments.UpdateName{StackName: c.stack, Version: info.Next})
	}
	u.Temporal = c.temporal(info.Update)
	if k, err := c.console.runs.of(c.Context(), info); err != nil {
		_, u.NotLog = c.told(err)
	} else {
		depends := c.dependencies(k, info)
		k.mu.Lock()
		u.fill(&k.told, c, number, depends)
		k.mu.Unlock()
	}
	p := c.stackPageOf("Updates")
	name := c.nameUpdate(&p, info)
	p.Title = strings.ToUpper(name[:1]) + name[1:]
	p.Data, p.Summary = u, u.Command()+" "+u.Status
	if u.Running {
		p.Refresh = pause(updateEvery, began)
	}
	return c.page("update", p)
}

// nameUpdate adds an update to the way to its page, and returns its name in full. A preview has the id of its request,
// of which the beginning tells it from others.
func (c *call) nameUpdate(p *page, u deployments.UpdateInfo) string {
	name := "update " + u.Update.Version
	if id, preview := strings.CutPrefix(u.Update.Version, "p-"); preview {
		name = "preview " + id[:min(8, len(id))]
	}
	p.Path = append(p.Path, link{name, updateURL(u.Update)})
	return name + " of " + c.stack.Project + "/" + c.stack.Stack
}

// temporal returns where Temporal's Web UI shows the workflows of an update.
func (c *call) temporal(u deployments.UpdateName) []link {
	if c.console.Temporal == "" {
		return nil
	}
	at := func(id string) string { return c.console.Temporal + "/workflows/" + url.PathEscape(id) }
	return []link{{"Update", at(deployments.UpdateWorkflowID(u))}, {"Stack", at(deployments.StackWorkflowID(u.StackName))}}
}

// fill takes out of the log what one page shows.
func (u *update) fill(t *told, c *call, number int, depends map[string][]string) {
	if t.state.End != nil && u.Running { // the log knows of the end first
		end := *t.state.End
		end.Update = u.Update
		u.UpdateInfo, u.Running, u.Changed = end, false, changed(end.Changes)
	}
	now := c.console.now()
	u.Tally, u.Omitted, u.Policies = t.state.Tally(), t.omitted, t.policies()
	if u.Running {
		for _, id := range t.state.Progress.Waiting {
			if len(u.Waiting) < stepsSize {
				u.Waiting = append(u.Waiting, safetext.Line(id))
			}
		}
		if p := t.state.Progress.Phase; p != nil {
			u.Phase = short(200, p.Text)
		}
	}
	rows := u.shownRows(t)
	span := spanOf(u.UpdateInfo, rows, now)
	u.Took = took(span.end.Sub(span.begin))
	critical := criticalOf(rows, t, depends)
	from, to := deployments.Page{Number: number, Size: stepsSize}.Bounds(len(rows))
	for _, row := range rows[from:to] {
		u.Steps = append(u.Steps, stepOf(row, t.details[row.URN], span, critical[row], c.stack))
	}
	u.Pages = c.pagesAt(number, to < len(rows))
	for _, at := range t.restarts {
		u.Restarts = append(u.Restarts, span.mark(at))
	}
	last := t.messages[max(0, len(t.messages)-lastMessages):]
	u.Messages, u.Earlier = slices.Clone(last), len(t.messages)-len(last)+t.dropped
}

// shownRows returns the rows to list: those of resources to which something happens, unless all are asked for. They are
// in the order in which they began; what failed or runs is first.
func (u *update) shownRows(t *told) (rows []*projection.Row) {
	for _, row := range t.state.Rows {
		switch {
		case row.Internal():
		case u.All || row.IsChange() && row.Type != projection.StackType || row.Phase == projection.PhaseFailed ||
			row.Phase == projection.PhaseRunning || len(row.Diags) > 0:
			rows = append(rows, row)
		default:
			if u.Sames++; row.Phase == projection.PhaseDone && row.Type != projection.StackType {
				u.Tally.Done-- // what is done is what is listed
			}
		}
	}
	urgent := map[projection.Phase]int{projection.PhaseFailed: 0, projection.PhaseRunning: 1}
	of := func(r *projection.Row) int {
		if n, ok := urgent[r.Phase]; ok && r.Type != projection.StackType {
			return n
		}
		return 2
	}
	slices.SortStableFunc(rows, func(a, b *projection.Row) int {
		return cmp.Or(of(a)-of(b), a.Started.Compare(b.Started))
	})
	return rows
}

// logPage shows the messages of an update.
func logPage(c *call) (answer, error) {
	began := time.Now()
	info, err := c.updateInfo()
	if err != nil {
		return answer{}, err
	}
	k, err := c.console.runs.of(c.Context(), info)
	if err != nil {
		return answer{}, err
	}
	k.mu.Lock()
	messages, dropped := slices.Clone(k.told.messages), k.told.dropped
	k.mu.Unlock()
	number, err := c.asked()
	if err != nil {
		return answer{}, err
	}
	from, to := deployments.Page{Number: number, Size: messagesSize}.Bounds(len(messages))
	p := c.stackPageOf("Updates")
	p.Title = "Log of " + c.nameUpdate(&p, info)
	p.Data = struct {
		URL      string
		Messages []message
		Dropped  int
		Pages    pages
	}{updateURL(info.Update), messages[from:to], dropped, c.pagesAt(number, to < len(messages))}
	if info.Ended.IsZero() {
		p.Refresh = pause(updateEvery, began)
	}
	return c.page("log", p)
}
