package doors

import (
	"context"
	"fmt"
	"net"
	"os/user"
	"strconv"
	"time"
)

// SameUser returns a listener that accepts connections of this process's user and root, and closes all others before a
// byte is read.
func SameUser(l net.Listener) net.Listener { return guard(l, ofThisUser) }

// ListenSameUser listens on an address for connections of this process's user and root.
func ListenSameUser(address string) (net.Listener, error) {
	l, err := Open(address)
	if err != nil {
		return nil, err
	}
	return SameUser(l), nil
}

// acceptPatience is how long a server may take to accept a connection, before which nobody knows whose it is.
const acceptPatience = 5 * time.Second

// Dialer returns a function that connects as a net.Dialer does. It returns a connection to a loopback address only if
// the process that has accepted it is of this user or root; else it closes it, and the error is a *ServerError. Nothing
// was sent then.
func Dialer(d net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if there, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !there.IP.IsLoopback() {
			return conn, nil
		}
		ctx, cancel := context.WithTimeout(ctx, acceptPatience)
		defer cancel()
		if err := servedByThisUser(ctx, conn); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
}

// Unsent is in the text of each ServerError, for callers to which it comes as text.
const Unsent = "nothing was sent there"

// ServerError is the error about a server on this machine that is not this user's. UID is -1 if it is not known whose
// it is.
type ServerError struct {
	Address string
	UID     int
}

func (e *ServerError) Error() string {
	if e.UID < 0 {
		return fmt.Sprintf("it is not known who serves %s, so %s", e.Address, Unsent)
	}
	return fmt.Sprintf("%s is served by %s, not by you or root, so %s", e.Address, User(e.UID), Unsent)
}

// User names a user for a message.
func User(uid int) string {
	text := "user id " + strconv.Itoa(uid)
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && u.Username != "" {
		text += " (" + u.Username + ")"
	}
	return text
}
