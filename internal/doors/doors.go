// Package doors guards the loopback ports of an update, at which anybody on the machine can knock: those where this
// process answers the update's program and plugins (Listen), and those where plugins answer this process (Dial).
//
// What speaks there is gRPC without any credentials, by programs and plugins whose SDKs take an address and nothing
// else. So whoever connects is looked up in the kernel's tables: a connection is served if a process of the update made
// it. Only Linux has such tables. Elsewhere every local user can connect while an update runs.
//
// OfThisUser is the simpler question, for ports of the embedded service.
package doors

import (
	"fmt"
	"net"
)

// Household is the processes of an update.
type Household interface {
	// UID is the user id that they run as.
	UID() int
	// Processes are those that were started for the update; what they have started belongs to the household, too.
	Processes() []int
}

// Listen listens on a loopback address, for the household and this process. Whoever else connects is hung up on, and
// refused is told.
func Listen(h Household, refused func(net.Addr)) (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &door{listener, h, refused}, nil
}

// door is a listener that looks at who comes.
type door struct {
	net.Listener
	household Household
	refused   func(net.Addr)
}

// Accept waits for the next connection that is to be served.
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
		_ = conn.Close() // nothing was said
	}
}

// StrangerError says that somebody who is none of the household was connected to a plugin before it could be closed to
// others. UID is -1 if it is not known who.
type StrangerError struct{ Port, UID int }

func (e *StrangerError) Error() string {
	who := fmt.Sprintf("user id %d", e.UID)
	if e.UID < 0 {
		who = "which is gone or elsewhere"
	}
	return fmt.Sprintf("a process of another user or update (%s) connected to its port %d first, and may have had it "+
		"do something", who, e.Port)
}
