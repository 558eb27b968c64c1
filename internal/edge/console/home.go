package console

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

const (
	// homeStacks is how many stacks the home lists at a time, each of which costs several reads; homeUpdates is how many
	// updates it lists.
	homeStacks, homeUpdates = 100, 200
	// homeEvery is after how many seconds the home is worth another look.
	homeEvery = 5
)

// home is what the home shows.
type home struct {
	Organization string // only that one's; empty: all
	Mode         *deployments.Mode
	Needs        []need
	Ongoing      []ongoing
	More         int // updates that run or wait, and are not listed
	Stacks       []stackRow
	Next         string // the next page; empty: it is the last
	First        string // the first page, if this is another one
	Incomplete   string
	Failed       string // why it is not known what runs
}

// need is something that waits for a person.
type need struct {
	Stack deployments.StackName
	Text  string
}

// ongoing is an update that runs or waits.
type ongoing struct {
	deployments.UpdateInfo
	URL, Reason string
}

// stackRow is a stack with its health.
type stackRow struct {
	deployments.StackStatus
	Next      time.Time // when the first of its schedules runs
	LastURL   string
	ActiveURL string
}

// homePage shows what needs a person, what runs, and all stacks that the reader may see.
func homePage(c *call) (answer, error) {
	began := time.Now()
	query := c.URL.Query()
	h := home{Organization: query.Get("organization")}
	if h.Organization != "" {
		if err := deployments.ValidateName("organization", h.Organization); err != nil {
			return answer{}, err
		}
	}
	after := query.Get("after")
	group, ctx := panics.NewGroup(c.Context(), "reading the home")
	group.Go(func() error { return h.readStacks(ctx, c, after) })
	group.Go(func() error { return h.readOngoing(ctx, c) })
	group.Go(func() error { return h.readMode(ctx, c) })
	if err := group.Wait(); err != nil {
		return answer{}, err
	}
	if after != "" {
		h.First = h.url("")
	}
	return c.page("home", page{Title: "Overview", Data: h, Mode: h.Mode, Refresh: pause(homeEvery, began),
		Summary: plural(len(h.Needs), "thing") + " to decide, " + plural(len(h.Ongoing), "update") + " under way"})
}

// pause is after how many seconds a page is worth another look: the more it costs, the later.
func pause(least int, began time.Time) int {
	return max(least, int(10*time.Since(began)/time.Second))
}

// url returns a page of the home.
func (h *home) url(after string) string {
	query := url.Values{}
	if h.Organization != "" {
		query.Set("organization", h.Organization)
	}
	if after != "" {
		query.Set("after", after)
	}
	if len(query) == 0 {
		return Root
	}
	return Root + "?" + query.Encode()
}

func (h *home) readStacks(ctx context.Context, c *call, after string) error {
	found, err := c.console.Service.Statuses(ctx, c.caller, deployments.StatusQuery{Organization: h.Organization,
		After: after, Limit: homeStacks})
	if err != nil {
		return err
	}
	h.Incomplete = found.Incomplete
	if found.Next != "" {
		h.Next = h.url(found.Next)
	}
	for _, st := range found.Stacks {
		row := stackRow{StackStatus: st}
		for _, text := range append(st.Needs(), troubles(st)...) {
			h.Needs = append(h.Needs, need{st.Stack, text})
		}
		for _, sched := range st.Schedules {
			if !sched.Next.IsZero() && (row.Next.IsZero() || sched.Next.Before(row.Next)) {
				row.Next = sched.Next
			}
		}
		row.LastURL, row.ActiveURL = urlOf(st.Stack, st.Last), urlOf(st.Stack, st.Active)
		h.Stacks = append(h.Stacks, row)
	}
	return nil
}

// troubles are what a person may want to look at, though nothing waits for them.
func troubles(st deployments.StackStatus) (list []string) {
	if last := st.Last; last != nil && st.Active == nil && last.Status == deployments.StatusFailed {
		list = append(list, "its last "+last.Command()+" failed: "+short(200, last.Error))
	}
	if n := st.Drifted(); n > 0 {
		list = append(list, plural(n, "resource")+" drifted")
	}
	return list
}

// urlOf returns the page of an update of a stack, which may have had another name at that time; empty for none.
func urlOf(s deployments.StackName, u *deployments.UpdateInfo) string {
	if u == nil {
		return ""
	}
	return updateURL(deployments.UpdateName{StackName: s, Version: u.Update.Version})
}

func (h *home) readOngoing(ctx context.Context, c *call) error {
	visible := grpcapi.Visible{Service: c.console.Service, Caller: c.caller}
	list, err := visible.Ongoing(ctx, h.Organization)
	if err != nil { // the stacks are in the bucket, and may be known while Temporal does not answer
		_, h.Failed = c.told(err)
		return nil
	}
	for i, u := range list {
		if i == homeUpdates {
			h.More = len(list) - i
			break
		}
		h.Ongoing = append(h.Ongoing, ongoingOf(u))
	}
	return nil
}

// ongoingOf says why an update waits, if it does.
func ongoingOf(u deployments.UpdateInfo) ongoing {
	o := ongoing{UpdateInfo: u, URL: updateURL(u.Update), Reason: u.Error}
	switch {
	case u.Cancelling && o.Reason == "":
		o.Reason = "it is being cancelled"
	case len(u.Waiting) > 0:
		o.Reason = "it waits for `deployctl resolve` of " + u.Waiting[0]
		if more := len(u.Waiting) - 1; more > 0 {
			o.Reason += " and " + strconv.Itoa(more) + " more"
		}
	}
	return o
}

func (h *home) readMode(ctx context.Context, c *call) error {
	m, err := c.console.Service.Mode(ctx)
	if err == nil && m.On(c.console.now()) {
		h.Mode = &m
	}
	return err
}
