package plugins

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

const (
	// connectTimeout bounds the time to connect to a server, and its TLS handshake.
	connectTimeout = 10 * time.Second
	// answerTimeout bounds the time until a server begins to answer, and each pause in its answer.
	answerTimeout = time.Minute
	// mostRedirects bounds how often a server may send a request elsewhere.
	mostRedirects = 10
)

// Network decides from which servers plugins may be downloaded.
type Network struct {
	// Mirror is the address of the only server that is asked, in the form of a plugin's download address; empty: each
	// plugin's own.
	Mirror string
	// Private allows servers at loopback and private addresses: for a service with one user, whose programs reach them
	// anyway.
	Private bool
	// Hosts are the names of servers that may be at such addresses without Private.
	Hosts []string

	environment *httpproxy.Config // of proxies; nil: that of this process
	silence     time.Duration     // instead of answerTimeout, if not 0
}

// The values of the setting that names the source of downloads; any other value is the address of a mirror.
const (
	Auto = "auto"
	Off  = "off"
)

// ParseNetwork reads the settings plugins.download and plugins.private-hosts; nil if nothing may be downloaded.
func ParseNetwork(download, hosts string) (*Network, error) {
	n := &Network{Hosts: strings.FieldsFunc(hosts, func(r rune) bool { return r == ',' || r == ' ' })}
	switch download {
	case Off:
		return nil, nil
	case Auto, "":
		return n, nil
	}
	u, err := url.Parse(download)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("%q is neither %s nor %s nor the URL of a mirror", download, Auto, Off)
	}
	n.Mirror, n.Hosts = download, append(n.Hosts, u.Hostname())
	return n, n.allows(u)
}

// allows returns an error if a URL must not be asked: without TLS, only a server on loopback may be, because anybody on
// the way to another could replace what it sends.
func (n *Network) allows(u *url.URL) error {
	host := u.Hostname()
	ip, err := netip.ParseAddr(host)
	literal := err == nil
	switch {
	case u.Scheme == "https" && (!literal || isPublic(ip) || n.trusts(host)):
		return nil
	case u.Scheme == "https":
		return refused(host, host)
	case u.Scheme != "http":
		return refuse("plugins are downloaded from https:// addresses, and %s is none", shown(u))
	case host != "localhost" && (!literal || !ip.IsLoopback()):
		return refuse("plugins are downloaded without TLS only from this machine: use https instead of %s", shown(u))
	case !n.trusts(host):
		return refused(host, host)
	}
	return nil
}

// trusts reports whether a server may be at a loopback or private address.
func (n *Network) trusts(host string) bool { return n.Private || slices.Contains(n.Hosts, host) }

// refused returns the error about a server that is at no public address.
func refused(host, address string) error {
	return refuse("the server %s has no public address (%s); to download from there, add %s to the setting "+
		"plugins.private-hosts of the service", host, address, host)
}

// refusedError is the error of a server that must not be asked. Another attempt is no better.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

func refuse(format string, args ...any) error { return &refusedError{fmt.Sprintf(format, args...)} }

// special are ranges that look public and lead to a network of the machine's own, or to private addresses.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
}

// isPublic reports whether an address is one of the public internet.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return ip.IsGlobalUnicast() && !ip.IsPrivate() &&
		!slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// patience returns how long a server may send nothing.
func (n *Network) patience() time.Duration { return cmp.Or(n.silence, answerTimeout) }

// client returns a client that asks only servers that may be asked. The address is checked when the connection is made,
// after the name was resolved, so that no name can lead to another address the second time.
func (n *Network) client() *http.Client {
	proxies := n.environment
	if proxies == nil {
		proxies = httpproxy.FromEnvironment()
	}
	through := proxies.ProxyFunc()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		dialer := &net.Dialer{Timeout: connectTimeout}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if !n.trusts(host) && !isProxy(proxies, address) {
			dialer.Control = func(_, address string, _ syscall.RawConn) error {
				at, err := netip.ParseAddrPort(address)
				if err == nil && !isPublic(at.Addr()) {
					err = refused(host, at.Addr().String())
				}
				return err
			}
		}
		return dialer.DialContext(ctx, network, address)
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:       func(r *http.Request) (*url.URL, error) { return through(r.URL) },
			DialContext: dial, ForceAttemptHTTP2: true, DisableKeepAlives: true,
			TLSHandshakeTimeout: connectTimeout, ResponseHeaderTimeout: n.patience(),
			MaxResponseHeaderBytes: 1 << 20,
		},
		CheckRedirect: func(r *http.Request, before []*http.Request) error {
			if len(before) >= mostRedirects {
				return refuse("the server redirects too often")
			}
			if r.URL.Scheme == "http" && before[len(before)-1].URL.Scheme == "https" {
				return refuse("the server redirects to %s, without TLS", shown(r.URL))
			}
			return n.allows(r.URL)
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

// redacted returns the text of a URL for messages.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "a server"
	}
	return shown(u)
}

// shown returns a URL for messages, without what may be secret: credentials and the query.
func shown(u *url.URL) string {
	short := *u
	short.User, short.RawQuery, short.Fragment = nil, "", ""
	return short.String()
}
