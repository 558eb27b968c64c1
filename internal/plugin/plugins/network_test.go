package plugins

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"golang.org/x/net/http/httpproxy"
)

func TestTheAddressOfAServerDecidesWhetherItMayBeAsked(t *testing.T) {
	shared, own := &Network{Hosts: []string{"10.0.0.7", "127.0.0.2"}}, &Network{Private: true}
	for text, want := range map[string][2]bool{ // on a shared service, and on that of one user
		"https://releases.example/p":  {true, true},
		"https://140.82.112.3/p":      {true, true},
		"https://10.0.0.7/p":          {true, true},
		"https://10.0.0.8/p":          {false, true},
		"https://169.254.169.254/p":   {false, true},
		"https://[::1]/p":             {false, true},
		"http://releases.example/p":   {false, false},
		"http://10.0.0.7/p":           {false, false},
		"http://127.0.0.1:8080/p":     {false, true},
		"http://127.0.0.2:8080/p":     {true, true},
		"http://localhost/p":          {false, true},
		"file:///etc/passwd":          {false, false},
		"ftp://releases.example/p":    {false, false},
		"http://127.0.0.1.example/p":  {false, false},
		"http://127.0.0.1@evil.com/p": {false, false},
	} {
		u, err := url.Parse(text)
		must(t, err)
		for i, n := range []*Network{shared, own} {
			if err := n.allows(u); (err == nil) != want[i] {
				t.Errorf("%s, %d: %v", text, i, err)
			}
		}
	}
}

// asked downloads version 1.0.0 of the provider acme from an address, with the network.
func asked(t *testing.T, n *Network, address string) error {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	must(t, err)
	defer func() { _ = file.Close() }()
	r := Request{Plugin: Plugin{Kind: apitype.ResourcePlugin, Name: "acme", Version: "1.0.0"}, URL: address}
	_, err = newDownloader(n, "").download(t.Context(), r, Here, file)
	return err
}

func TestNoServerLeadsToAPrivateAddress(t *testing.T) {
	var hits atomic.Int32
	private := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer private.Close()
	_, port, err := net.SplitHostPort(private.Listener.Addr().String())
	must(t, err)
	n := &Network{Hosts: []string{"127.0.0.2"}}
	for name, target := range map[string]string{
		"a name that leads to loopback": "https://localhost:" + port, "an address": "https://[::1]:" + port,
		"without TLS": "http://localhost:" + port, "another server without TLS": "http://releases.example",
		"a file": "file:///etc/passwd",
	} {
		if err := asked(t, n, target); err == nil {
			t.Errorf("%s: it was asked", name)
		}
		redirecting := httptest.NewUnstartedServer(http.RedirectHandler(target, http.StatusFound))
		must(t, redirecting.Listener.Close())
		redirecting.Listener, err = net.Listen("tcp", "127.0.0.2:0")
		must(t, err)
		redirecting.Start()
		var refused *outbound.RefusedError
		if err := asked(t, n, redirecting.URL); !errors.As(err, &refused) {
			t.Errorf("%s, by a redirect: %v", name, err)
		}
		redirecting.Close()
	}
	if hits.Load() != 0 {
		t.Error("the server was asked")
	}
}

func TestAProxyOfTheMachineMayBeAtAPrivateAddress(t *testing.T) {
	var through atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through.Store(r.Method + " " + r.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	n := &Network{environment: &httpproxy.Config{HTTPSProxy: proxy.URL}, silence: time.Millisecond}
	if err := asked(t, n, "https://releases.example"); err == nil || through.Load() != "CONNECT releases.example:443" {
		t.Errorf("%v, %v", through.Load(), err)
	}
}

func TestTheSettingNamesWhereDownloadsComeFrom(t *testing.T) {
	for text, valid := range map[string]bool{
		"auto": true, "off": true, "https://mirror.example/${NAME}/${VERSION}": true, "http://127.0.0.1:80": true,
		"on": false, "mirror.example": false, "http://mirror.example": false, "ftp://mirror.example": false,
	} {
		n, err := ParseNetwork(text, "git.example, other.example")
		if (err == nil) != valid || (n == nil) != (text == "off") && valid {
			t.Errorf("%s: %v, %v", text, n, err)
		}
		if text == "auto" && (!n.guard().Trusts("git.example") || !n.guard().Trusts("other.example") ||
			n.guard().Trusts("third.example")) {
			t.Errorf("it trusts %v", n.Hosts)
		}
	}
}
