// Package intake has the messages of programs and plugins take memory before they arrive: gRPC receives and decodes
// messages of any number as they are sent.
//
// It reads along on a connection. When the length of a large message arrives, nothing more is read of the connection
// until its organization has the memory for it (see mempool). The memory is given back when the message was decoded, or
// once what was decoded of an answer is not needed any more (see WithHold).
package intake

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	"github.com/deployctl/deployctl/internal/sys/mempool"
)

const (
	// large is the size of a message from which on it takes memory: as much as a stream gets before it is read from.
	large = 64 << 10
	// perByte is how much memory a byte of a message takes at most, while it is received and decoded: see mostValues.
	perByte = 24
	// patience is how long a message waits for memory, and decodeTime how long one that is whole keeps it.
	patience, decodeTime = time.Minute, 30 * time.Second
)

// preface is what a client sends before its first frame.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// errTooMuch ends a connection of a server: what is read of it further belongs to messages that have begun, too.
var errTooMuch = deployments.Errorf(deployments.CodeInvalid, "messages of more than %d MiB are sent at once on one "+
	"connection", pluginprotocol.MaxMessage>>20)

// Intake is what the messages of one update take their memory from. A nil Intake bounds nothing.
type Intake struct {
	pool  *mempool.Pool
	party string
}

// New returns an Intake that takes memory from a pool for a party, such as an organization.
func New(pool *mempool.Pool, party string) *Intake { return &Intake{pool, party} }

// Keep notes that n bytes of what was sent are kept for longer than it takes to decode them, and reports whether there
// is room for them; see mempool.Pool.Keep.
func (i *Intake) Keep(n int) (forget func(), ok bool) {
	if i == nil {
		return func() {}, true
	}
	return i.pool.Keep(i.party, int64(n))
}

// Listen wraps a listener for a gRPC server, which needs a Watcher.
func (i *Intake) Listen(l net.Listener) net.Listener {
	if i == nil {
		return l
	}
	return listener{l, i}
}

type listener struct {
	net.Listener
	intake *Intake
}

func (l listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := wrap(conn, len(preface), 0)
	c.claim = l.intake.pool.Claim(l.intake.party, func() { go func() { _ = c.Close() }() })
	return c, nil
}

// Connect wraps the connection of a gRPC client, which needs a Watcher. It is the only one to a plugin, and has the
// answers of calls that have created resources: it never ends for a lack of memory. What gets none in time, or had to
// give way, is received without.
func (i *Intake) Connect(conn net.Conn) net.Conn {
	if i == nil {
		return conn
	}
	c := wrap(conn, 0, len(preface))
	c.claim, c.lasts = i.pool.Losing(i.party), true
	return c
}

// wrap makes a connection of one. The prefaces are what each side sends before its first frame.
func wrap(conn net.Conn, theirs, ours int) *connection {
	c := &connection{Conn: conn}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.in = frames{preface: theirs, message: c.announced, arrived: c.arrived, ended: c.reset}
	c.out = frames{preface: ours, ended: c.ended}
	return c
}

// connection is one of a server or a client.
type connection struct {
	net.Conn
	claim  *mempool.Claim
	lasts  bool            // it is not ended for what is sent on it: its other side is connected to only once
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	in     frames // of the one goroutine that reads
	out    frames // of the one goroutine that writes

	mu       sync.Mutex
	messages []*message // that are received or decoded
}

// message is a large one.
type message struct {
	stream     uint32
	wire, cost int64 // its length as it is sent, and uncompressed
	taken      int64 // of the claim
	whole      bool
	forget     *time.Timer // when it was whole for a time
	ctx        context.Context
	drop       context.CancelFunc
}

// Read reads, and waits for the memory of a message whose length it has read.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.holds() {
		c.claim.Moved()
	}
	if wrong := c.in.scan(p[:n]); wrong != nil {
		return 0, wrong
	}
	return n, err
}

// Write writes, and finds out which streams have ended.
func (c *connection) Write(p []byte) (int, error) {
	if err := c.out.scan(p); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Close closes the connection and gives its memory back.
func (c *connection) Close() error {
	c.cancel()
	err := c.Conn.Close()
	c.drop(nil, func(*message) bool { return true })
	c.claim.Release()
	return err
}

// RemoteAddr returns the other end's address, by which a Watcher finds the connection.
func (c *connection) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

type address struct {
	net.Addr
	connection *connection
}

func (c *connection) holds() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.messages) > 0
}

