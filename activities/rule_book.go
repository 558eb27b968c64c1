package activities

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
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// ruleBook has the settle rules that hold for the types of an update, and the marks of its creates.
type ruleBook struct {
	of        *updateFacts
	catalogue settlerule.Catalogue // nil: none
	found     sync.Map             // what knownRules returns
	told      sync.Map             // what providers have answered to declaredRule
	toldBytes atomic.Int64         // of the answers
}

// newRuleBook returns the rules of an update: the stack's own, and those of a catalogue, if it is not nil.
func newRuleBook(of *updateFacts, catalogue settlerule.Catalogue) *ruleBook {
	return &ruleBook{of: of, catalogue: catalogue}
}

// known are rules of a type, and who says them.
type known struct {
	settlerule.Set
	version string // of the plugin
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

// knownRules returns the rules of a type: the stack's own, and then those of the catalogue.
func (b *ruleBook) knownRules(ctx context.Context, p *pluginhost.Provider, t tokens.Type, version string) []known {
	key := string(t) + "@" + version
	if cached, ok := b.found.Load(key); ok {
		return cached.([]known)
	}
	var all []known
	own := b.of.own.Rules.For(string(t))
	if len(own.Rules) > 0 {
		all = append(all, known{Set: own})
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
			all = append(all, known{Set: shipped, version: version, shipped: true})
		}
	}
	b.found.Store(key, all)
	return all
}

// declaredRule returns how a provider says that creates of a type are settled; false if it knows nothing of rules. It
// is asked once, unless it fails.
func (b *ruleBook) declaredRule(ctx context.Context, p *pluginhost.Provider, t tokens.Type) (provider.Settle, bool) {
	told, ok := b.told.Load(p)
	if !ok {
		resp, err := p.GetMapping(ctx, plugin.GetMappingRequest{Key: provider.SettleMapping})
		if err != nil {
			return "", false
		}
		d := declarations{pkg: resp.Provider}
		if len(resp.Data) > mostDeclared || b.toldBytes.Add(int64(len(resp.Data))) > mostTold ||
			json.Unmarshal(resp.Data, &d.by) != nil {
			d.by = nil
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

// reconciled reports whether the provider of a type is convergent, so that a repeated create finds its resource. A rule
// of the stack goes before what the provider says.
func (b *ruleBook) reconciled(ctx context.Context, p *pluginhost.Provider, t tokens.Type) bool {
	return b.declared(ctx, p, t) == provider.SettleByReconcile
}

// declared returns what a provider says of a type, unless the stack has rules for it.
func (b *ruleBook) declared(ctx context.Context, p *pluginhost.Provider, t tokens.Type) provider.Settle {
	if len(b.of.own.Rules.For(string(t)).Rules) > 0 {
		return ""
	}
	by, _ := b.declaredRule(ctx, p, t)
	return by
}

// mark returns the mark of the create with a seed; "" without one.
// The URN is no part of it: a rename of the stack changes it, and the seed is of one create alone.
func (b *ruleBook) mark(seed []byte) string {
	if len(seed) == 0 {
		return ""
	}
	key, stack := b.of.identity.Marks, "" // which outlive the state
	if b.of.identity.Text == "" {
		key, stack = b.of.values.Key, b.of.stackID
	}
	sum := hmac.New(sha256.New, key)
	for _, part := range []string{"mark", stack, string(seed)} {
		_, _ = sum.Write(append([]byte(part), 0))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// rulesOfMarks returns the rules of a type; nil for what is no resource of a plugin. If its account is not known, there
// are none: the call that needs the account says so.
func (b *ruleBook) rulesOfMarks(
	ctx context.Context, p resourceProvider, provider *engine.Provider, t tokens.Type,
) []known {
	plugin, ok := p.(*pluginhost.Provider)
	if !ok || provider == nil {
		return nil
	}
	account, err := b.of.providers.accountOf(ctx, provider)
	if err != nil {
		return nil
	}
	return b.knownRules(ctx, plugin, t, account.checkedVersion())
}

// withMark returns the declared inputs of a resource with its mark: that of the inputs which it had before, or, of a
// create, a new one. Inputs that have no place for it stay as they are.
func (b *ruleBook) withMark(
	ctx context.Context, p resourceProvider, provider *engine.Provider, t tokens.Type, seed []byte,
	declared, olds resource.PropertyMap,
) resource.PropertyMap {
	if olds == nil && !b.of.own.Marks || olds != nil && !mayBear(resource.NewProperty(olds), markDepth) {
		return declared
	}
	all := b.rulesOfMarks(ctx, p, provider, t)
	if olds != nil {
		place := placeIn(all, olds)
		return putMark(place, declared, place.Get(olds))
	}
	return putMark(markPlace(all), declared, b.mark(seed))
}
