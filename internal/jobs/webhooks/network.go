// Package webhooks sends events to webhooks: it writes them in the format of their receivers, signs them, keeps them
// away from the service's own networks, and keeps a log. The workflow Notify calls its activity.
package webhooks

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/deployctl/deployctl/internal/sys/outbound"
)

// sendTimeout bounds an attempt.
const sendTimeout = 15 * time.Second

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

// guard returns the guard of what is sent. Proxies are not used: they would hide the address of a receiver.
func (n Network) guard() *outbound.Guard {
	return &outbound.Guard{What: "events are sent", Setting: "webhooks.private-hosts", Private: n.Private, Hosts: n.Hosts,
		Prefixes: n.Prefixes, Plaintext: outbound.TrustedPlaintext, Proxies: &httpproxy.Config{}}
}

// client returns a client for one attempt. A redirect is an answer like any other: what it names was not checked by who
// created the webhook.
func (n Network) client() *http.Client {
	c := n.guard().Client()
	c.Timeout = sendTimeout
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}