// announced takes the memory of a message, before any of it is read. One that is too long needs none: gRPC refuses it.
func (c *connection) announced(stream uint32, wire, cost int64) error {
	if cost <= large || cost > pluginprotocol.MaxMessage {
		return nil
	}
	m := c.begin(stream, wire, cost)
	if m == nil {
		return errTooMuch
	}
	n := cost * perByte
	err := c.claim.Take(m.ctx, n, patience)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch dropped := !slices.Contains(c.messages, m); {
	case err == nil && !dropped:
		m.taken = n
	case err == nil:
		c.claim.Return(n)
	case c.ctx.Err() == nil && (c.lasts || dropped):
		return nil
	}
	return err
}

// begin notes a message of which nothing has arrived; nil: it would be too much.
func (c *connection) begin(stream uint32, wire, cost int64) *message {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := cost
	for _, m := range c.messages {
		all += m.cost
	}
	if all > pluginprotocol.MaxMessage && !c.lasts {
		return nil
	}
	m := &message{stream: stream, wire: wire, cost: cost}
	m.ctx, m.drop = context.WithCancel(c.ctx)
	c.messages = append(c.messages, m)
	c.claim.Sending()
	return m
}

// arrived notes that a message is whole. It is forgotten after a time: one that cannot be decoded, or that no call
// waits for any longer, is never said to be decoded.
func (c *connection) arrived(stream uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.messages {
		if m.stream == stream && !m.whole {
			m.whole = true
			m.forget = time.AfterFunc(decodeTime, func() { c.drop(nil, func(one *message) bool { return one == m }) })
		}
	}
	c.settle()
}

// settle has the connection not give way while all its messages are decoded.
func (c *connection) settle() {
	partial := func(m *message) bool { return !m.whole }
	if len(c.messages) > 0 && !slices.ContainsFunc(c.messages, partial) {
		c.claim.Whole()
	}
}

// drop gives the memory of messages to a hold, or back if that is nil.
func (c *connection) drop(to *Hold, over func(*message) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.messages = slices.DeleteFunc(c.messages, func(m *message) bool {
		if !over(m) {
			return false
		}
		m.drop()
		if m.forget != nil {
			m.forget.Stop()
		}
		if !to.keep(c.claim, m.taken) {
			c.claim.Return(m.taken)
		}
		return true
	})
	c.settle()
}

// decoded notes that a message was decoded, whose length is that on the wire if it was not compressed.
func (c *connection) decoded(to *Hold, wire, length int64) {
	if wire <= large && wire == length {
		return
	}
	found := false
	c.drop(to, func(m *message) bool {
		over := !found && m.whole && m.wire == wire
		found = found || over
		return over
	})
}

// ended notes that nothing more is received on a stream.
func (c *connection) ended(stream uint32) {
	c.drop(nil, func(m *message) bool { return m.stream == stream })
}

// reset notes that the other side has ended a stream with what is missing of its message.
func (c *connection) reset(stream uint32) {
	c.drop(nil, func(m *message) bool { return m.stream == stream && !m.whole })
}

// Watcher tells connections which messages were decoded. Each client has its own.
type Watcher struct{ last atomic.Pointer[connection] }

type connectionKey struct{}

// TagConn implements stats.Handler.
func (w *Watcher) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	at, ok := info.RemoteAddr.(address)
	if !ok {
		return ctx
	}
	w.last.Store(at.connection)
	return context.WithValue(ctx, connectionKey{}, at.connection)
}

// HandleConn implements stats.Handler.
func (w *Watcher) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC implements stats.Handler.
func (w *Watcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (w *Watcher) HandleRPC(ctx context.Context, event stats.RPCStats) {
	decoded, ok := event.(*stats.InPayload)
	if !ok {
		return
	}
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok { // a client's calls know none
		c = w.last.Load()
	}
	if c != nil {
		c.decoded(HoldOf(ctx), int64(decoded.CompressedLength), int64(decoded.Length))
	}
}
