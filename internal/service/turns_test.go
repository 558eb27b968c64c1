package service

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// waitInLine starts a start, and appends its name to turns when its turn has come; it leaves when it is told to.
func waitInLine(t *testing.T, s *startTurns, turns *[]string, organization, name string) (leave chan struct{}) {
	leave = make(chan struct{})
	go func() {
		end, err := s.start(t.Context(), organization)
		if err != nil {
			t.Error(err)
			return
		}
		*turns = append(*turns, name)
		<-leave
		end()
	}()
	synctest.Wait()
	return leave
}

func TestStartsTakeTurnsByOrganizationAndEndsAreNeverHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &startTurns{most: 1}
		var turns []string
		var leaves []chan struct{}
		for _, start := range [][2]string{{"a", "a1"}, {"a", "a2"}, {"a", "a3"}, {"b", "b1"}, {"a", "a4"}, {"c", "c1"}} {
			leaves = append(leaves, waitInLine(t, s, &turns, start[0], start[1]))
		}
		ends := []func(){s.end(), s.end()}
		for _, leave := range leaves {
			close(leave)
		}
		synctest.Wait()
		if !slices.Equal(turns, []string{"a1"}) {
			t.Errorf("%v started beside two ends", turns)
		}
		for _, end := range ends {
			end()
			end() // counts once
		}
		synctest.Wait()
		if !slices.Equal(turns, []string{"a1", "a2", "b1", "c1", "a3", "a4"}) || s.taken != 0 {
			t.Errorf("the turns were %v, and %d are taken", turns, s.taken)
		}
	})
}

func TestAStartOrAnEndThatTakesLongLosesItsTurnOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &startTurns{most: 1}
		var turns []string
		defer s.end()()
		first := waitInLine(t, s, &turns, "a", "first")
		second := waitInLine(t, s, &turns, "a", "second")
		for _, want := range [][]string{{"first"}, {"first", "second"}} {
			time.Sleep(startTurn)
			synctest.Wait()
			if !slices.Equal(turns, want) {
				t.Errorf("the turns were %v, want %v", turns, want)
			}
		}
		close(first)
		close(second)
		synctest.Wait()
		if s.taken != 0 {
			t.Errorf("%d turns are taken", s.taken)
		}
	})
}

func TestAStartThatIsGivenUpKeepsNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &startTurns{most: 1}
		leave := s.end()
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error)
		go func() {
			_, err := s.start(ctx, "a")
			failed <- err
		}()
		synctest.Wait()
		var turns []string
		close(waitInLine(t, s, &turns, "a", "next"))
		cancel(gone)
		if err := <-failed; !errors.Is(err, gone) {
			t.Errorf("the start that was given up: %v", err)
		}
		leave()
		synctest.Wait()
		if !slices.Equal(turns, []string{"next"}) || s.taken != 0 || len(s.waiting) != 0 {
			t.Errorf("the turns were %v; %d are taken, %d lines wait", turns, s.taken, len(s.waiting))
		}
		// A turn that came as it was given up goes to the next.
		granted := make(chan struct{})
		s.taken = 1
		s.withdraw(granted)
		if s.taken != 0 {
			t.Error("a turn that nobody wants is kept")
		}
	})
}
