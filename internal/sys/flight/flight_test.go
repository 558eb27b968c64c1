package flight

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/deployctl/deployctl/internal/sys/panics"
)

func TestAllWhoAskAtOnceWaitForOneCallAndLeaveWhenTheyLike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[int]
		calls, answer := 0, make(chan int)
		ask := func(ctx context.Context) (int, error) {
			return g.Do(ctx, "k", "asking", func(ctx context.Context) (int, error) {
				calls++
				return <-answer, ctx.Err()
			})
		}
		first, leave := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		asking.Go(func() {
			if _, err := ask(first); !errors.Is(err, context.Canceled) {
				t.Errorf("who leaves is told %v", err)
			}
		})
		synctest.Wait()
		for range 3 {
			asking.Go(func() {
				if n, err := ask(t.Context()); n != 7 || err != nil {
					t.Errorf("who waits gets %d, %v", n, err)
				}
			})
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		answer <- 7
		asking.Wait()
		if calls != 1 {
			t.Errorf("%d calls are made", calls)
		}
	})
}

func TestAPanicIsAnErrorOfAllWhoAsk(t *testing.T) {
	var g Group[error]
	_, err := g.Do(t.Context(), "k", "asking", func(context.Context) (error, error) { panic("at once") })
	var defect *panics.PanicError
	if !errors.As(err, &defect) {
		t.Errorf("it ends with %v", err)
	}
	none, err := g.Do(t.Context(), "k", "asking", func(context.Context) (error, error) { return nil, nil })
	if none != nil || err != nil {
		t.Errorf("afterwards it ends with %v, %v", none, err)
	}
}

func TestWhatIsForgottenIsCalledAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group[int]
		held := make(chan struct{})
		go func() {
			_, _ = g.Do(t.Context(), "k", "asking", func(context.Context) (int, error) { <-held; return 1, nil })
		}()
		synctest.Wait()
		g.Forget("k")
		n, err := g.Do(t.Context(), "k", "asking", func(context.Context) (int, error) { return 2, nil })
		if n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		close(held)
	})
}
