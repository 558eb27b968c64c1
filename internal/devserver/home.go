package devserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/deployments"
)

// DefaultHome is where the embedded service lives unless told otherwise: ${XDG_STATE_HOME}/deployctl, or
// ~/.local/state/deployctl.
func DefaultHome() (string, error) {
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "deployctl"), nil
	}
	user, err := os.UserHomeDir()
	if err != nil {
		return "", deployments.Errorf(deployments.CodeInvalid, "there is no home directory for the embedded service; "+
			"set HOME, XDG_STATE_HOME or --home: %w", err)
	}
	return filepath.Join(user, ".local", "state", "deployctl"), nil
}

// home is the absolute path of a home directory; its methods name what lies below it.
type home string

// findHome makes an absolute path of a home's name, the default one for an empty name. It touches nothing.
func findHome(path string) (home, error) {
	if path == "" {
		found, err := DefaultHome()
		if err != nil {
			return "", err
		}
		path = found
	}
	path, err := filepath.Abs(path)
	return home(path), err
}

// openHome makes the directories of a home, private to this user.
func openHome(path string) (home, error) {
	h, err := findHome(path)
	if err != nil {
		return "", err
	}
	for _, dir := range []string{string(h), h.locks(), h.logs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("make the service's home: %w", err)
		}
	}
	return h, os.Chmod(string(h), 0o700)
}

func (h home) locks() string       { return filepath.Join(string(h), "locks") }
func (h home) logs() string        { return filepath.Join(string(h), "logs") }
func (h home) trash() string       { return filepath.Join(string(h), "trash") }
func (h home) status() string      { return filepath.Join(string(h), "service.json") }
func (h home) data() string        { return filepath.Join(string(h), "data") }
func (h home) keys() string        { return filepath.Join(h.data(), "keys.json") }
func (h home) ports() string       { return filepath.Join(h.data(), "ports.json") }
func (h home) identity() string    { return filepath.Join(h.data(), "temporal.pem") }
func (h home) certificate() string { return filepath.Join(h.data(), "certificate.pem") }
func (h home) temporal() string    { return filepath.Join(h.data(), "temporal") }
func (h home) database() string    { return filepath.Join(h.temporal(), "temporal.db") }
func (h home) schema() string      { return filepath.Join(h.temporal(), "schema.json") }
func (h home) objects() string     { return filepath.Join(h.data(), "s3") }
func (h home) objectMeta() string  { return filepath.Join(h.data(), "s3meta") }

// objectSocket is there while the S3 server starts.
func (h home) objectSocket() string { return filepath.Join(h.data(), "s3.sock") }

// exists says whether there is something at path; an error other than absence counts as there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// readJSON reads a file written by writeJSON; found is false when there is none.
func readJSON(path string, into any) (found bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return true, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return true, nil
}

// writeJSON makes path hold value, as writeFile does.
func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, append(text, '\n'))
}

// writeFile makes path hold text, readable by this user only. A reader, or a kill, sees the old file or the new one,
// whole.
func writeFile(path string, text []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(text)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return publish(temp.Name(), path)
}

// publish renames a file that is already on disk to its final name and waits until the name is on disk too.
func publish(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
