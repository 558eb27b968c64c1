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

// Selections remembers which stack of each project is selected, and from which directory a stack was last updated:
// small files below Dir, one for each project directory and one for each stack.
type Selections struct{ Dir string }

// selection is the content of such a file.
type selection struct {
	Project string `json:"project"` // its directory
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
		return "", deployments.Errorf(deployments.CodeInvalid, "cannot read which stack is selected; select one with "+
			"deployctl stack select: %w", err)
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
	return s.write(s.path(p), selection{p.Dir, stack})
}

func (s Selections) write(path string, content selection) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	return replaceFile(path, append(text, '\n'))
}

func (s Selections) updatePath(server, stack string) string {
	sum := sha256.Sum256([]byte(server + " " + stack))
	return filepath.Join(s.Dir, "update-"+hex.EncodeToString(sum[:8])+".json")
}

// Updated remembers that a stack of the service at server is updated from a project's directory.
func (s Selections) Updated(p *Project, server, stack string) error {
	return s.write(s.updatePath(server, stack), selection{p.Dir, stack})
}

// OtherDirectory returns another directory than p's from which this user last updated the stack, if the project there
// has p's name still; else "".
func (s Selections) OtherDirectory(p *Project, server, stack string) string {
	var last selection
	text, err := os.ReadFile(s.updatePath(server, stack))
	if err != nil || json.Unmarshal(text, &last) != nil || last.Project == p.Dir {
		return ""
	}
	other, err := Find(last.Project)
	if err != nil || other.Dir != last.Project || other.Name() != p.Name() {
		return ""
	}
	return other.Dir
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
