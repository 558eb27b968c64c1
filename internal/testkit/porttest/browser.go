package porttest

import (
	"context"
	"net"
	"net/http"
	"strings"
)

// Browser is a client that keeps cookies and, as browsers do, finds each name below localhost on this machine. The
// system's resolver may not.
func Browser(jar http.CookieJar) *http.Client {
	return &http.Client{Jar: jar, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, Resolved(address))
		},
	}}
}

// Resolved is HOST:PORT with the loopback address in place of a name below localhost.
func Resolved(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".localhost") {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}
