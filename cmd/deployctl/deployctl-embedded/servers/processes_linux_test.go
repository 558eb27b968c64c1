package servers_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

func TestATakenPortIsRefusedByNameOfItsOwner(t *testing.T) {
	home := newHome(t)
	must(t, start(t, home).Close(t.Context()))
	port := keptPorts(t, home).UI
	owner := spawn(t, "listener", address(port))
	owner.says(t, "listening")
	_, err := devserver.Start(t.Context(), options(home))
	var taken *devserver.PortTakenError
	if !errors.As(err, &taken) || taken.Port != port || taken.Use != "the Web UI" {
		t.Fatalf("the start says %v", err)
	}
	if want := fmt.Sprintf("process %d (%s", owner.Process.Pid, os.Args[0]); !strings.HasPrefix(taken.Owner, want) {
		t.Errorf("the owner is %q, want %q)", taken.Owner, want)
	}
	owner.kill()
	start(t, home)
}

func TestTheS3ServerDiesWithItsParent(t *testing.T) {
	home := newHome(t)
	p := spawn(t, "service", home)
	p.says(t, "running")
	before, err := devserver.ReadStatus(home)
	must(t, err)
	p.kill()
	lock := filepath.Join(home, "locks", "s3")
	waittest.Until(t, "no process has the objects open", func() bool {
		files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
		return !slices.ContainsFunc(files, func(file string) bool {
			target, err := os.Readlink(file)
			return err == nil && target == lock
		})
	})
	after := start(t, home)
	if !slices.Equal(after.Status.Gone, []string{before.Instance}) {
		t.Errorf("gone are %v, want %s", after.Status.Gone, before.Instance)
	}
}
