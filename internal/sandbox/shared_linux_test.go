package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sandbox/launcher"
	"github.com/deployctl/deployctl/internal/testkit/usertest"
	"golang.org/x/sys/unix"
)

func TestAProgramMakesNoUserNamespaceAndKeepsNoKeys(t *testing.T) {
	b := box(t, policy(t, Options{Mode: Namespace}), "mine", place(t))
	out, err := inBox(t, b, `unshare -U true && echo "WRONG: a user namespace"
(exec 9< /proc/sys/user/max_user_namespaces; read most <&9; [ "$most" = 0 ] || echo "WRONG: $most user namespaces")
for pid in 1 2 3; do (true) & done; wait
grep -c . /proc/keys 2>/dev/null; true`)
	if err != nil || strings.Contains(out, "WRONG") || !strings.Contains(out, "not permitted") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWhatTheKernelCountsForAUserIsBoundedInEachProgram(t *testing.T) {
	b := box(t, policy(t, Options{Mode: Namespace}), "mine", place(t))
	out, err := inBox(t, b, "cd /proc/sys/user; for name in *; do echo $name $(cat $name); done")
	if err != nil {
		t.Fatal(err, out)
	}
	for name, bound := range launcher.Counters {
		if _, err := os.Stat("/proc/sys/user/" + name); err == nil && !strings.Contains(out, fmt.Sprintln(name, bound)) {
			t.Errorf("%s is not %d: %s", name, bound, out)
		}
	}
}

// TestThePageSaysWhatBoundsWhatTheKernelCounts finds each counter of this system in the table of docs/sandbox.md.
func TestThePageSaysWhatBoundsWhatTheKernelCounts(t *testing.T) {
	if usertest.Again() {
		t.Skip("the page is not there")
	}
	page, err := os.ReadFile(pageOfReach)
	if err != nil {
		t.Fatal(err)
	}
	counters, err := os.ReadDir("/proc/sys/user")
	if err != nil {
		t.Fatal(err)
	}
	for _, counter := range counters {
		name := "`" + counter.Name() + "`"
		if strings.HasSuffix(counter.Name(), "_namespaces") && counter.Name() != "max_user_namespaces" {
			name = "`max_*_namespaces`"
		}
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/sandbox.md does not say what bounds %s", counter.Name())
		}
	}
	for name, bound := range launcher.Counters {
		if !strings.Contains(string(page), fmt.Sprintf("| `%s` | %d ", name, bound)) {
			t.Errorf("docs/sandbox.md does not say that %s is %d", name, bound)
		}
	}
}

// TestProgramsLeaveProcessesToTheWorker has a program start all processes that it may: the worker, and a program of
// another organization, start more.
func TestProgramsLeaveProcessesToTheWorker(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("the kernel counts none of root's: it is run as another user")
	}
	const most = 400
	// for the rest of this process, which has enough of them
	if err := syscall.Setrlimit(unix.RLIMIT_NPROC, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
		t.Fatal(err)
	}
	p, rooms := policy(t, Options{Mode: Namespace}), place(t)
	mine, others := box(t, p, "mine", rooms), box(t, p, "others", rooms)
	out, _ := inBox(t, mine, `grep processes /proc/self/limits; i=0
while [ $i -lt 1000 ]; do sleep 60 >/dev/null 2>&1 & i=$((i+1)); done; echo all`)
	if !strings.Contains(out, " "+strconv.Itoa(most*3/8)+" ") || strings.Contains(out, "all") {
		t.Errorf("a program may start too many processes: %s", out)
	}
	if out, err := inBox(t, others, "true && echo runs"); out != "runs\n" {
		t.Errorf("another program: %v %s", err, out)
	}
}

func TestAStartForWhichThereIsNoRoomIsRepeated(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EAGAIN, syscall.ENOSPC} {
		for _, err := range []error{
			explain(launcher.Failure{Errno: errno}, "/bin/true"),
			explain(launcher.Failure{Step: "enter namespaces", Errno: errno}, "the launcher"),
			(&Launch{}).Start(nil, func() error { return os.NewSyscallError("fork/exec", errno) }),
		} {
			if deployments.CodeOf(err) != deployments.CodeUnavailable || !errors.Is(err, errno) {
				t.Errorf("%v", err)
			}
		}
	}
	if err := explain(launcher.Failure{Errno: syscall.ENOENT}, "/x"); deployments.CodeOf(err) ==
		deployments.CodeUnavailable {
		t.Errorf("%v is repeated", err)
	}
}
