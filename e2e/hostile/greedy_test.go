//go:build linux

package hostile

import (
	"os"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// greedy is a program that takes all it can get: processes, memory, disk and open files. It says how far it came.
const greedy = `#!/bin/bash
echo "greedy: begins"
head -c 2000000000 /dev/zero 2>/dev/null | tail -c 1000000000 2>/dev/null | wc -c |
  { read n; [ "$n" = 1000000000 ] && echo "GOT: a gigabyte of memory"; }
head -c 200000000 /dev/zero 2>/dev/null > file
[ "$(stat -c %s file)" = 200000000 ] && echo "GOT: a file of 200 MB"
ulimit -n 100000 2>/dev/null && echo "GOT: 100000 open files"
n=0
while [ $n -lt 1000 ]; do sleep 30 > /dev/null 2>&1 & n=$((n+1)); done 2>/dev/null
[ "$(jobs -r | wc -l)" -ge 1000 ] && echo "GOT: 1000 processes"
bomb() { bomb | bomb & }
bomb 2>/dev/null
echo "greedy: ends"
exit 1
`

func TestAProgramThatTakesAllItCanTakesNobodyDown(t *testing.T) {
	soaktest.Only(t)
	if os.Geteuid() != 0 {
		t.Skip("only root may run programs as other users")
	}
	base := open(t)
	h := harness.NewHome(t, harness.Binary())
	home, err := cluster.Prepare(t.Context(), h.Binary, h.Dir, h.Env)
	harness.Must(t, err)
	env := append(h.Env, "TMPDIR="+base, "DEPLOYCTL_SANDBOX_RUN_AS=2000000100-2000000199",
		"DEPLOYCTL_SANDBOX_MEMORY=200MiB",
		"DEPLOYCTL_SANDBOX_PROCESSES=200", "DEPLOYCTL_SANDBOX_FILE_SIZE=10MiB", "DEPLOYCTL_SANDBOX_OPEN_FILES=256")
	c, err := cluster.Start(t.Context(), h.Binary, h.Dir, env, home, home.S3Endpoint, 1)
	harness.Must(t, err)
	t.Cleanup(c.Stop)
	worker := c.Workers[0].PID()

	dir := t.TempDir()
	harness.Files{"Pulumi.yaml": "name: greedy\nruntime: {name: go, options: {binary: ./greedy}}\n",
		"go.mod": "module greedy\n", "greedy": greedy}.Write(t, dir)
	harness.Must(t, os.Chmod(dir+"/greedy", 0o700)) //nolint:gosec // it is run
	client := &harness.Tool{Path: h.Binary, Dir: dir, Env: c.Env}
	client.Must(t, "stack", "init", "org/greedy/dev")
	end := client.Run(t, "up", "--yes", "--skip-preview", "--stack", "org/greedy/dev")
	if said := end.Stdout + end.Stderr; strings.Contains(said, "GOT:") || !strings.Contains(said, "greedy: begins") {
		t.Errorf("the program says %s", end.Said())
	}
	if now := c.Workers[0].PID(); now != worker {
		t.Errorf("the worker was process %d and is %d", worker, now)
	}
	harness.Files{"greedy": "#!/bin/sh\necho fine\n"}.Write(t, dir)
	client.Must(t, "stack", "init", "other/greedy/dev") // another organization goes on
	if end := client.Run(t, "up", "--yes", "--skip-preview", "--stack", "other/greedy/dev"); end.Code != 0 {
		t.Errorf("another organization's update ends with %d: %s", end.Code, end.Said())
	}
}
