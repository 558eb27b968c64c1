package intake

import (
	"context"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/sys/mempool"
)

// holdTime is how long a decoded answer counts as needed, whoever waits for its memory. After that it gives way to
// others as what arrives too slowly does: a plugin that keeps its caller waiting for another answer holds up nobody.
const holdTime = 30 * time.Second

// Hold keeps the memory of the answers of a client's calls until whoever has made them is done with what was decoded.
// It is safe for concurrent use; a nil Hold keeps nothing.
type Hold struct {
	mu    sync.Mutex
	over  bool
	parts []*mempool.Claim
	ends  []*time.Timer
}

type holdKey struct{}

// WithHold returns a context whose calls keep the memory of their answers until release is called.
func WithHold(ctx context.Context) (holding context.Context, release func()) {
	h := &Hold{}
	return h.In(ctx), h.release
}

// HoldOf returns the Hold of a context; nil when it has none.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}

// In returns a context with this Hold.
func (h *Hold) In(ctx context.Context) context.Context {
	if h == nil {
		return ctx
	}
	return context.WithValue(ctx, holdKey{}, h)
}

// keep takes the memory of an answer over from the connection on which it came; it reports false when nobody needs it.
func (h *Hold) keep(of *mempool.Claim, n int64) bool {
	if h == nil || n == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return false
	}
	part := of.Split(n)
	h.parts, h.ends = append(h.parts, part), append(h.ends, time.AfterFunc(holdTime, part.Sending))
	return true
}

func (h *Hold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for i, part := range h.parts {
		h.ends[i].Stop()
		part.Release()
	}
	h.parts, h.ends = nil, nil
}
