package collector

import (
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// alone runs a test in a process of its own, whose environment sets nothing of the collector but more.
func alone(t *testing.T, more ...string) bool {
	t.Helper()
	if os.Getenv("COLLECTOR_TEST") == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GOGC=") && !strings.HasPrefix(v, "GOMEMLIMIT=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(append(cmd.Env, "COLLECTOR_TEST="+t.Name()), more...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// settings returns when the collector runs, and the memory limit.
func settings() (percent int, limit int64) {
	percent = debug.SetGCPercent(-1)
	debug.SetGCPercent(percent)
	return percent, debug.SetMemoryLimit(-1)
}

func TestTheFirstCollectionBeginsWithTheMemoryInUseAndRestoresTheDefaults(t *testing.T) {
	if !alone(t) {
		return
	}
	if percent, limit := settings(); percent != -1 || limit != first {
		t.Fatalf("the collector runs at %d %%, with a limit of %d", percent, limit)
	}
	runtime.GC()
	waittest.Until(t, "the defaults are restored", func() bool { // finalizers have a goroutine of their own
		percent, limit := settings()
		return percent == 100 && limit == math.MaxInt64
	})
}

func TestAMemoryLimitThatWasSetSinceIsKept(t *testing.T) {
	if !alone(t) {
		return
	}
	Begin()
	debug.SetMemoryLimit(1 << 30)
	Begin()
	if percent, limit := settings(); percent != 100 || limit != 1<<30 {
		t.Errorf("the collector runs at %d %%, with a limit of %d", percent, limit)
	}
}

func TestTheSettingsOfTheUserWin(t *testing.T) {
	if !alone(t, "GOGC=150") {
		return
	}
	if percent, limit := settings(); percent != 150 || limit != math.MaxInt64 {
		t.Errorf("the collector runs at %d %%, with a limit of %d", percent, limit)
	}
}
