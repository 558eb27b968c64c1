package devserver

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

func TestATakenPortIsRefusedByNameOfItsOwner(t *testing.T) {
	home := newHome(t)
	h, err := openHome(home)
	must(t, err)
	data, err := ensureData(t.Context(), h, Ports{}, new(reserved))
	must(t, err)
	owner := spawn(t, "listener", address(data.ports.UI))
	owner.says(t, "listening")
	_, err = Start(t.Context(), options(home))
	var taken *PortTakenError
	if !errors.As(err, &taken) || taken.Port != data.ports.UI || taken.Use != "the Web UI" {
		t.Fatalf("the start says %v", err)
	}
	if want := describe(owner.Process.Pid); taken.Owner != want {
		t.Errorf("the owner is %q, want %q", taken.Owner, want)
	}
	owner.kill()
	start(t, home)
}

func TestTheS3ServerDiesWithItsParent(t *testing.T) {
	home := newHome(t)
	p := spawn(t, "service", home)
	p.says(t, "running")
	before, err := ReadStatus(home)
	must(t, err)
	p.kill()
	h := filepath.Join(home, "locks", lockS3)
	waittest.Until(t, "no process has the objects open", func() bool {
		processes, _ := filepath.Glob("/proc/[0-9]*")
		return !slices.ContainsFunc(processes, func(process string) bool {
			return holds(process, func(target string) bool { return target == h })
		})
	})
	after := start(t, home)
	if !slices.Equal(after.Status.Gone, []string{before.Instance}) {
		t.Errorf("gone are %v, want %s", after.Status.Gone, before.Instance)
	}
}
