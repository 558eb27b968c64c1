package plugins

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"gopkg.in/yaml.v3"
)

// LockFile is the name of the lock file beside Pulumi.yaml.
const LockFile = "deployctl.lock"

// lockHeader is the comment at the beginning of a lock file.
const lockHeader = "# The plugins of this project. `deployctl plugin install` writes this file; commit it.\n"

// lockFormat is the version of the format that this build reads and writes.
const lockFormat = 1

// Lock lists plugins with the digests of their archives. It is the content of a lock file.
type Lock struct {
	Format  int      `yaml:"lock"`
	Plugins []Locked `yaml:"plugins"`

	pinned []pin // since it was read
}

// pin is a call of Pin.
type pin struct {
	request  Request
	platform Platform
	sum      string
}

// Locked is one plugin of a Lock.
type Locked struct {
	Kind    apitype.PluginKind  `yaml:"kind"`
	Name    string              `yaml:"name"`
	Version string              `yaml:"version"`
	URL     string              `yaml:"url,omitempty"` // empty: where the stock CLI looks
	SHA256  map[Platform]string `yaml:"sha256"`        // of the archives, in hexadecimal digits
}

func (l Locked) plugin() Plugin { return Plugin{Kind: l.Kind, Name: l.Name, Version: l.Version} }

// ParseLock reads a lock file.
func ParseLock(text []byte) (*Lock, error) {
	l := &Lock{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(l); err != nil {
		return nil, lockError("%w", err)
	}
	if l.Format != lockFormat {
		return nil, lockError("its format is %d, and this deployctl knows %d", l.Format, lockFormat)
	}
	for _, one := range l.Plugins {
		if err := one.plugin().Validate(); err != nil {
			return nil, lockError("%w", err)
		}
		if one.Version == "" {
			return nil, lockError("%s has no version", one.Name)
		}
		for platform, sum := range one.SHA256 {
			if !isSum(sum) {
				return nil, lockError("the digest of %s for %s is not 64 hexadecimal digits", one.Name, platform)
			}
		}
	}
	return l, nil
}

func lockError(format string, args ...any) error {
	return fmt.Errorf("%s cannot be read; correct it, or write it again with `deployctl plugin install`: %w", LockFile,
		fmt.Errorf(format, args...))
}

// isSum reports whether a text is a SHA-256 digest in lower-case hexadecimal digits.
func isSum(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 32 && hex.EncodeToString(sum) == text
}

// Find returns the entry of a plugin; without a version, that of the newest. It returns nil if there is none.
func (l *Lock) Find(p Plugin) *Locked {
	var found *Locked
	if l == nil {
		return nil
	}
	for i, one := range l.Plugins {
		if one.Kind != p.Kind || one.Name != p.Name || p.Version != "" && one.Version != p.Version {
			continue
		}
		if found == nil || newer(one.Version, found.Version) {
			found = &l.Plugins[i]
		}
	}
	return found
}

func newer(a, b string) bool {
	x, errX := semver.Parse(a)
	y, errY := semver.Parse(b)
	return errX == nil && errY == nil && x.GT(y)
}

// Pin sets the digest of a plugin for a platform.
func (l *Lock) Pin(r Request, platform Platform, sum string) {
	l.pinned = append(l.pinned, pin{r, platform, sum})
	one := l.Find(r.Plugin)
	if one == nil || one.Version != r.Version {
		l.Plugins = append(l.Plugins, Locked{Kind: r.Kind, Name: r.Name, Version: r.Version})
		one = &l.Plugins[len(l.Plugins)-1]
	}
	if one.SHA256 == nil {
		one.SHA256 = map[Platform]string{}
	}
	one.URL, one.SHA256[platform] = r.URL, sum
	slices.SortFunc(l.Plugins, func(a, b Locked) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
}

// Drop removes the entries of a plugin: of one version, or of all without a version. It reports whether there were any.
func (l *Lock) Drop(p Plugin) bool {
	before := len(l.Plugins)
	l.Plugins = slices.DeleteFunc(l.Plugins, func(one Locked) bool {
		return one.Kind == p.Kind && one.Name == p.Name && (p.Version == "" || one.Version == p.Version)
	})
	return len(l.Plugins) < before
}

// Changed reports whether anything was pinned.
func (l *Lock) Changed() bool { return len(l.pinned) > 0 }

// Onto returns the content of a lock file with what was pinned: another command may have written it since l was read.
func (l *Lock) Onto(now []byte) ([]byte, error) {
	next := &Lock{}
	if len(now) > 0 {
		var err error
		if next, err = ParseLock(now); err != nil {
			return nil, err
		}
	}
	for _, p := range l.pinned {
		next.Pin(p.request, p.platform, p.sum)
	}
	return next.Bytes()
}

// Bytes returns the content of the lock file.
func (l *Lock) Bytes() ([]byte, error) {
	l.Format = lockFormat
	var text bytes.Buffer
	text.WriteString(lockHeader)
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(l); err != nil {
		return nil, err
	}
	return text.Bytes(), encoder.Close()
}
