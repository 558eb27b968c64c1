package grpcapi

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/fairshare"
	"google.golang.org/grpc/peer"
)

// A connection is a stranger's until a call on it has shown a right token. Strangers' connections and the others have
// their own rooms, so that no number of strangers takes a place from somebody who is known. In a full room, the host
// that has the most strangers, or the token that has the most connections, gives way with its oldest one.
var (
	ofStrangers = fairshare.Rules{Size: 2048, Least: 1, Patience: placePatience}
	ofKnown     = fairshare.Rules{Size: 4096, Least: 1, Patience: placePatience}
)

const (
	// placePatience is how long one that gives way may take to be closed.
	placePatience = 30 * time.Second
	// strangerPatience is how long a stranger may send nothing.
	strangerPatience = 15 * time.Second
)

// Limited returns a listener whose connections share their places, as this package's own server has it. For a server of
// another protocol, OnConnection and Gate say which ones are no stranger's.
func Limited(l net.Listener) net.Listener {
	return &limited{l, fairshare.NewRoom(ofStrangers), fairshare.NewRoom(ofKnown)}
}

type limited struct {
	net.Listener
	strangers, known *fairshare.Room
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &connection{Conn: accepted, known: l.known, room: l.strangers}
		host := fairshare.Host(hostOf(accepted.RemoteAddr().String()))
		place, err := l.strangers.Enter(context.Background(), host, 1, c.giveWay)
		if err != nil {
			_ = accepted.Close() // whoever it is tries again
			continue
		}
		c.take(l.strangers, place)
		return c, nil
	}
}

// connection is one that has a place in a room.
type connection struct {
	net.Conn
	known *fairshare.Room

	mu     sync.Mutex
	room   *fairshare.Room
	place  *fairshare.Place // nil until it has one
	named  bool             // it has, or asks for, a place among the known
	closed bool
	wanted time.Time // the deadline of reads that its server has set
}

// giveWay closes the connection soon.
func (c *connection) giveWay() { go func() { _ = c.Close() }() }

// take gives the connection a place, for the one that it has.
func (c *connection) take(room *fairshare.Room, place *fairshare.Place) {
	c.mu.Lock()
	if !c.closed {
		c.room, room, c.place, place = room, c.room, place, c.place
		_ = c.applyDeadline() // if it fails, so do reads
	}
	c.mu.Unlock()
	if place != nil {
		room.Leave(place)
	}
}

// isKnown notes that a call on the connection has shown a right token, or something else by which its sender is known.
func (c *connection) isKnown(name string) {
	c.mu.Lock()
	first := !c.named
	c.named = true
	c.mu.Unlock()
	if !first {
		return
	}
	place, err := c.known.Enter(context.Background(), name, 1, c.giveWay)
	if err == nil {
		c.take(c.known, place)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.named = false // the next call tries again
}

// Close closes the connection and gives its place back.
func (c *connection) Close() error {
	c.mu.Lock()
	place := c.place
	c.closed, c.place = true, nil
	room := c.room
	c.mu.Unlock()
	err := c.Conn.Close()
	if place != nil {
		room.Leave(place)
	}
	return err
}

// Read reads; a stranger has to send something in time.
func (c *connection) Read(p []byte) (int, error) {
	c.mu.Lock()
	if c.room != c.known {
		_ = c.applyDeadline() // reading says what is wrong
	}
	c.mu.Unlock()
	return c.Conn.Read(p)
}

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
	if latest := time.Now().Add(strangerPatience); c.room != c.known && (deadline.IsZero() || latest.Before(deadline)) {
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
	if p, ok := peer.FromContext(ctx); ok {
		if at, ok := p.Addr.(remote); ok {
			at.connection.isKnown(name)
		}
	}
}
