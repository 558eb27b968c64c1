package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/engine"
)

// crowdSize is how many clients ask for the same stack at the same time.
const crowdSize = 20

// crowd is what clients ask that come at once while an update runs, and what must become of it.
type crowd struct {
	onBusy deployments.OnBusy
	same   bool // all send the same request
	check  func(holder deployments.UpdateName, came []visitor) error
}

// visitor is one of a crowd: what it was answered, and how its update ended.
type visitor struct {
	accepted deployments.Accepted
	refused  error
	end      deployments.UpdateInfo
}

var crowds = map[string]crowd{
	"queue":     {onBusy: deployments.OnBusyQueue, check: allInTurn},
	"fail":      {onBusy: deployments.OnBusyFail, check: allRefused},
	"supersede": {onBusy: deployments.OnBusySupersede, check: onlyTheLast},
	"the same":  {onBusy: deployments.OnBusyQueue, same: true, check: allTheSame},
}

// crowd lets a crowd come while a refresh is held, and looks at what became of everyone.
func (s *stage) crowd(ctx context.Context, api *client.Client, c crowd) error {
	g, err := s.cloud.SetGate(ctx, fakecloud.Fault{Name: "crowd", Op: fakecloud.Read, Times: 1})
	if err != nil {
		return err
	}
	refresh := deployments.UpdateRequest{
		Stack: s.name(), Kind: engine.KindRefresh, RequestID: rand.Text(),
		OnBusy:  deployments.OnBusyQueue, // a client may learn of the end of an update before its stack does
		Secrets: ownSecrets, Initiator: "somebody",
	}
	holder, err := api.Submit(ctx, refresh)
	if err != nil {
		return err
	}
	if err := g.Wait(ctx); err != nil {
		return err
	}
	came := make([]visitor, crowdSize)
	each := func(do func(v *visitor)) {
		var all sync.WaitGroup
		for i := range came {
			all.Go(func() { do(&came[i]) })
		}
		all.Wait()
	}
	refresh.OnBusy, refresh.RequestID = c.onBusy, rand.Text()
	each(func(v *visitor) {
		r := refresh
		if !c.same {
			r.RequestID = rand.Text()
		}
		v.accepted, v.refused = api.Submit(ctx, r)
	})
	if err := g.Open(ctx); err != nil {
		return err
	}
	var ended visitor
	ended.watch(ctx, api, holder.Update)
	if ended.refused != nil || ended.end.Status != string(engine.StatusSucceeded) {
		return fmt.Errorf("the holder came to %+v: %w", ended.end, ended.refused)
	}
	each(func(v *visitor) {
		if v.refused == nil {
			v.watch(ctx, api, v.accepted.Update)
		}
	})
	return c.check(holder.Update, came)
}

// watch waits for an update's end.
func (v *visitor) watch(ctx context.Context, api *client.Client, u deployments.UpdateName) {
	v.refused = api.Watch(ctx, u, func(e deployments.WatchEvent) error {
		if e.End != nil {
			v.end = *e.End
		}
		return nil
	})
}

// behind tells whether the visitor was told who is ahead.
func (v visitor) behind(holder deployments.UpdateName) bool {
	ahead := v.accepted.Behind
	return ahead != nil && ahead.Update == holder && ahead.Initiator == "somebody" && !ahead.Started.IsZero()
}

// allInTurn: everyone has a place of its own, and one runs after another, in that order.
func allInTurn(holder deployments.UpdateName, came []visitor) error {
	slices.SortFunc(came, func(a, b visitor) int { return a.accepted.Position - b.accepted.Position })
	for i, v := range came {
		switch {
		case v.refused != nil:
			return v.refused
		case v.accepted.Position != i+1 || !v.behind(holder):
			return fmt.Errorf("number %d was told %+v", i+1, v.accepted)
		case v.end.Status != string(engine.StatusSucceeded):
			return fmt.Errorf("update %s came to %s: %s", v.end.Update.Version, v.end.Status, v.end.Error)
		case i > 0 && (v.end.Started.Before(came[i-1].end.Ended) ||
			v.end.Update.Number() != came[i-1].end.Update.Number()+1):
			return fmt.Errorf("update %s did not come after update %s", v.end.Update.Version,
				came[i-1].end.Update.Version)
		}
	}
	return nil
}

// allRefused: everyone is told who is in the way.
func allRefused(holder deployments.UpdateName, came []visitor) error {
	for _, v := range came {
		if deployments.CodeOf(v.refused) != deployments.CodeConflict ||
			!strings.Contains(v.refused.Error(), "busy with update "+holder.Version) {
			return fmt.Errorf("one was answered %+v: %w", v.accepted, v.refused)
		}
	}
	return nil
}

// onlyTheLast: one update runs, and it is the last that was asked for.
func onlyTheLast(_ deployments.UpdateName, came []visitor) error {
	slices.SortFunc(came, func(a, b visitor) int { return a.accepted.Update.Number() - b.accepted.Update.Number() })
	for i, v := range came {
		want, why := engine.StatusCancelled, "superseded by version"
		if i == len(came)-1 {
			want, why = engine.StatusSucceeded, ""
		}
		if v.refused != nil || v.end.Status != string(want) || !strings.Contains(v.end.Error, why) {
			return errors.Join(v.refused, fmt.Errorf("of %d the %dth came to %s: %s", len(came), i+1, v.end.Status,
				v.end.Error))
		}
	}
	return nil
}

// allTheSame: there is one update for all.
func allTheSame(_ deployments.UpdateName, came []visitor) error {
	for _, v := range came {
		if v.refused != nil || v.accepted.Update != came[0].accepted.Update ||
			v.end.Status != string(engine.StatusSucceeded) {
			return errors.Join(v.refused, fmt.Errorf("one was answered %+v, and came to %s", v.accepted, v.end.Status))
		}
	}
	return nil
}
