//go:build unix

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// inMemory is what the lock file of plugins cannot have as a field: the error about it shows it.
const inMemory = "needle-in-memory"

// filesOfProcesses leaves, where the service looks for a file of the bundle, links by way of a process of its user: the
// service could follow them, and the program cannot. A link to a file of the program's own shows that the service looks
// there, and what it would say.
func filesOfProcesses(t *testing.T, f *field) {
	sandboxed(t)
	removed, err := os.CreateTemp(t.TempDir(), "")
	harness.Must(t, err)
	shared, err := os.CreateTemp("/dev/shm", "attack-")
	harness.Must(t, err)
	t.Cleanup(func() { _ = os.Remove(shared.Name()) })
	for _, file := range []*os.File{removed, shared} {
		_, err := file.WriteString(inMemory + ": 1\n")
		harness.Must(t, err)
	}
	harness.Must(t, os.Remove(removed.Name()))
	holder := exec.Command("sleep", "600")
	holder.ExtraFiles = []*os.File{removed}
	harness.Must(t, holder.Start())
	t.Cleanup(func() { _, _ = holder.Process.Kill(), holder.Wait() })
	proc := fmt.Sprintf("/proc/%d/", holder.Process.Pid)
	for _, way := range []struct {
		name, target string
		shown        bool
	}{
		{"own", "own.lock", true},
		{"open-file", proc + "fd/3", false},
		{"file-system", proc + "root" + shared.Name(), false},
		{"service", "/proc/self/root" + shared.Name(), false},
	} {
		tool, found := f.script(t, "magic-"+way.name, `
cd "$(dirname "$0")"
echo '`+inMemory+`: 1' > own.lock
cat `+way.target+` >> $FOUND 2>&1
ln -sfn `+way.target+` deployctl.lock && echo "left $(readlink deployctl.lock)" >> $FOUND`)
		tool.Run(t, "up", "--yes", "--skip-preview")
		said := found()
		if !strings.Contains(said, "left "+way.target) || strings.Contains(said, inMemory) != way.shown {
			t.Errorf("%s: the program says %s", way.name, said)
		}
		if end := tool.Run(t, "up", "--yes", "--skip-preview"); strings.Contains(end.Said(), inMemory) != way.shown {
			t.Errorf("%s: the update shows: %s", way.name, end.Said())
		}
	}
}

// leftProcesses detaches processes from its session and group, whose parents end. One of each writes into the
// organization's home for as long as it lives.
func leftProcesses(t *testing.T, f *field) {
	sandboxed(t)
	tool, found := f.script(t, "leaver", `
pulse="$HOME/pulse-$$"
for n in 1 2 3; do
	(setsid bash -c "while :; do date +%s%N > $pulse-$n; sleep 0.05; done" </dev/null >/dev/null 2>&1 &)
done
until [ -s $pulse-1 -a -s $pulse-2 -a -s $pulse-3 ]; do sleep 0.05; done
for n in 1 2 3; do pgrep -f "$pulse-$n" >> $FOUND; done
echo "pulse $pulse" >> $FOUND`)
	tool.Run(t, "up", "--yes", "--skip-preview")
	_, pulse, said := strings.Cut(found(), "pulse ")
	pulse, _, _ = strings.Cut(pulse, "\n")
	if !said || pulse == "" {
		t.Fatal("the program has left nothing")
	}
	harness.Eventually(t, "the processes that the program has left end", func() bool { return !runs(t, pulse) })
}

// runs reports whether a process whose command line has a text has not ended.
func runs(t *testing.T, text string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	harness.Must(t, err)
	for _, line := range lines {
		if said, err := os.ReadFile(line); err == nil && strings.Contains(string(said), text) {
			return true
		}
	}
	return false
}

// userNamespaces makes what all programs of the user have only so many of.
func userNamespaces(t *testing.T, f *field) {
	sandboxed(t)
	tool, found := f.script(t, "namespaces", `
for kind in --mount --net --pid; do unshare --user $kind true && echo "GOT: $kind" >> $FOUND; done`)
	tool.Run(t, "up", "--yes", "--skip-preview")
	if said := found(); strings.Contains(said, "GOT:") {
		t.Errorf("the program says %s", said)
	}
}
