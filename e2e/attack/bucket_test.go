//go:build unix

package attack

import (
	"bufio"
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// bucketAttacks are those of whoever can read and write the bucket, but does not have the service's key.
var bucketAttacks = []attack{
	{"bucket/read-secrets", readSecrets},
	{"bucket/altered-object", alteredObject},
	{"bucket/moved-object", movedObject},
	{"bucket/damage-hides-others", damageHidesOthers},
	{"bucket/taken-places", takenPlaces},
	{"bucket/new-objects", newObjects},
	{"bucket/older-head", olderHead},
	{"bucket/lost-save", lostSave},
	{"bucket/foreign-keys", foreignKeys},
}

// objects is the directory in which the embedded S3 server keeps the bucket.
func (f *field) objects(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(f.State(), "data", "s3", "*", "stacks"))
	harness.Must(t, err)
	if len(found) != 1 {
		t.Fatalf("there are %d buckets with stacks: %v", len(found), found)
	}
	return filepath.Dir(found[0])
}

// offline changes what is stored while the service is down, so that nothing of it is in memory.
func (f *field) offline(t *testing.T, change func(bucket string)) {
	t.Helper()
	bucket := f.objects(t)
	f.Deployctl(f.Dir).Must(t, "dev", "stop")
	change(bucket)
	f.Start(t)
}

// rewrite changes one stored object, and returns what puts it back.
func rewrite(t *testing.T, path string, change func([]byte) []byte) (restore func()) {
	t.Helper()
	before, err := os.ReadFile(path)
	harness.Must(t, err)
	after := change(bytes.Clone(before))
	if bytes.Equal(before, after) {
		t.Fatalf("%s is not changed", path)
	}
	harness.Must(t, os.WriteFile(path, after, 0o600))
	return func() { harness.Must(t, os.WriteFile(path, before, 0o600)) }
}

// newest is the last of the objects that match a pattern; 10 comes after 9.
func newest(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	harness.Must(t, err)
	if len(found) == 0 {
		t.Fatalf("nothing is stored as %s", pattern)
	}
	return slices.MaxFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
	})
}

func readSecrets(t *testing.T, f *field) {
	unzip, err := zstd.NewReader(nil)
	harness.Must(t, err)
	seen := 0
	harness.Must(t, filepath.WalkDir(f.objects(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		noSecrets(t, path, string(data))
		if plain, err := unzip.DecodeAll(data, nil); err == nil {
			noSecrets(t, path, string(plain))
		}
		return nil
	}))
	if seen < 5 {
		t.Errorf("only %d objects were read", seen)
	}
}

// refusesToGoOn runs a command of the victim over a damaged object until it ends or says which object that is,
// whichever is first: an update waits for the repair. What it had begun goes on after that.
func (f *field) refusesToGoOn(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(patient(t), f.victim.Path, args...)
	cmd.Dir, cmd.Env = f.victim.Dir, f.victim.Env
	out, err := cmd.StdoutPipe()
	harness.Must(t, err)
	cmd.Stderr = cmd.Stdout
	harness.Must(t, cmd.Start())
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "stacks/organization/precious/dev/") {
			_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended by itself
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(said.String(), "stacks/organization/precious/dev/") {
		t.Errorf("%v ends with %v and does not name the damaged object: %s", args, err, said.String())
	}
}

// letter changes a letter of an object's id in a stored JSON text, which stays valid JSON.
func letter(data []byte) []byte {
	for _, at := range []string{`"version":`, `"stack`, `"project`, `"`} {
		if i := bytes.Index(data, []byte(at)); i >= 0 {
			data[i+1] ^= 0x01
			return data
		}
	}
	data[len(data)/2] ^= 0x01
	return data
}

// swapped changes an object's id within a checkpoint: the state stays well-formed, and names what is not the stack's.
func swapped(t *testing.T) func([]byte) []byte {
	return func(data []byte) []byte {
		t.Helper()
		unzip, err := zstd.NewReader(nil)
		harness.Must(t, err)
		plain, err := unzip.DecodeAll(data, nil)
		harness.Must(t, err)
		zip, err := zstd.NewWriter(nil)
		harness.Must(t, err)
		return zip.EncodeAll(bytes.ReplaceAll(plain, []byte("precious-dev"), []byte("precious-own")), nil)
	}
}

func alteredObject(t *testing.T, f *field) {
	for name, change := range map[string]struct {
		pattern string
		with    func([]byte) []byte
	}{
		"a letter of the head":           {"head.json", letter},
		"an id in the newest checkpoint": {"checkpoints/*", swapped(t)},
	} {
		t.Run(name, func(t *testing.T) {
			if change.pattern == "head.json" {
				soaktest.Only(t)
			}
			var restore func()
			f.offline(t, func(bucket string) {
				restore = rewrite(t, newest(t, filepath.Join(bucket, "stacks/organization/precious/dev",
					change.pattern)), change.with)
			})
			for _, command := range [][]string{{"destroy", "--yes", "--skip-preview"}, {"stack", "export"}} {
				f.refusesToGoOn(t, command...)
			}
			f.offline(t, func(string) { restore() })
		})
	}
}

// movedObject puts what was stored for one stack in the place of another's.
func movedObject(t *testing.T, f *field) {
	other := f.project(t, "other", "steps: []\n")
	other.Update(t, "up")
	for _, object := range []string{"head.json", "checkpoints/*"} {
		var restore func()
		f.offline(t, func(bucket string) {
			from, err := os.ReadFile(newest(t, filepath.Join(bucket, "stacks/organization/other/dev", object)))
			harness.Must(t, err)
			restore = rewrite(t, newest(t, filepath.Join(bucket, "stacks/organization/precious/dev", object)),
				func([]byte) []byte { return from })
		})
		f.refusesToGoOn(t, "destroy", "--yes", "--skip-preview")
		f.offline(t, func(string) { restore() })
	}
}

func damageHidesOthers(t *testing.T, f *field) {
	prey := f.project(t, "damaged", "steps: []\n")
	prey.Update(t, "up")
	prey.Update(t, "refresh")
	var restore []func()
	f.offline(t, func(bucket string) {
		cut := func(data []byte) []byte { return data[:len(data)/2] }
		for _, object := range []string{"head.json", "history/*"} {
			restore = append(restore, rewrite(t, newest(t, filepath.Join(bucket, "stacks/organization/damaged/dev",
				object)), cut))
		}
		stray := filepath.Join(bucket, "tokens", "stray")
		harness.Must(t, os.MkdirAll(filepath.Dir(stray), 0o700))
		harness.Must(t, os.WriteFile(stray, []byte("no token"), 0o600))
	})
	if said := f.victim.Run(t, "stack", "ls", "--all").Said(); !strings.Contains(said, "precious") ||
		!strings.Contains(said, "damaged") {
		t.Errorf("stack ls does not show both stacks: %s", said)
	}
	if end := f.victim.Run(t, "token", "ls"); !strings.Contains(end.Said(), "stray") {
		t.Errorf("token ls does not name the stray object: %s", end.Said())
	}
	f.offline(t, func(bucket string) {
		for _, r := range restore {
			r()
		}
		harness.Must(t, os.Remove(filepath.Join(bucket, "tokens", "stray")))
	})
}
