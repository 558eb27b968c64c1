// Package outbound guards the requests that the service makes to servers that its users name. Such a server must be at
// a public address, whatever its name resolves to, and must use TLS: it could otherwise be one of the service's own
// network.
package outbound

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	// connectTimeout bounds the time to connect to a server, and its TLS handshake.
	connectTimeout = 10 * time.Second
	// mostRedirects bounds how often a server may send a request elsewhere.
	mostRedirects = 10
)

// Guard decides which servers may be asked.
type Guard struct {
	// What is what they are asked for, in messages: "plugins are downloaded".
	What string
	// Setting names the setting that has Hosts, in messages.
	Setting string
	// Private allows servers at loopback and private addresses: for a service with one user, whose programs reach them
	// anyway.
	Private bool
	// Hosts are the names and addresses of servers that may be at such addresses without Private, in lower case, and
	// Prefixes are ranges of such addresses.
	Hosts    []string
	Prefixes []netip.Prefix
	// Plaintext says which servers need no TLS.
	Plaintext Plaintext
	// Proxies are those of the environment; nil: that of this process.
	Proxies *httpproxy.Config
	// Patience is how long a server may take until it begins to answer.
	Patience time.Duration
}

// Plaintext says which servers need no TLS.
type Plaintext int

// Without TLS, anybody on the way to a server can read what it is sent, and replace what it sends.
const (
	// LocalPlaintext is for servers on loopback that the operator allows.
	LocalPlaintext Plaintext = iota
	// TrustedPlaintext is for all servers that the operator allows.
	TrustedPlaintext
)

// Hosts reads a setting that lists hosts, separated by commas.
func Hosts(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ',' || r == ' ' })
}

// Parse parses a URL, and returns an error, without its text, if it is none or must not be asked.
func (g *Guard) Parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, refuse("the URL cannot be read")
	}
	return u, g.Allows(u)
}

// Allows returns an error if a URL must not be asked.
func (g *Guard) Allows(u *url.URL) error {
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	literal := err == nil
	trusted := g.Trusts(host) || literal && g.trustsAddress(ip)
	local := host == "localhost" || literal && ip.IsLoopback()
	secure := u.Scheme == "https" || g.Plaintext == TrustedPlaintext && trusted
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return refuse("%s from https:// addresses, and %s is none", g.What, Shown(u))
	case !secure && g.Plaintext == TrustedPlaintext:
		return refuse("%s with TLS only: use https:// for %s, or add it to the setting %s of the service", g.What, host,
			g.Setting)
	case !secure && !local:
		return refuse("%s without TLS only from this machine: use https instead of %s", g.What, Shown(u))
	case !trusted && (!secure || literal && !IsPublic(ip)):
		return g.refused(host, host)
	}
	return nil
}

// Trusts reports whether a server may be at a loopback or private address.
func (g *Guard) Trusts(host string) bool {
	return g.Private || slices.Contains(g.Hosts, strings.ToLower(host))
}

// trustsAddress reports whether the operator allows a loopback or private address, whatever its name.
func (g *Guard) trustsAddress(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return g.Trusts(ip.String()) || slices.ContainsFunc(g.Prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// refused returns the error about a server that is at no public address.
func (g *Guard) refused(host, address string) error {
	return refuse("the server %s has no public address (%s); to allow it, add %s to the setting %s of the service", host,
		address, host, g.Setting)
}

// RefusedError is the error of a server that must not be asked. Another attempt is no better.
type RefusedError struct{ text string }

// Error says which server, and what to do.
func (e *RefusedError) Error() string { return e.text }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// special are ranges that look public and lead to a network of the machine's own, or to private addresses.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
}

// public6 are the addresses of IPv6 that are given out; all others lead nowhere, or to a network of the machine's own.
var public6 = netip.MustParsePrefix("2000::/3")

// IsPublic reports whether an address is one of the public internet.
func IsPublic(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && (ip.Is4() || public6.Contains(ip)) &&
		!slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// Client returns a client that asks only servers that may be asked. The address is checked when the connection is made,
// after the name was resolved, so that no name can lead to another address the second time.
func (g *Guard) Client() *http.Client {
	proxies := g.Proxies
	if proxies == nil {
		proxies = httpproxy.FromEnvironment()
	}
	through := proxies.ProxyFunc()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if isProxy(proxies, address) {
			return Dialer{Timeout: connectTimeout}.Dial(ctx, network, address)
		}
		return g.Dial(ctx, network, address)
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:       func(r *http.Request) (*url.URL, error) { return through(r.URL) },
			DialContext: dial, ForceAttemptHTTP2: true, DisableKeepAlives: true,
			TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: g.Patience,
			MaxResponseHeaderBytes: 1 << 20,
		},
		CheckRedirect: func(r *http.Request, before []*http.Request) error {
			if len(before) >= mostRedirects {
				return refuse("the server redirects too often")
			}
			if r.URL.Scheme == "http" && before[len(before)-1].URL.Scheme == "https" {
				return refuse("the server redirects to %s, without TLS", Shown(r.URL))
			}
			return g.Allows(r.URL)
		},
	}
}

// isProxy reports whether an address is that of a proxy in the environment, which the operator has chosen.
func isProxy(proxies *httpproxy.Config, address string) bool {
	for _, text := range []string{proxies.HTTPProxy, proxies.HTTPSProxy} {
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			continue
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[u.Scheme]
		}
		if net.JoinHostPort(u.Hostname(), port) == address {
			return true
		}
	}
	return false
}

// Shown returns a URL for messages, without what may be secret: credentials and the query.
func Shown(u *url.URL) string {
	short := *u
	short.User, short.RawQuery, short.Fragment = nil, "", ""
	return short.String()
}
