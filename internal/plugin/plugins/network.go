package plugins

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"github.com/deployctl/deployctl/internal/sys/outbound"
	"golang.org/x/net/http/httpproxy"
)

// answerTimeout bounds the time until a server begins to answer, and each pause in its answer.
const answerTimeout = time.Minute

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
	n := &Network{Hosts: outbound.Hosts(hosts)}
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

// guard returns the guard of the network's requests.
func (n *Network) guard() *outbound.Guard {
	return &outbound.Guard{What: "plugins are downloaded", Setting: "plugins.private-hosts", Private: n.Private,
		Hosts: n.Hosts, Proxies: n.environment, Patience: n.patience()}
}

// allows returns an error if a URL must not be asked.
func (n *Network) allows(u *url.URL) error { return n.guard().Allows(u) }

// patience returns how long a server may send nothing.
func (n *Network) patience() time.Duration { return cmp.Or(n.silence, answerTimeout) }

// redacted returns the text of a URL for messages.
func redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "a server"
	}
	return outbound.Shown(u)
}
