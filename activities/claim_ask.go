package activities

import (
	"cmp"
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore"
)

// asked is what is known before a claim is made.
type asked struct {
	queue   string // of the workers that host the update; empty: this one may
	held    string // why the update does not begin now; empty: it does
	refused error  // why it does not begin at all, or why its request is not stored
	profile *deployments.PinnedProfile
	head    statestore.Head // of the stack of a preview, which claims nothing
}

// ask asks all that decides whether the update begins here and now, at once. A claim needs the head next, and then the
// quota, so these are read, too; and the request is stored, if there is room for the update: nothing depends on it
// before the claim, so it does no harm if another worker hosts the update, which stores the same. Only a mode is known
// before: nothing is written while the service is in one.
func (a *Activities) ask(ctx context.Context, in deployments.ClaimInput, room bool) (of asked, err error) {
	u, r := in.Update, in.Request
	asking, asks := panics.NewGroup(ctx, "beginning an update")
	asking.Go(func() (err error) {
		of.queue, err = a.sessions.Elsewhere(asks, u.Organization)
		return err
	})
	asking.Go(func() (err error) {
		if in.Number <= 1 {
			of.held, err = a.heldBack(asks, u, r)
		}
		if err == nil && of.held == "" && room {
			of.profile, of.refused = a.requestWithProfile(asks, in)
		}
		return err
	})
	asking.Go(func() (err error) {
		if changesHead(u, r) {
			a.Store.Expect(asks, u.StackName)
		} else {
			of.head, err = a.Store.Head(asks, u.StackName)
		}
		return err
	})
	asking.Go(func() error {
		_, _ = a.Store.Organizations.Quota(asks, u.Organization) // who asks next meets the error
		return nil
	})
	return of, asking.Wait()
}

// expect reads what the claim will ask for that is known for some seconds. Whoever asks meets the errors.
func (a *Activities) expect(ctx context.Context, organization string) {
	expecting, expects := panics.NewGroup(ctx, "expecting a claim")
	expecting.Go(func() error { _, _ = a.Store.Organizations.Mode(expects); return nil })
	expecting.Go(func() error { _, _ = a.Store.Organizations.Quota(expects, organization); return nil })
	_ = expecting.Wait()
}

// request stores the request of the update, and fails if its caller may not make it any more.
func (a *Activities) request(ctx context.Context, in deployments.ClaimInput) error {
	permitted := make(chan error, 1)
	go func() {
		permitted <- panics.Do("looking for who asked for an update", func() error { return a.permit(ctx, in) })
	}()
	return cmp.Or(a.putRequest(ctx, in), <-permitted)
}
