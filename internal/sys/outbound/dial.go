package outbound

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Dialer connects to servers. An address is checked when the connection is made, after the name was resolved, so that
// no name can lead to another address the second time.
type Dialer struct {
	// Timeout bounds the time to connect.
	Timeout time.Duration
	// Check returns an error if a host must not be connected to at an address; nil: all may be.
	Check func(host string, at netip.Addr) error
}

// Dial connects to a host and port.
func (d Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: d.Timeout}
	if d.Check != nil {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return d.Check(host, at.Addr())
		}
	}
	return dialer.DialContext(ctx, network, address)
}

// Dial connects to a server that may be asked, for protocols other than HTTP, too. The address is checked when the
// connection is made.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return Dialer{connectTimeout, g.check}.Dial(ctx, network, address)
}

func (g *Guard) check(host string, at netip.Addr) error {
	if g.Trusts(host) || IsPublic(at) || g.trustsAddress(at) {
		return nil
	}
	return g.refused(host, at.String())
}
