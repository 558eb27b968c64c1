// Package catalogue has settle rules for the resource types of public providers. They are made by tools/catalogue from
// facts that are public, and checked against the schemas of the providers; docs/catalogue.md says what they are and
// where they are from.
package catalogue

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

//go:embed *.yaml
var embedded embed.FS

// Catalogue answers what rules a type has. It keeps what plugins say about their names, which is theirs alone: plugins
// that are not the same organization's must not share one.
type Catalogue struct {
	mu    sync.Mutex
	names map[string]*naming // by package and version
}

// naming is what a plugin says about its names, once done is closed.
type naming struct {
	done  chan struct{}
	names names
}

// mostNamings is of how many versions of plugins the names are kept. Of others the catalogue's own names hold.
const mostNamings = 20

// patience is how long a look waits for a plugin's names: the largest take seconds.
const patience = time.Minute

// New returns a catalogue that has not asked a plugin yet. It reads nothing.
func New() *Catalogue { return &Catalogue{names: map[string]*naming{}} }

// Mapping asks a plugin for a mapping of its names.
type Mapping = func(ctx context.Context, key string) ([]byte, error)

// Rules returns the rules of a type; false if there are none. Bridged plugins are asked how Terraform's types are
// called, once for each package and version, if the type is none that the catalogue knows.
func (c *Catalogue) Rules(
	ctx context.Context, t, version string, mapping Mapping,
) (settlerule.Set, bool, error) {
	pkg, _, _ := strings.Cut(t, ":")
	f, err := packageFile(pkg)
	if f == nil || err != nil {
		return settlerule.Set{}, false, err
	}
	if key, ok := f.tokens[t]; ok {
		set, err := f.set(key, names{})
		return set, err == nil, err
	}
	if f.without[t] {
		return settlerule.Set{}, false, nil
	}
	if f.Terraform != "" && mapping != nil {
		named, err := c.ask(ctx, pkg+"@"+version, f, mapping)
		if err != nil {
			return settlerule.Set{}, false, err
		}
		if key, ok := named.types[t]; ok {
			set, err := f.set(key, named)
			return set, err == nil, err
		}
	}
	set, err := f.general()
	return set, err == nil && len(set.Rules) > 0, err
}

// AsksPlugins reports whether plugins of a package are asked for their names: of types that a plugin makes at run time
// alone they know which rules apply.
func AsksPlugins(pkg string) bool {
	f, err := packageFile(pkg)
	return err == nil && f != nil && f.Terraform != ""
}

// ask returns what a plugin says about its names. One that does not say it in time, or says too much, has none. The
// question goes on when the look that began it is over, because others wait for it.
func (c *Catalogue) ask(ctx context.Context, key string, f *file, mapping Mapping) (names, error) {
	c.mu.Lock()
	n := c.names[key]
	if n == nil && len(c.names) >= mostNamings {
		c.mu.Unlock()
		return names{}, nil
	}
	if n == nil {
		n = &naming{done: make(chan struct{})}
		c.names[key] = n
		go func() {
			defer close(n.done)
			var data []byte
			err := panics.Do("asking a plugin for its names", func() (err error) {
				data, err = mapping(context.WithoutCancel(ctx), mappingKey)
				return err
			})
			if err == nil {
				n.names = f.parseMapping(data)
			}
		}()
	}
	c.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-n.done:
		return n.names, nil
	case <-timer.C:
		return names{}, nil
	case <-ctx.Done():
		return names{}, context.Cause(ctx)
	}
}

// renamed are packages that have another name if they are made of Terraform's provider at run time.
var renamed = map[string]string{"google": "gcp", "azurerm": "azure"}

var files sync.Map // of *loading, by package

type loading struct {
	once sync.Once
	file *file
	err  error
}

// packageFile returns the rules of a package; nil if there are none.
func packageFile(pkg string) (*file, error) {
	if to := renamed[pkg]; to != "" {
		pkg = to
	}
	found, ok := files.Load(pkg)
	if !ok {
		// What programs name is not kept: only what the catalogue has.
		if _, err := embedded.Open(pkg + ".yaml"); err != nil {
			return nil, nil //nolint:nilerr // it has no such package
		}
		found, _ = files.LoadOrStore(pkg, &loading{})
	}
	l := found.(*loading)
	l.once.Do(func() {
		text, err := embedded.ReadFile(pkg + ".yaml")
		if err == nil {
			l.file, err = parse(string(text))
		}
		if err != nil {
			l.err = fmt.Errorf("the catalogue of package %s: %w", pkg, err)
		}
	})
	return l.file, l.err
}
