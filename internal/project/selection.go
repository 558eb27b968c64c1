package project

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/deployments"
)

// Selections remembers which stack of each project is selected, a small file per project directory below Dir.
type Selections struct{ Dir string }

// selection is the content of such a file; the directory is there for people.
type selection struct {
	Project string `json:"project"`
	Stack   string `json:"stack"`
}

// DefaultSelections is ${XDG_STATE_HOME}/deployctl/workspaces, or ~/.local/state/deployctl/workspaces.
func DefaultSelections(variable func(string) string) Selections {
	base := variable("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(variable("HOME"), ".local", "state")
	}
	return Selections{Dir: filepath.Join(base, "deployctl", "workspaces")}
}

func (s Selections) path(p *Project) string {
	sum := sha256.Sum256([]byte(p.Dir))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:8])+".json")
}

// Selected gives the selected stack, as ORG/PROJECT/STACK; empty when none is.
func (s Selections) Selected(p *Project) (string, error) {
	text, err := os.ReadFile(s.path(p))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var found selection
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		return "", deployments.Errorf(deployments.CodeInvalid, "cannot read which stack is selected; select one with deployctl stack select: %w", err)
	}
	return found.Stack, nil
}

// Select remembers a stack; an empty one forgets it.
func (s Selections) Select(p *Project, stack string) error {
	if stack == "" {
		if err := os.Remove(s.path(p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.Marshal(selection{p.Dir, stack})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	return replaceFile(s.path(p), append(text, '\n'))
}

// replaceFile writes a file so that a reader sees the old or the new one, whole.
func replaceFile(path string, text []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(text)
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
