package worker

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sandbox"
)

// TestTheFilesOfProgramsLieWhereOtherOrganizationsPutNothingAboveThem has a TMPDIR as /tmp is.
func TestTheFilesOfProgramsLieWhereOtherOrganizationsPutNothingAboveThem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may run programs as other users")
	}
	base, err := os.MkdirTemp("/opt", "tempdir-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	everybodys, before := filepath.Join(base, "tmp"), roomy
	roomy = filepath.Join(base, "lib", "deployctl-worker")
	t.Cleanup(func() { roomy = before })
	if err := errors.Join(os.Mkdir(everybodys, 0o700), os.Chmod(everybodys, 0o777|os.ModeSticky), //nolint:gosec // as /tmp
		os.Chmod(base, 0o711)); err != nil { //nolint:gosec // passing through is all
		t.Fatal(err)
	}
	policy, _, err := sandbox.New(sandbox.Options{Mode: sandbox.RunAs, RunAs: "2000000900-2000000909",
		Record: filepath.Join(base, "users.json")})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", everybodys)
	dir, _, err := TemporaryDir(policy)
	if err == nil || !strings.Contains(err.Error(), "put files into "+everybodys+",") {
		t.Errorf("below what everybody may write to: %s, %v", dir, err)
	}
	t.Setenv("TMPDIR", "") // /tmp
	dir, remove, err := TemporaryDir(policy)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	if filepath.Dir(dir) != roomy {
		t.Errorf("without TMPDIR the files of programs are in %s", dir)
	}
	t.Setenv("TMPDIR", base)
	dir, removeOther, err := TemporaryDir(policy)
	if err != nil {
		t.Fatal(err)
	}
	defer removeOther()
	if filepath.Dir(dir) != base {
		t.Errorf("with a TMPDIR that is root's alone the files of programs are in %s", dir)
	}
}

// TestVolumesOfAContainerGetTheRightsOfDirectoriesOfAMachine has directories as new volumes of a container are.
func TestVolumesOfAContainerGetTheRightsOfDirectoriesOfAMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may run programs as other users")
	}
	base, err := os.MkdirTemp("/opt", "tempdir-")
	if err != nil {
		t.Fatal(err)
	}
	before, theirs := roomy, everybodys
	t.Cleanup(func() { roomy, everybodys = before, theirs; _ = os.RemoveAll(base) })
	roomy = filepath.Join(base, "deployctl-worker")
	everybodys = []string{filepath.Join(base, "tmp"), filepath.Join(base, "missing")}
	policy, _, err := sandbox.New(sandbox.Options{Mode: sandbox.RunAs, RunAs: "2000000900-2000000909",
		Record: filepath.Join(base, "users.json")})
	if err == nil {
		err = errors.Join(os.Chmod(base, 0o711), //nolint:gosec // passing through is all
			os.Mkdir(roomy, 0o700), os.Chmod(roomy, 0o777), //nolint:gosec // as a volume is
			os.Mkdir(everybodys[0], 0o700), os.Chmod(everybodys[0], 0o777)) //nolint:gosec // the same
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", "")
	left := filepath.Join(roomy, "go.work")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	SecureVolumes()
	if dir, _, err := TemporaryDir(policy); err == nil {
		t.Errorf("it uses %s, in which others may have put files", dir)
	}
	if err := os.Remove(left); err != nil {
		t.Fatal(err)
	}
	SecureVolumes()
	dir, remove, err := TemporaryDir(policy)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	info, err := os.Stat(roomy)
	if err != nil || filepath.Dir(dir) != roomy || info.Mode().Perm() != 0o711 {
		t.Errorf("the files of programs are in %s, and %s has %v, %v", dir, roomy, info.Mode(), err)
	}
	if info, err := os.Stat(everybodys[0]); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("%s has %v, %v", everybodys[0], info.Mode(), err)
	}
}
