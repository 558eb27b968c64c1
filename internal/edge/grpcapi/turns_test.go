package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// kept has a message that takes no memory.
func kept(context.Context) error { return nil }

// TestAMessageThatWaitsForMemoryKeepsItsTurn has messages arrive that cannot have their memory: no more are received
// than there are places, and one gives way to another organization.
func TestAMessageThatWaitsForMemoryKeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounds(nil)
		received, ended := 0, make(chan error, 2*readers)
		for range 2 * readers {
			go func() {
				ended <- b.first(t.Context(), sender{"evil", "host", "eve"}, nil, func(context.Context) error {
					received++
					return nil
				}, func(turn context.Context) error {
					<-turn.Done()
					return turn.Err()
				})
			}()
			synctest.Wait()
		}
		if received != readers {
			t.Errorf("%d messages are in memory, of %d places", received, readers)
		}
		if err := b.first(t.Context(), sender{"acme", "host", "ann"}, nil, kept, kept); err != nil {
			t.Errorf("another organization is answered %v", err)
		}
		if err := <-ended; !errors.Is(err, errTurn) {
			t.Errorf("who gives way is answered %v", err)
		}
	})
}

// TestAnOrganizationWhoseMessagesDoNotArriveHoldsUpOnlyItself has one take all places with many tokens, and more wait.
func TestAnOrganizationWhoseMessagesDoNotArriveHoldsUpOnlyItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounds(nil)
		ended := make(chan error, 10*readers)
		for i := range 10 * readers {
			evil := deployments.Caller{Token: fmt.Sprint("evil-", i), Authority: deployments.Authority{
				Grants: [][]deployments.Grant{{{Role: viewer, Organization: "evil"}}}}}
			of := sender{evil.Party(""), "host", evil.Token} // of several, some would give way to each other
			go func() {
				ended <- b.first(t.Context(), of, nil, func(context.Context) error {
					<-t.Context().Done()
					return nil
				}, kept)
			}()
		}
		synctest.Wait()
		began := time.Now()
		if err := b.first(t.Context(), sender{"acme", "host", "ann"}, nil, kept, kept); err != nil ||
			time.Since(began) > turnTime {
			t.Errorf("another organization waits for %s: %v", time.Since(began), err)
		}
		if err := <-ended; !errors.Is(err, errTurn) {
			t.Errorf("who gives way is answered %v", err)
		}
		if err := <-ended; errors.Is(err, errTurn) {
			t.Error("two give way to one")
		}
		for range 10*readers - 2 {
			if err := <-ended; errors.Is(err, errTurn) {
				t.Error("more than one give way")
			}
		}
		if len(b.reading.taken)+b.reading.all.waiting+b.reading.all.taken+len(b.reading.all.parts) > 0 {
			t.Errorf("something stays: %+v", b.reading)
		}
	})
}

func TestWithinAnOrganizationAHostOrATokenHoldsUpOnlyItselfAndNobodyWhoHasNoMoreGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places := newTurns(2)
		var stopped []string
		enter := func(organization, host, token string) (func(), time.Duration) {
			began := time.Now()
			leave, err := places.enter(t.Context(), sender{organization, host, token}, time.Minute, func() {
				stopped = append(stopped, host+" "+token)
			})
			if err != nil {
				return nil, time.Since(began)
			}
			return leave, time.Since(began)
		}
		enter("acme", "one", "ann")
		enter("acme", "one", "ann")
		leaveBob, waited := enter("acme", "one", "bob")
		if waited != turnTime || len(stopped) != 1 {
			t.Errorf("another token waits for %s, and %q give way", waited, stopped)
		}
		leaveTwo, waited := enter("acme", "two", "ann")
		if waited > turnTime || len(stopped) != 2 {
			t.Errorf("another host waits for %s, and %q give way", waited, stopped)
		}
		if leave, waited := enter("acme", "three", "ann"); leave != nil || waited != time.Minute || len(stopped) != 2 {
			t.Errorf("one gives way to who would have as much: %q", stopped)
		}
		leaveTwo()
		leaveBob()
		if _, waited := enter("other", "one", "eve"); waited > 0 {
			t.Errorf("a free place is given after %s", waited)
		}
	})
}
