package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

var everyone = deployments.Caller{Token: deployments.LocalToken, Authority: deployments.Everything()}

// only is a caller who may look at one stack.
func only(s deployments.StackName) deployments.Caller {
	return deployments.Caller{Token: "t", Authority: deployments.Authority{Grants: [][]deployments.Grant{{{
		Role: deployments.RoleViewer, Organization: s.Organization, Stacks: []string{s.Project + "/" + s.Stack}}}}}}
}

// schedule makes a schedule of dev in Temporal alone.
func (f *fakeTemporal) schedule(name string, state client.ScheduleState, next ...time.Time) {
	id := deployments.ScheduleID(deployments.ScheduleName{StackName: dev, Name: name})
	f.schedules[id] = &client.ScheduleDescription{Schedule: client.Schedule{State: &state},
		Info: client.ScheduleInfo{NextActionTimes: next}}
}

func TestTheStatusOfAStackHasItsLastResultItsDriftItsSchedulesAndWhatWaitsForAPerson(t *testing.T) {
	s, f := newFake(t)
	f.schedule("drift", client.ScheduleState{}, now.Add(time.Hour))
	f.schedule("nightly", client.ScheduleState{Paused: true, Note: "paused by ann"})
	f.begin(version(3))
	f.undecided["urn:pulumi:dev::shop::a:b:C::n"] = true
	claim, err := s.Claim(t.Context(), statestore.Claimant{Update: version(3), Writer: "w"})
	must(t, err)
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: version(3), Status: deployments.StatusRunning}))
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: version(2), Status: "failed", Ended: now}))
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: version(1), Status: "succeeded", Ended: now}))
	must(t, s.store.Jobs.PutDrift(t.Context(), dev, deployments.Drift{At: now,
		Resources: make([]deployments.DriftedResource, 2)}))

	page, err := s.Statuses(t.Context(), everyone, deployments.StatusQuery{})
	must(t, err)
	if len(page.Stacks) != 1 || page.Next != "" || page.Incomplete != "" {
		t.Fatalf("it is %+v", page)
	}
	st := page.Stacks[0]
	if st.Stack != dev || st.Last == nil || st.Last.Update != version(2) || st.Active == nil ||
		st.Active.Update != version(3) || st.Drifted() != 2 || st.Healthy() {
		t.Errorf("it is %+v", st)
	}
	want := []string{"update 3 waits for `deployctl resolve` of 1 resource", "schedule nightly is paused: paused by ann"}
	if got := st.Needs(); !slices.Equal(got, want) {
		t.Errorf("it needs %q, not %q", got, want)
	}
	if len(st.Schedules) != 2 || !st.Schedules[0].Next.Equal(now.Add(time.Hour)) {
		t.Errorf("its schedules are %+v", st.Schedules)
	}
	must(t, s.store.Commit(t.Context(), claim, statestore.Written{Version: 3, Pending: 4}))
	page, err = s.Statuses(t.Context(), everyone, deployments.StatusQuery{})
	must(t, err)
	if st := page.Stacks[0]; st.Pending != 4 || !strings.HasPrefix(st.Needs()[0], "4 pending operations") ||
		st.Drifted() != 0 {
		t.Errorf("it is %+v", st)
	}
}

func TestAPageOfStatusesHasWhatTheCallerSeesAndNoOtherName(t *testing.T) {
	s, _ := newFake(t)
	var all []string
	for i := range 7 {
		name := deployments.StackName{Organization: "acme", Project: "shop", Stack: fmt.Sprint("s-", i)}
		must(t, s.CreateStack(t.Context(), name, nil))
		all = append(all, name.String())
	}
	secret := deployments.StackName{Organization: "acme", Project: "shop", Stack: "s-30"}
	must(t, s.CreateStack(t.Context(), secret, nil))
	read := func(c deployments.Caller, q deployments.StatusQuery) (names []string, nexts []string) {
		for {
			page, err := s.Statuses(t.Context(), c, q)
			must(t, err)
			for _, st := range page.Stacks {
				names = append(names, st.Stack.String())
			}
			if len(page.Stacks) > q.Limit {
				t.Errorf("a page has %d stacks", len(page.Stacks))
			}
			if page.Next == "" {
				return names, nexts
			}
			nexts = append(nexts, page.Next)
			q.After = page.Next
		}
	}
	names, nexts := read(everyone, deployments.StatusQuery{Organization: "acme", Limit: 3})
	want := slices.Insert(slices.Clone(all), 4, secret.String())
	if !slices.Equal(names, want) || !slices.Equal(nexts, []string{want[2], want[5]}) {
		t.Errorf("they are %q, in pages that end with %q", names, nexts)
	}
	mine := deployments.StackName{Organization: "acme", Project: "shop", Stack: "s-4"}
	if names, nexts = read(only(mine), deployments.StatusQuery{Limit: 1}); !slices.Equal(names, []string{mine.String()}) ||
		len(nexts) != 0 {
		t.Errorf("who sees one stack is shown %q, %q", names, nexts)
	}
	if _, err := s.Statuses(t.Context(), everyone, deployments.StatusQuery{Limit: 201}); deployments.CodeOf(err) !=
		deployments.CodeInvalid {
		t.Errorf("a page of 201 is %v", err)
	}
}

// counted counts the requests of a bucket.
type counted struct {
	bucket.Objects
	requests atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string) (bucket.Object, error) {
	c.requests.Add(1)
	return c.Objects.Get(ctx, key)
}

func (c *counted) List(ctx context.Context, q bucket.Query) (bucket.Listing, error) {
	c.requests.Add(1)
	return c.Objects.List(ctx, q)
}

func TestAPageOfStatusesCostsFewRequestsForEachStackAndOneListOfSchedules(t *testing.T) {
	objects := &counted{Objects: &bucket.Memory{}}
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	s, f := newFake(t)
	s = New(f, store, s.readers)
	const stacks = deployments.MostStatuses
	for i := range stacks {
		name := deployments.StackName{Organization: "acme", Project: "shop", Stack: fmt.Sprintf("s-%03d", i)}
		must(t, store.CreateStack(t.Context(), name, nil))
		must(t, store.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: deployments.UpdateName{StackName: name,
			Version: "1"}, Status: "succeeded", Ended: now}))
	}
	objects.requests.Store(0)
	page, err := s.Statuses(t.Context(), everyone, deployments.StatusQuery{})
	must(t, err)
	// The head, the end of the history, its newest entry, the drift check and the schedules; and the list of names.
	if n := objects.requests.Load(); len(page.Stacks) != stacks || n > 5*stacks+3 {
		t.Errorf("%d stacks cost %d requests", len(page.Stacks), n)
	}
	if f.listed != 1 {
		t.Errorf("the schedules are listed %d times", f.listed)
	}
}

func TestWithoutTemporalAStatusSaysWhatItDoesNotKnow(t *testing.T) {
	s, f := newFake(t)
	f.away = errors.New("away")
	page, err := s.Statuses(t.Context(), everyone, deployments.StatusQuery{})
	must(t, err)
	if len(page.Stacks) != 1 || !strings.Contains(page.Incomplete,
		"schedules, and what waits for a person, are not known: ") {
		t.Errorf("it is %+v", page)
	}
}
