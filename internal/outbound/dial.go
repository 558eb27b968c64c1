package outbound

import (
	"context"
	"net"
	"net/netip"
	"syscall"
)

// Dial connects to a server that may be asked, for protocols other than HTTP. The address is checked when the
// connection is made.
func (g *Guard) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: connectTimeout}
	if !g.Trusts(host) {
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err == nil && !IsPublic(at.Addr()) {
				err = g.refused(host, at.Addr().String())
			}
			return err
		}
	}
	return dialer.DialContext(ctx, network, address)
}
