package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/statestore/bucket"
)

// Contended is an Objects on which another writer is always faster: of the Puts by tag of a key, every other one fails
// with ErrChanged and has no effect. What reads, changes and writes back then does so at least twice, and must do the
// second time what it would have done the first.
type Contended struct {
	bucket.Objects

	spared []string

	mu   sync.Mutex
	lost map[string]bool // whether the last Put by tag of a key lost
}

// NewContended decorates objects. Keys with one of the spared texts have no other writer.
func NewContended(objects bucket.Objects, spared ...string) *Contended {
	return &Contended{Objects: objects, spared: spared, lost: map[string]bool{}}
}

// Put implements statestore.Objects.
func (c *Contended) Put(
	ctx context.Context, key string, data []byte, condition bucket.Condition,
) (string, error) {
	spared := slices.ContainsFunc(c.spared, func(text string) bool { return strings.Contains(key, text) })
	if condition.Tag != "" && !spared && c.loses(key) {
		return "", bucket.ErrChanged
	}
	return c.Objects.Put(ctx, key, data, condition)
}

func (c *Contended) loses(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost[key] = !c.lost[key]
	return c.lost[key]
}
