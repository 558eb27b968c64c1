// Package doors guards the loopback ports of an update, to which any process on the machine could connect: the ports on
// which this process serves the update's program and plugins (Listen), and the ports on which plugins serve this
// process (Dial).
//
// The protocol is gRPC without credentials, because the SDKs of programs and plugins accept only an address. So the
// owner of each connection is looked up in the kernel's tables, and a connection is served only if a process of the
// update made it. Only Linux has such tables. On other systems every local user can connect while an update runs.
//
// Simpler checks are by user alone: SameUser for the clients of the embedded service, Dialer for the servers that this
// process connects to. Root counts as every user: it has all that they have.
package doors

import (
	"fmt"
	"net"
)

// Household is the set of the processes of an update.
type Household interface {
	// UID returns the user id of the processes.
	UID() int
	// Processes returns the processes that were started for the update; their descendants belong to the household, too.
	Processes() []int
}

// Listen listens on a loopback address for the household and this process. Any other connection is closed, after a call
// of refused with its remote address.
func Listen(h Household, refused func(net.Addr)) (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &door{listener, h, refused}, nil
}

// door is a listener that checks the owner of each connection.
type door struct {
	net.Listener
	household Household
	refused   func(net.Addr)
}

// Accept waits for the next connection of the household or this process.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if belongs(d.household, conn.RemoteAddr().(*net.TCPAddr), conn.LocalAddr().(*net.TCPAddr)) {
			return conn, nil
		}
		d.refused(conn.RemoteAddr())
		_ = conn.Close() // nothing was sent
	}
}

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
