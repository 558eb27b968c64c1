package access

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/deployctl/deployctl/deployments"
)

func TestAReadOfATokenIsSharedAndEndsWithTheLastWhoWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lookups
		reads := 0
		ended := make(chan error, 2)
		slow := func(ctx context.Context) (knownCaller, error) {
			reads++
			<-ctx.Done()
			ended <- ctx.Err()
			return knownCaller{}, ctx.Err()
		}
		leave := make([]context.CancelFunc, 2)
		left := make(chan error)
		for i := range leave {
			ctx, cancel := context.WithCancel(t.Context())
			leave[i] = cancel
			go func() {
				_, err := l.join(ctx, "key", slow)
				left <- err
			}()
			synctest.Wait()
		}
		leave[0]()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves gets %v", err)
		}
		synctest.Wait()
		if len(ended) > 0 || reads != 1 {
			t.Fatalf("%d reads; that of who stays has ended: %v", reads, len(ended) > 0)
		}
		leave[1]()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who leaves last gets %v", err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the read ended with %v", err)
		}
		found, err := l.join(t.Context(), "key", func(context.Context) (knownCaller, error) {
			return knownCaller{Caller: deployments.Caller{Token: "ann"}}, nil
		})
		if err != nil || found.Token != "ann" || len(l.running) != 0 {
			t.Errorf("another read found %+v, %v; %d are under way", found, err, len(l.running))
		}
	})
}
