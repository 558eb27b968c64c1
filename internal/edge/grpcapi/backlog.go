package grpcapi

import (
	"context"
	"io"
	"net/http"
	"sync"

	"google.golang.org/grpc/stats"
)

// What a client sends is in memory until a call reads it, as much as the window of each stream allows, also if no call
// ever does. So a connection counts what it has received beyond what its calls have read.
const (
	// mostUnread is how much may be unread on all connections of an edge.
	mostUnread = 64 << 20
	// unreadOfCall is what a call may have unread. Frames are counted, too: a window of frames with a byte each is ten
	// times as large on the wire.
	unreadOfCall = 10 * windowSize
)

// backlog is what the connections of an edge have received and nobody has read. When that is too much, the party that
// has the most gives way with the connection that has the most: a flood takes from itself. It is safe for concurrent
// use.
type backlog struct {
	most int64

	mu  sync.Mutex
	all int64
	of  map[*connection]*arrived
}

// arrived is what a connection has received.
type arrived struct {
	party  string
	calls  int64
	unread int64
}

func newBacklog(most int64) *backlog { return &backlog{most: most, of: map[*connection]*arrived{}} }

// begin counts a connection of a party, until leave.
func (b *backlog) begin(c *connection, party string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of[c] = &arrived{party: party}
}

// isOf has another party answer for a connection.
func (b *backlog) isOf(c *connection, party string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.of[c]; a != nil {
		a.party = party
	}
}

// leave forgets a connection.
func (b *backlog) leave(c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.of[c]; a != nil {
		b.all -= a.unread
		delete(b.of, c)
	}
}

// change notes that calls of a connection have begun or, below zero, ended, and that so many bytes have come or, below
// zero, were read by a call. It returns the connection that has to give way, or nil. What arrives may be seen before
// the call that it belongs to; what a call leaves unread is gone with it.
func (b *backlog) change(c *connection, calls, bytes int64) (gone *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.of[c]
	if a == nil {
		return nil
	}
	before := a.unread
	a.calls += calls
	a.unread = max(0, a.unread+bytes)
	if calls < 0 {
		a.unread = min(a.unread, unreadOfCall*a.calls)
	}
	if b.all += a.unread - before; b.all <= b.most {
		return nil
	}
	return b.largest()
}

// largest forgets the connection that gives way and returns it.
func (b *backlog) largest() (gone *connection) {
	parties := map[string]int64{}
	for _, a := range b.of {
		parties[a.party] += a.unread
	}
	for c, a := range b.of {
		if gone == nil {
			gone = c
			continue
		}
		other := b.of[gone]
		if parties[a.party] > parties[other.party] || a.party == other.party && a.unread > other.unread {
			gone = c
		}
	}
	b.all -= b.of[gone].unread
	delete(b.of, gone)
	return gone
}

// readStats tells the connections of a gRPC server what its calls read.
type readStats struct{}

// TagConn implements stats.Handler.
func (readStats) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if at, ok := info.RemoteAddr.(remote); ok {
		return context.WithValue(ctx, connectionKey{}, at.connection)
	}
	return ctx
}

// HandleConn implements stats.Handler.
func (readStats) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC implements stats.Handler.
func (readStats) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (readStats) HandleRPC(ctx context.Context, s stats.RPCStats) {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return
	}
	switch s := s.(type) {
	case *stats.Begin:
		c.received(1, 0)
	case *stats.InPayload:
		c.received(0, -int64(s.WireLength))
	case *stats.End:
		c.received(-1, 0)
	}
}

// Reading returns a handler that tells the connections of a Limited listener what its requests read of their bodies.
// The server needs OnConnection.
func Reading(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connectionKey{}).(*connection)
		if !ok {
			handler.ServeHTTP(w, r)
			return
		}
		c.received(1, 0)
		defer c.received(-1, 0)
		r.Body = &readBody{r.Body, c}
		handler.ServeHTTP(w, r)
	})
}

type readBody struct {
	io.ReadCloser
	connection *connection
}

func (b *readBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.connection.received(0, -int64(n))
	return n, err
}
