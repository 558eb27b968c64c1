package session

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
)

const (
	// mostHosted is how many updates of one organization a worker hosts at a time: each has an activity of its own for
	// as long as its program runs. Another one asks for its place again, here or at another worker, after
	// longestClaimPause at most.
	mostHosted        = 250
	longestClaimPause = 15 * time.Second
	// sharedParallel is how many steps at a time the updates of one organization are granted on a worker, each half of
	// what is left at most, and leastParallel in any case.
	sharedParallel = 2 * deployments.MaxParallel
	leastParallel  = 8
)

// MostOfOrganization is how many activities the updates of one organization have on a worker at most: the steps that
// they were granted, half as many ahead, and for each update its program and one more.
const MostOfOrganization = (sharedParallel+mostHosted*leastParallel)*3/2 + 2*mostHosted

// RoomFor postpones the claim of an update whose organization has all the updates here that it may have.
func (a *Sessions) RoomFor(ctx context.Context, u deployments.UpdateName) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if hosted, _ := a.hostedOf(u.Organization); hosted < a.mostHosted() || a.all[u.String()] != nil {
		return nil
	}
	return failure.Later(ctx,
		fmt.Sprintf("the worker hosts %d updates of the organization %s", a.mostHosted(), u.Organization), longestClaimPause)
}

// grant returns how many steps at a time another update of an organization may make, of those that it asks for. The
// caller holds a.mu.
func (a *Sessions) grant(organization string, asked int) int {
	_, granted := a.hostedOf(organization)
	return min(asked, max((sharedParallel-granted)/2, leastParallel))
}

// hostedOf returns how many updates of an organization this worker hosts, and how many steps at a time they were
// granted. The caller holds a.mu.
func (a *Sessions) hostedOf(organization string) (updates, granted int) {
	for _, s := range a.all {
		if s.update.Organization == organization {
			updates, granted = updates+1, granted+s.granted
		}
	}
	return updates, granted
}

// askedParallel returns how many steps at a time a request asks for.
func askedParallel(r deployments.UpdateRequest) int {
	if r.Parallel < 1 {
		return deployments.DefaultParallel
	}
	return min(r.Parallel, deployments.MaxParallel)
}

// mostHosted returns how many updates of one organization this worker hosts at a time.
func (a *Sessions) mostHosted() int { return cmp.Or(a.MostHosted, mostHosted) }
