// Package settings finds out which service deployctl speaks to and what a service runs on. Every value comes from the
// first of these that has it: a flag, an environment variable DEPLOYCTL_*, the configuration file, the built-in
// default; and remembers which, for deployctl settings.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"gopkg.in/yaml.v3"
)

// Key names one setting. In the file, dots are levels ("temporal.address" is address below temporal); the flag is
// --temporal-address, the variable DEPLOYCTL_TEMPORAL_ADDRESS.
type Key string

// Flag gives the name of the key's flag.
func (k Key) Flag() string { return strings.ReplaceAll(string(k), ".", "-") }

// Variable gives the name of the key's environment variable.
func (k Key) Variable() string {
	return "DEPLOYCTL_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(string(k)))
}

// Value is a setting as it was found.
type Value struct {
	Key    Key
	Text   string
	Source string // "flag --x", "DEPLOYCTL_X", the file's path, "default", or empty when it is not set
}

// Sources are what settings are read from.
type Sources struct {
	Flag     func(Key) (string, bool) // flags that were given
	Variable func(string) string      // os.Getenv
	File     string                   // path; a file that does not exist is empty, unless it was Named
	Named    bool                     // somebody asked for this file
}

// Settings are all values.
type Settings struct {
	values map[Key]Value
	file   string
	named  bool
}

// FileVariable is the environment variable that names the configuration file.
const FileVariable = "DEPLOYCTL_SETTINGS"

// DefaultFile is ${XDG_CONFIG_HOME}/deployctl/config.yaml, or ~/.config/deployctl/config.yaml.
func DefaultFile(variable func(string) string) string {
	base := variable("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(variable("HOME"), ".config")
	}
	return filepath.Join(base, "deployctl", "config.yaml")
}

// Load reads every setting.
func Load(s Sources) (Settings, error) {
	file, err := readFile(s)
	if err != nil {
		return Settings{}, err
	}
	loaded := Settings{values: map[Key]Value{}, file: s.File, named: s.Named}
	for _, d := range Table {
		v := Value{Key: d.Key, Text: d.Default}
		if d.Default != "" {
			v.Source = "default"
		}
		if text, ok := file[d.Key]; ok {
			if d.Secret {
				if err := private(s.File); err != nil {
					return Settings{}, err
				}
			}
			v.Text, v.Source = text, s.File
		}
		if text := s.Variable(d.Key.Variable()); text != "" {
			v.Text, v.Source = text, d.Key.Variable()
		}
		if s.Flag != nil && !d.Secret {
			if text, ok := s.Flag(d.Key); ok {
				v.Text, v.Source = text, "flag --"+d.Key.Flag()
			}
		}
		loaded.values[d.Key] = v
	}
	return loaded, nil
}

// Get gives a value's text.
func (s Settings) Get(k Key) string { return s.values[k].Text }

// Source says where a value came from.
func (s Settings) Source(k Key) string { return s.values[k].Source }

// File is the configuration file that was read, or would have been.
func (s Settings) File() string { return s.file }

// Inherit adds to an environment what a child process needs to find the same file, wherever it works; its variables of
// settings are there already.
func (s Settings) Inherit(environ []string) ([]string, error) {
	if !s.named {
		return environ, nil
	}
	path, err := filepath.Abs(s.file)
	return append(environ, FileVariable+"="+path), err
}

// Secret gives the text of a secret setting: its own value, or the content of the file that its -file setting names.
func (s Settings) Secret(k Key) (string, error) {
	if text := s.Get(k); text != "" {
		return text, nil
	}
	path := s.Get(k + "-file")
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", deployments.Errorf(deployments.CodeInvalid, "cannot read %s (set by %s): %w", k+"-file",
			s.Source(k+"-file"), err)
	}
	if err := private(path); err != nil {
		return "", err
	}
	return strings.TrimSpace(string(text)), nil
}

// private is an error if everybody may read or write a file with a secret. Its group may: that is how secrets are
// handed to a service that runs as another user than the one who owns them.
func private(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o006 == 0 {
		return err
	}
	return deployments.Errorf(deployments.CodeInvalid, "%s holds a secret, and every user of this machine can read "+
		"or write it: chmod o-rw %s", path, path)
}

// readFile flattens the configuration file. Keys that are not settings are errors: a typing mistake must not be silent.
func readFile(s Sources) (map[Key]string, error) {
	text, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) && !s.Named {
		return nil, nil
	}
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot read the configuration file: %w", err)
	}
	var tree map[string]any
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&tree); err != nil && len(bytes.TrimSpace(text)) > 0 {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s is not valid YAML: %w", s.File, err)
	}
	flat := map[Key]string{}
	if err := flatten(flat, "", tree); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s: %w", s.File, err)
	}
	return flat, nil
}

func flatten(flat map[Key]string, prefix string, tree map[string]any) error {
	for name, value := range tree {
		key := Key(prefix + name)
		switch value := value.(type) {
		case map[string]any:
			if err := flatten(flat, string(key)+".", value); err != nil {
				return err
			}
		case nil:
		default:
			if !known(key) {
				return fmt.Errorf("there is no setting %q; deployctl settings --help lists them", key)
			}
			flat[key] = fmt.Sprint(value)
		}
	}
	return nil
}

func known(key Key) bool {
	for _, d := range Table {
		if d.Key == key {
			return true
		}
	}
	return false
}
