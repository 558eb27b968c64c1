// Package doors guards the loopback ports of an update, to which any process on the machine could connect: the ports on
// which this process serves the update's program and plugins (Listen), and the ports on which plugins serve this
// process (Dial).
//
// The protocol is gRPC without credentials, because the SDKs of programs and plugins accept only an address. So the
// owner of each connection is looked up in the kernel's tables, and a connection is served only if a process of the
// update made it. Only Linux has such tables. On other systems every local user can connect while an update runs.
//
// The tables know a connection by its addresses, which another connection may have once this one has ended. So what is
// looked up is a connection that is established, at both ends, when the answer is there: then they were its own.
//
// Simpler checks are by user alone: SameUser for the clients of the embedded service, Dialer for the servers that this
// process connects to. Root counts as every user: it has all that they have.
package doors

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// Household is the set of the processes of an update.
type Household interface {
	// UID returns the user id of the processes.
	UID() int
	// Processes returns the processes that were started for the update; their descendants belong to the household, too.
	Processes() []int
}

// Listen listens on a loopback address for the household and this process. Any other connection is closed, after a call
// of refused with its remote address if it is open still.
func Listen(h Household, refused func(net.Addr)) (net.Listener, error) {
	listener, err := Open("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return guard(listener, func(conn net.Conn) bool { return admits(h, conn, refused) }), nil
}

// admits reports whether the household or this process made a connection, and else calls refused. Nobody is told of one
// that has ended meanwhile: its maker is not known, and may have been a process of the update that was killed.
func admits(h Household, conn net.Conn, refused func(net.Addr)) bool {
	if belongs(h, conn) {
		return true
	}
	if established(conn) {
		refused(conn.RemoteAddr())
	}
	return false
}

// atOnce is how many connections of a listener are checked at a time.
const atOnce = 128

// door is a listener that checks each connection by itself, so that none waits for the check of another.
type door struct {
	net.Listener
	check   func(net.Conn) bool
	places  chan struct{}
	checked chan accepted
	closed  chan struct{}
	closing func() error
}

// guard returns a listener of the connections that are established and that a check lets in, as each is found to be so.
// Others are closed. Nothing is sent to them, and nothing that they sent is read.
func guard(l net.Listener, check func(net.Conn) bool) net.Listener {
	d := &door{Listener: l, check: check, places: make(chan struct{}, atOnce), checked: make(chan accepted),
		closed: make(chan struct{})}
	d.closing = sync.OnceValue(func() error {
		close(d.closed)
		return l.Close()
	})
	go d.run()
	return d
}

func (d *door) run() {
	for {
		conn, err := d.Listener.Accept()
		switch {
		case err != nil:
			if !d.give(accepted{err: err}) || errors.Is(err, net.ErrClosed) {
				return
			}
		case !established(conn): // most of a flood ends here
			_ = conn.Close()
		default:
			d.places <- struct{}{}
			go func() {
				defer func() { <-d.places }()
				if !d.check(conn) || !d.give(accepted{conn: conn}) {
					_ = conn.Close()
				}
			}()
		}
	}
}

// give reports whether somebody has taken it.
func (d *door) give(a accepted) bool {
	select {
	case d.checked <- a:
		return true
	case <-d.closed:
		return false
	}
}

// Accept waits for the next connection that is let in.
func (d *door) Accept() (net.Conn, error) {
	select {
	case a := <-d.checked:
		return a.conn, a.err
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

// Close closes the listener, and with it the connections that nobody has taken.
func (d *door) Close() error { return d.closing() }

// StrangerError is the error of a plugin to which a process outside the household was connected before the port was
// closed. UID is the user of that process, -1 if it is unknown.
type StrangerError struct{ Port, UID int }

func (e *StrangerError) Error() string {
	who := fmt.Sprintf("user id %d", e.UID)
	if e.UID < 0 {
		who = "which is gone or elsewhere"
	}
	return fmt.Sprintf("a process of another user or update (%s) connected to its port %d first, and may have had it "+
		"do something", who, e.Port)
}
