package pluginhost

import (
	"context"
	"fmt"
	"sync"

	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// extensions are what a provider's process has been extended by, by reference. The zero value is ready for use.
type extensions struct {
	mu    sync.Mutex
	given map[string]*givenExtension
}

// givenExtension is one extension; err is set once done is closed.
type givenExtension struct {
	done chan struct{}
	err  error
}

// claim returns an extension, and whether the caller must give it to the process.
func (x *extensions) claim(ref string) (e *givenExtension, first bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.given[ref]; ok {
		return e, false
	}
	if x.given == nil {
		x.given = map[string]*givenExtension{}
	}
	e = &givenExtension{done: make(chan struct{})}
	x.given[ref] = e
	return e, true
}

// forget lets the next caller try an extension that has failed again.
func (x *extensions) forget(ref string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.given, ref)
}

// Extend gives the provider's process an extension of its package, once: what ref names is asked of load only then. It
// returns when the provider has taken it, after which the process serves what the extension adds, too. An attempt does
// not end with the context of the call that began it, because others wait for it.
func (p *Provider) Extend(
	ctx context.Context, ref string, load func(context.Context) (apitype.Extension, error),
) error {
	e, first := p.extensions.claim(ref)
	if first {
		ctx := context.WithoutCancel(ctx)
		go func() {
			defer close(e.done)
			defer func() {
				if e.err != nil {
					p.extensions.forget(ref)
				}
			}()
			defer panics.Into(&e.err, "extending a provider")
			e.err = p.extend(ctx, load)
		}()
	}
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *Provider) extend(ctx context.Context, load func(context.Context) (apitype.Extension, error)) error {
	e, err := load(ctx)
	if err != nil {
		return err
	}
	name, err := p.parameterize(ctx, Parameter{Name: e.Name, Version: e.Version, Value: e.Value})
	switch {
	case err != nil:
		return fmt.Errorf("extending the provider by package %s %s: %w", e.Name, e.Version, err)
	case name != e.Name:
		return fmt.Errorf("the provider was to be extended by package %s, and says that it was by %q", e.Name, name)
	}
	return nil
}
