package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// policyPackFile is the file that makes a directory a policy pack.
const policyPackFile = "PulumiPolicy.yaml"

// PolicyPackDir returns the directory that a bundle has for its nth policy pack, which is in dir. It ends in the name
// of that, by which messages call the pack.
func PolicyPackDir(n int, dir string) string {
	name := filepath.Base(filepath.Clean(dir))
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Trim(name, "./\\ ") == "" {
		name = "pack"
	}
	return fmt.Sprintf(".deployctl-policies/%d/%s", n, name)
}

// policyPack adds the files of the nth policy pack, those that its .deployctlignore does not exclude.
func (w *walker) policyPack(n int, dir string) error {
	dir, err := filepath.Abs(dir)
	inBundle := PolicyPackDir(n, dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the policy pack cannot be read; correct --policy-pack: %w",
			err)
	}
	file := filepath.Join(dir, policyPackFile)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return deployments.Errorf(deployments.CodeInvalid, "%s is not a policy pack: it has no %s; name the directory of "+
			"one with --policy-pack", dir, policyPackFile)
	}
	if _, err := workspace.LoadPolicyPack(file); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%s is not valid; correct it and try again: %w", file, err)
	}
	pack := walker{roots: []string{dir}, base: dir}
	if err := pack.enter(dir); err != nil {
		return err
	}
	w.dirs = append(w.dirs, pack.dirs...)
	for name, from := range pack.found {
		w.found[path.Join(inBundle, name)] = from
	}
	return nil
}
