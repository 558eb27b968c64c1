package compare

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/hashicorp/golang-lru/v2/expirable"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// Cache remembers which stored resources their provider has found equal to their own inputs, so that a refresh
// that reads just what is stored need not ask that again. A worker forgets it when it ends. Plans are always asked for:
// they decide what happens.
type Cache struct {
	known *expirable.LRU[ComparisonKey, struct{}]
}

// ComparisonKey names the arguments of a Diff of what is stored and the provider that would answer it. An empty one is
// never remembered.
type ComparisonKey string

// The latest comparedMost answers are kept, at most for comparedFor. One takes about 220 bytes.
const (
	comparedMost = 1 << 17
	comparedFor  = 24 * time.Hour
)

// NewCache returns a cache without comparisons.
func NewCache() *Cache {
	return &Cache{expirable.NewLRU[ComparisonKey, struct{}](comparedMost, nil, comparedFor)}
}

// Note remembers the answer if it says that nothing differs.
func (c *Cache) Note(key ComparisonKey, d engine.Diff) {
	if key != "" && d.Change == engine.ChangeNone && len(d.ChangedKeys) == 0 && len(d.Detailed) == 0 {
		c.known.Add(key, struct{}{})
	}
}

// Equal reports whether the provider is known to find no difference.
func (c *Cache) Equal(key ComparisonKey) bool {
	_, known := c.known.Get(key)
	return known
}

// StoredKey returns the key of the comparison of a stored resource with its own inputs; empty if the provider that
// would be asked is not always the same, or runs code of the program. The digests of values are those of the stack
// alone.
func StoredKey(
	stackID string, p *engine.Provider, asked Provider, r *engine.State, ignoreChanges []string,
) ComparisonKey {
	provider, ok := asked.(*pluginhost.Provider)
	if !ok || p == nil || provider.Program() == "" {
		return ""
	}
	text, err := json.Marshal([]any{
		stackID, provider.Program(), p.Ref, p.Inputs.Digest, p.Extension.Digest,
		r.URN, r.ID, r.Inputs.Digest, r.Outputs.Digest, ignoreChanges,
	})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return ComparisonKey(sum[:])
}

// Provider is the part of a provider that planning needs. For provider resources it is a configurator.
type Provider interface {
	Check(context.Context, plugin.CheckRequest) (plugin.CheckResponse, error)
	Diff(context.Context, plugin.DiffRequest) (plugin.DiffResponse, error)
	Create(context.Context, plugin.CreateRequest) (plugin.CreateResponse, error)
	Update(context.Context, plugin.UpdateRequest) (plugin.UpdateResponse, error)
}

var _ Provider = (*pluginhost.Provider)(nil)
