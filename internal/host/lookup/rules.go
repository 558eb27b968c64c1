// Package lookup says how the resource of a create is found if its answer was lost: by which settle rule of its type,
// and by which mark.
package lookup

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Rules has the settle rules that hold for the types of an update, and the marks of its creates.
type Rules struct {
	of        *hosted.Update
	catalogue settlerule.Catalogue // nil: none
	found     sync.Map             // what Known returns
	told      sync.Map             // what providers have answered to ByProvider
	toldBytes atomic.Int64         // of the answers
}

// New returns the rules of an update: the stack's own, and those of a catalogue, if it is not nil.
func New(of *hosted.Update, catalogue settlerule.Catalogue) *Rules {
	return &Rules{of: of, catalogue: catalogue}
}

// Known are rules of a type, and who says them.
type Known struct {
	settlerule.Set
	Version string // of the plugin
	shipped bool   // in the catalogue
}

// declarations are how a provider says that creates of its types are settled.
type declarations struct {
	pkg string
	by  map[string]provider.Settle // nil: it knows nothing of that
}

// mostDeclared bounds what a provider declares, and mostTold what all providers of an update do, in bytes. Decoded it
// takes about ten times that.
const mostDeclared, mostTold = 1 << 20, 8 << 20

// Known returns the rules of a type: the stack's own, and then those of the catalogue.
func (b *Rules) Known(ctx context.Context, p *pluginhost.Provider, t tokens.Type, version string) []Known {
	key := string(t) + "@" + version
	if cached, ok := b.found.Load(key); ok {
		return cached.([]Known)
	}
	var all []Known
	own := b.of.Own.Rules.For(string(t))
	if len(own.Rules) > 0 {
		all = append(all, Known{Set: own})
	}
	if b.catalogue != nil {
		shipped, ok, err := b.catalogue(ctx, string(t), version, func(ctx context.Context, key string) ([]byte, error) {
			resp, err := p.GetMapping(ctx, plugin.GetMappingRequest{Key: key})
			return resp.Data, err
		})
		if err != nil {
			return all
		}
		if ok {
			values := maps.Clone(shipped.Values)
			if values == nil {
				values = map[string]settlerule.Sources{}
			}
			maps.Copy(values, own.Values) // what the stack says about values holds for these rules, too
			shipped.Values = values
			all = append(all, Known{Set: shipped, Version: version, shipped: true})
		}
	}
	b.found.Store(key, all)
	return all
}

// ByProvider returns how a provider says that creates of a type are settled; false if it knows nothing of rules. It
// is asked once, unless it fails.
func (b *Rules) ByProvider(ctx context.Context, p *pluginhost.Provider, t tokens.Type) (provider.Settle, bool) {
	told, ok := b.told.Load(p)
	if !ok {
		resp, err := p.GetMapping(ctx, plugin.GetMappingRequest{Key: provider.SettleMapping})
		if err != nil {
			return "", false
		}
		d := declarations{pkg: resp.Provider}
		if len(resp.Data) <= mostDeclared && b.toldBytes.Add(int64(len(resp.Data))) <= mostTold {
			d.by = declaredBy(resp.Data)
		}
		told = d
		b.told.Store(p, d)
	}
	d := told.(declarations)
	if d.by == nil || d.pkg != string(token.Package(t)) {
		return "", false
	}
	return d.by[string(t)], true
}

// Reconciled reports whether the provider of a type is convergent, so that a repeated create finds its resource. A rule
// of the stack goes before what the provider says.
func (b *Rules) Reconciled(ctx context.Context, p *pluginhost.Provider, t tokens.Type) bool {
	return b.Declared(ctx, p, t) == provider.SettleByReconcile
}

// Declared returns what a provider says of a type, unless the stack has rules for it.
func (b *Rules) Declared(ctx context.Context, p *pluginhost.Provider, t tokens.Type) provider.Settle {
	if len(b.of.Own.Rules.For(string(t)).Rules) > 0 {
		return ""
	}
	by, _ := b.ByProvider(ctx, p, t)
	return by
}

// Mark returns the mark of the create with a seed; "" without one.
// The URN is no part of it: a rename of the stack changes it, and the seed is of one create alone.
func (b *Rules) Mark(seed []byte) string {
	if len(seed) == 0 {
		return ""
	}
	key, stack := b.of.Identity.Marks, "" // which outlive the state
	if b.of.Identity.Text == "" {
		key, stack = b.of.Values.Key, b.of.StackID
	}
	sum := hmac.New(sha256.New, key)
	for _, part := range []string{"mark", stack, string(seed)} {
		_, _ = sum.Write(append([]byte(part), 0))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// OfMarks returns the rules of a type; nil for what is no resource of a plugin. If its account is not known, there
// are none: the call that needs the account says so.
func (b *Rules) OfMarks(
	ctx context.Context, p compare.Provider, provider *engine.Provider, t tokens.Type,
) []Known {
	plugin, ok := p.(*pluginhost.Provider)
	if !ok || provider == nil {
		return nil
	}
	account, err := b.of.Providers.Account(ctx, provider)
	if err != nil {
		return nil
	}
	return b.Known(ctx, plugin, t, account.CheckedVersion())
}

// WithMark returns the declared inputs of a resource with its mark: that of the inputs which it had before, or, of a
// create, a new one. Inputs that have no place for it stay as they are.
func (b *Rules) WithMark(
	ctx context.Context, p compare.Provider, provider *engine.Provider, t tokens.Type, seed []byte,
	declared, olds resource.PropertyMap,
) resource.PropertyMap {
	if olds == nil && !b.of.Own.Marks || olds != nil && !mayBear(resource.NewProperty(olds), markDepth) {
		return declared
	}
	all := b.OfMarks(ctx, p, provider, t)
	if olds != nil {
		place := PlaceIn(all, olds)
		return PutMark(place, declared, place.Get(olds))
	}
	return PutMark(MarkPlace(all), declared, b.Mark(seed))
}

// declaredBy reads what a provider declares; nil if it cannot be read.
func declaredBy(data []byte) map[string]provider.Settle {
	var by map[string]provider.Settle
	if json.Unmarshal(data, &by) != nil {
		return nil
	}
	return by
}
