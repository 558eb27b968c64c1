// Package webhooks sends events to webhooks: it writes them in the format of their receivers, signs them, keeps them
// away from the service's own networks, and keeps a log. The workflow Notify calls its activity.
package webhooks

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/internal/outbound"
)

const (
	// connectTimeout bounds the time to connect to a receiver and to agree on TLS, sendTimeout a whole attempt.
	connectTimeout, sendTimeout = 5 * time.Second, 15 * time.Second
	// maxAnswerHeader limits the headers of an answer that are read.
	maxAnswerHeader = 64 << 10
)

// Network decides to which servers events may be sent. The zero value allows those with public addresses, over TLS.
type Network struct {
	// Private allows every server, also without TLS: for a service with one user, whose programs reach them anyway.
	Private bool
	// Hosts are the names and addresses of servers that may have private addresses, and need no TLS.
	Hosts []string
	// Prefixes are ranges of such addresses.
	Prefixes []netip.Prefix
}

// ParseNetwork reads the setting webhooks.private-hosts: names, addresses and ranges, separated by commas.
func ParseNetwork(text string) (Network, error) {
	var n Network
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		if !strings.Contains(part, "/") {
			n.Hosts = append(n.Hosts, strings.ToLower(part))
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			return n, fmt.Errorf("%q is neither a name, nor an address, nor a range such as 10.0.0.0/8", part)
		}
		n.Prefixes = append(n.Prefixes, prefix.Masked())
	}
	return n, nil
}

// trusts reports whether the operator allows a server whatever its address.
func (n Network) trusts(host string) bool {
	return n.Private || slices.Contains(n.Hosts, strings.ToLower(host))
}

// allows reports whether an event may be sent to an address.
func (n Network) allows(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return outbound.IsPublic(ip) || n.trusts(ip.String()) ||
		slices.ContainsFunc(n.Prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// refusedError is the error of a receiver that must not be sent to. Another attempt is no better.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// isRefused reports whether an attempt has failed with a refusedError.
func isRefused(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused)
}

// check refuses a URL without TLS, unless the operator allows its server.
func (n Network) check(u *url.URL) error {
	if u.Scheme == "https" || n.trusts(u.Hostname()) {
		return nil
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && n.allows(ip) && !outbound.IsPublic(ip) {
		return nil
	}
	return &refusedError{fmt.Sprintf("events are sent with TLS only: use https:// for %s, or add it to the setting "+
		"webhooks.private-hosts of the workers", u.Hostname())}
}

// client returns a client for one attempt. An address is checked when the connection is made, after the name was
// resolved, so that no name can lead to another address the second time. A redirect is an answer like any other: what
// it names was not checked by who created the webhook. Proxies are not used: they would hide the address.
func (n Network) client() *http.Client {
	dialer := outbound.Dialer{Timeout: connectTimeout, Check: func(host string, at netip.Addr) error {
		if n.trusts(host) || n.allows(at) {
			return nil
		}
		return &refusedError{fmt.Sprintf("the server %s has no public address (%s); to send events there, add it to the "+
			"setting webhooks.private-hosts of the workers", host, at)}
	}}
	return &http.Client{
		Timeout: sendTimeout,
		Transport: &http.Transport{
			DialContext: dialer.Dial, DisableKeepAlives: true, TLSHandshakeTimeout: connectTimeout,
			MaxResponseHeaderBytes: maxAnswerHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
