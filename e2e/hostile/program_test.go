//go:build linux

// Package hostile plays programs, and other users of the machine, that mean harm to a service: what they try must come
// to nothing, and the service must go on.
package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// needle is a secret of the user's or the service's that no program is to find.
const needle = "NEEDLE-4711"

// thief is a program that looks for secrets in every place where it could find some. What it finds, it says.
const thief = `#!/bin/bash
echo "thief: begins"
for p in $PPID $(pgrep deployctl); do
  [ -d /proc/$p ] || continue
  echo "environ of $p: $(tr '\0' '\n' < /proc/$p/environ 2>&1)"
  # the text of a Go program begins there
  [ "$(dd if=/proc/$p/mem bs=4096 skip=1024 count=1 2> /dev/null | wc -c)" -gt 0 ] &&
    echo "LEAK: /proc/$p/mem can be read"
  for file in maps auxv stack; do
    # of a process that ends, an empty one can be read
    [ "$(head -c 64 /proc/$p/$file 2> /dev/null | wc -c)" -gt 0 ] && echo "LEAK: /proc/$p/$file can be read"
  done
  for file in /proc/$p/fd/*; do readlink $file > /dev/null 2>&1 && echo "LEAK: the files of $p can be seen"; done
  for link in cwd root exe; do
    readlink /proc/$p/$link > /dev/null 2>&1 && echo "LEAK: /proc/$p/$link leads somewhere"
  done
done
for place in $PLACES; do
  [ -d "$place" ] && place="$place/*"
  for file in $place; do [ -s "$file" ] && [ -f "$file" ] && echo "LEAK: $file: $(head -c 300 "$file")"; done
done
here=$PWD
while [ "$here" != / ]; do
  here=$(dirname "$here")
  for other in $(find "$here" -maxdepth 7 -name stolen.txt 2>/dev/null); do echo "LEAK: $(cat $other)"; done
  case $here in */organizations) break ;; esac
done
umount -a 2>/dev/null
unshare -Urm /bin/sh -c 'umount -l '"$HIDDEN"' 2>/dev/null; cat '"$HIDDEN"'/data/keys.json' 2>/dev/null &&
  echo "LEAK: what was hidden can be uncovered"
echo "thief: ends with user $(id -u)"
exit 1
`

// theft makes a project of the thief, who looks into places and tries to uncover a hidden directory.
func theft(t *testing.T, name, hidden string, places ...string) string {
	t.Helper()
	dir := t.TempDir()
	thief := strings.Replace(thief, "\n", "\nHIDDEN='"+hidden+"' PLACES='"+strings.Join(places, " ")+"'\n", 1)
	harness.Files{
		"Pulumi.yaml": "name: " + name + "\nruntime: {name: go, options: {binary: ./thief}}\n",
		"go.mod":      "module thief\n", "thief": thief,
	}.Write(t, dir)
	harness.Must(t, os.Chmod(filepath.Join(dir, "thief"), 0o700)) //nolint:gosec // it is run
	return dir
}

// empty makes sure that the thief ran to its end and found nothing.
func empty(t *testing.T, end harness.End, secrets ...string) {
	t.Helper()
	said := end.Stdout + end.Stderr
	if !strings.Contains(said, "thief: begins") || !strings.Contains(said, "thief: ends") {
		t.Fatalf("the thief did not run: %s", end.Said())
	}
	for _, secret := range append(secrets, "LEAK", needle) {
		for line := range strings.Lines(said) {
			if strings.Contains(line, secret) {
				t.Errorf("the program found: %s", line)
			}
		}
	}
}

func TestAProgramOnTheEmbeddedServiceFindsNoneOfItsSecrets(t *testing.T) {
	h := harness.NewHome(t, harness.Binary())
	h.Env = append(h.Env, "DEPLOYCTL_KEY="+needle, "DEPLOYCTL_S3_SECRET_ACCESS_KEY="+needle)
	h.Start(t)
	other := h.Deployctl(theft(t, "other", "/nowhere"))
	harness.Files{"stolen.txt": needle}.Write(t, other.Dir)
	other.Must(t, "stack", "init", "elsewhere/other/dev")
	other.Run(t, "up", "--yes", "--skip-preview", "--stack", "elsewhere/other/dev") // leaves its files on the worker

	state := h.State()
	p := h.Deployctl(theft(t, "thief", state, state, state+"/data", state+"/data/s3/deployctl", state+"/data/temporal",
		state+"/logs", state+"/locks"))
	p.Must(t, "stack", "init", "dev")
	end := p.Run(t, "up", "--yes", "--skip-preview")
	empty(t, end, h.S3(t).SecretKey)
}

func TestAProgramOnAWorkerFindsNoneOfItsSecrets(t *testing.T) {
	for mode, settings := range map[string][]string{
		"namespace": {"DEPLOYCTL_SANDBOX_MODE=namespace"},
		"run-as":    {"DEPLOYCTL_SANDBOX_RUN_AS=2000000000-2000000099"},
	} {
		t.Run(mode, func(t *testing.T) {
			if mode == "run-as" && os.Geteuid() != 0 {
				t.Skip("only root may run programs as other users")
			}
			if mode == "run-as" { // as in the test of a greedy program
				soaktest.Only(t)
			}
			base := open(t)
			h := harness.NewHome(t, harness.Binary())
			home, err := cluster.Prepare(t.Context(), h.Binary, h.Dir, h.Env)
			harness.Must(t, err)
			key := filepath.Join(h.Dir, "key")
			harness.Must(t, os.WriteFile(key, []byte(needle), 0o600))
			env := append(append(h.Env, settings...), "DEPLOYCTL_TEMPORAL_API_KEY_FILE=", "TMPDIR="+base,
				"DEPLOYCTL_S3_SECRET_ACCESS_KEY_FILE="+key, "AWS_SECRET_ACCESS_KEY="+needle)
			c, err := cluster.Start(t.Context(), h.Binary, h.Dir, env, home, home.S3Endpoint, 1)
			harness.Must(t, err)
			t.Cleanup(c.Stop)

			client := &harness.Tool{Path: h.Binary, Dir: theft(t, "other", "/nowhere"), Env: c.Env}
			harness.Files{"stolen.txt": needle}.Write(t, client.Dir)
			client.Must(t, "stack", "init", "elsewhere/other/dev")
			// leaves its files on the worker
			client.Run(t, "up", "--yes", "--skip-preview", "--stack", "elsewhere/other/dev")

			client.Dir = theft(t, "thief", base, key)
			client.Must(t, "stack", "init", "here/thief/dev")
			end := client.Run(t, "up", "--yes", "--skip-preview", "--stack", "here/thief/dev")
			empty(t, end, home.Keys.S3SecretKey)
			if mode == "run-as" && !strings.Contains(end.Stdout+end.Stderr, "ends with user 2000") {
				t.Errorf("it ran as somebody else: %s", end.Said())
			}
		})
	}
}

// open is a directory through which every user can pass, and above which none but root can put files.
func open(t *testing.T) string {
	t.Helper()
	parent := "/tmp"
	if os.Geteuid() == 0 {
		parent = "/opt"
	}
	dir, err := os.MkdirTemp(parent, "hostile-")
	harness.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	harness.Must(t, os.Chmod(dir, 0o711)) //nolint:gosec // passing through is all
	return dir
}
