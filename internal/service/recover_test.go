package service

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore"
)

func TestRecoveringIsOverWhenAnImportEndsByItself(t *testing.T) {
	s, f := newFake(t)
	claim, err := s.Claim(t.Context(), statestore.Claimant{Update: deployments.UpdateName{StackName: dev, Version: "1"},
		Writer: "#import-1"})
	must(t, err)
	f.recovered = func() error {
		return s.Commit(t.Context(), claim, statestore.Written{Version: 1, Digest: "d"})
	}
	info, err := s.Recover(waittest.Context(t), deployments.RecoverRequest{Stack: dev})
	if err != nil || info.Update.Version != "" {
		t.Errorf("it came to %+v, %v", info, err)
	}
}

func TestAFailedStackRecoverSaysWhatToRepair(t *testing.T) {
	s, f := newFake(t)
	_, err := s.Claim(t.Context(), statestore.Claimant{Update: deployments.UpdateName{StackName: dev, Version: "1"},
		Writer: "w#1"})
	must(t, err)
	f.recovered = func() error {
		return refused(deployments.CodeFormat, "checkpoints/1 is damaged")
	}
	_, err = s.Recover(t.Context(), deployments.RecoverRequest{Stack: dev})
	if deployments.CodeOf(err) != deployments.CodeFormat ||
		err.Error() != "checkpoints/1 is damaged" {
		t.Errorf("it came to %s: %v", deployments.CodeOf(err), err)
	}
}

// TestAWatcherHasAnUpdateRecoveredThatTemporalHasLost holds that who waits for an update sees its end although Temporal
// knows none of its workflows any more, and although nobody asks anything else of the stack.
func TestAWatcherHasAnUpdateRecoveredThatTemporalHasLost(t *testing.T) {
	warmed(t)
	synctest.Test(t, func(t *testing.T) {
		s, f := newFake(t)
		lost := deployments.UpdateName{StackName: dev, Version: "1"}
		_, err := s.Claim(t.Context(), statestore.Claimant{Update: lost, Writer: "w#1"})
		must(t, err)
		must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: lost, Status: deployments.StatusRunning}))
		f.active = &lost
		f.recovered = func() error {
			closeLog(t, s, deployments.UpdateInfo{Update: lost, Status: "failed", Error: "its workflow was ended from outside"})
			return nil
		}
		said, status := watchedToItsEnd(t, s, lost)
		if status != "failed" || !strings.Contains(said, "Temporal has no workflow of "+lost.String()) {
			t.Errorf("it ended %q and said %q", status, said)
		}
	})
}
