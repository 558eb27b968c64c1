package grpcapi

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// A connection is a stranger's until a call on it has shown a right token. Strangers' connections and the others have
// their own places, so that no number of strangers takes one from somebody who is known. Strangers are told apart by
// their host, and the others by their token.
const (
	ofStrangers, ofKnown = 2048, 4096
	// strangerPatience is how long a stranger may send nothing.
	strangerPatience = 15 * time.Second
)

// Limited returns a listener whose connections share their places, as this package's own server has it. For a server of
// another protocol, OnConnection and Gate say which ones are no stranger's.
func Limited(l net.Listener) net.Listener {
	return &limited{l, newPlaces(ofStrangers), newPlaces(ofKnown), newBacklog(mostUnread)}
}

type limited struct {
	net.Listener
	strangers, known *places
	unread           *backlog
}

func (l *limited) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := newConnection(accepted, l.known, l.strangers, l.unread)
	host := Party(accepted.RemoteAddr().String())
	c.party = host
	c.unread.begin(c, host)
	c.places.enter(c, host).giveWay()
	return c, nil
}

// connection is one that has a place.
type connection struct {
	net.Conn
	known  *places
	unread *backlog
	open   context.Context // ends when it is closed
	ended  context.CancelFunc

	mu     sync.Mutex
	party  string  // whose it is: a stranger's host, or a token
	places *places // where its place is
	closed bool
	wanted time.Time // the deadline of reads that its server has set
}

func newConnection(conn net.Conn, known, places *places, unread *backlog) *connection {
	c := &connection{Conn: conn, known: known, places: places, unread: unread}
	c.open, c.ended = context.WithCancel(context.Background())
	return c
}

// giveWay closes a connection, if there is one, without waiting for it.
func (c *connection) giveWay() {
	if c != nil {
		go func() { _ = c.Close() }()
	}
}

// isKnown notes that a call on the connection has shown a right token, or something else by which its sender is known.
func (c *connection) isKnown(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.places == c.known {
		return
	}
	c.places.leave(c)
	c.party, c.places = name, c.known
	_ = c.applyDeadline() // if it fails, so do reads
	c.unread.isOf(c, name)
	c.known.enter(c, name).giveWay()
}

// partyOf returns whose a call is before its caller is known: its connection has a token, or a stranger's host.
func partyOf(ctx context.Context, host string) string {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		if c = connectionOf(ctx); c == nil {
			return Party(host)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.party
}

// Close closes the connection and gives its place back.
func (c *connection) Close() error {
	c.mu.Lock()
	c.closed = true
	c.places.leave(c)
	c.mu.Unlock()
	c.unread.leave(c)
	c.ended()
	return c.Conn.Close()
}

// Read reads; a stranger has to send something in time.
func (c *connection) Read(p []byte) (int, error) {
	c.mu.Lock()
	if c.places != c.known {
		_ = c.applyDeadline() // reading says what is wrong
	}
	c.mu.Unlock()
	n, err := c.Conn.Read(p)
	c.received(0, int64(n))
	return n, err
}

// received notes what has changed in what the connection has received and nobody has read; see backlog.
func (c *connection) received(calls, bytes int64) { c.unread.change(c, calls, bytes).giveWay() }

// SetDeadline implements net.Conn.
func (c *connection) SetDeadline(t time.Time) error {
	if err := c.Conn.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *connection) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = t
	return c.applyDeadline()
}

// applyDeadline sets the deadline of reads; c.mu is locked.
func (c *connection) applyDeadline() error {
	deadline := c.wanted
	if latest := time.Now().Add(strangerPatience); c.places != c.known && (deadline.IsZero() || latest.Before(deadline)) {
		deadline = latest
	}
	return c.Conn.SetReadDeadline(deadline)
}

// RemoteAddr returns the other end's address, by which a call on the connection finds it.
func (c *connection) RemoteAddr() net.Addr { return remote{c.Conn.RemoteAddr(), c} }

type remote struct {
	net.Addr
	connection *connection
}

type connectionKey struct{}

// OnConnection returns the context of the calls on a connection that a Limited listener has accepted, with or without
// TLS: it is the ConnContext of a http.Server.
func OnConnection(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// knownCaller notes that the sender of a call is known by a name, such as that of a token.
func knownCaller(ctx context.Context, name string) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		c.isKnown(name)
		return
	}
	if c := connectionOf(ctx); c != nil {
		c.isKnown(name)
	}
}
