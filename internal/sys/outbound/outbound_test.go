package outbound

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http/httpproxy"
)

func TestOnlyAddressesOfThePublicInternetArePublic(t *testing.T) {
	for text, want := range map[string]bool{
		"140.82.112.3": true, "2606:50c0:8000::153": true, "::ffff:140.82.112.3": true,
		"127.0.0.1": false, "::1": false, "0.0.0.0": false, "::": false, "10.1.2.3": false, "172.16.0.1": false,
		"192.168.1.1": false, "169.254.169.254": false, "fe80::1%eth0": false, "fd00:ec2::254": false,
		"100.100.100.200": false, "192.0.0.192": false, "224.0.0.1": false, "255.255.255.255": false,
		"::ffff:169.254.169.254": false, "64:ff9b::a9fe:a9fe": false, "2002:a9fe:a9fe::1": false, "0.1.2.3": false,
		"fec0::1": false, "::a9fe:a9fe": false, "4000::1": false,
	} {
		if got := IsPublic(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// listening is a server that answers, and counts who connects to it.
func listening(t *testing.T, answer http.HandlerFunc) (s *httptest.Server, connected *atomic.Int64) {
	t.Helper()
	connected = &atomic.Int64{}
	s = httptest.NewUnstartedServer(answer)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connected.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, connected
}

// A name says nothing of where it leads: what counts is the address to which the connection is made.
func TestAServerIsJudgedByTheAddressToWhichItsNameLeads(t *testing.T) {
	none, loopback := &httpproxy.Config{}, netip.MustParsePrefix("127.0.0.0/8")
	for name, c := range map[string]struct {
		guard Guard
		asked bool
	}{
		"nobody allows it":        {Guard{Proxies: none}, false},
		"another name is allowed": {Guard{Proxies: none, Hosts: []string{"elsewhere"}}, false},
		"its name is allowed":     {Guard{Proxies: none, Hosts: []string{"localhost"}}, true},
		"its address is allowed":  {Guard{Proxies: none, Prefixes: []netip.Prefix{loopback}}, true},
		"all are allowed":         {Guard{Proxies: none, Private: true}, true},
	} {
		s, connected := listening(t, func(http.ResponseWriter, *http.Request) {}) // of its own: it counts late
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		_, err := c.guard.Client().Get("https://localhost:" + port) // its certificate is not good: it is not read
		conn, dialled := c.guard.Dial(t.Context(), "tcp", "localhost:"+port)
		if dialled == nil {
			_ = conn.Close()
		}
		refused := errors.As(err, new(*RefusedError)) && errors.As(dialled, new(*RefusedError))
		if refused == c.asked || !c.asked && connected.Load() > 0 || c.asked && dialled != nil {
			t.Errorf("%s: %v, and by itself %v; %d have connected", name, err, dialled, connected.Load())
		}
	}
}

func TestAServerLeadsToNoServerThatMustNotBeAsked(t *testing.T) {
	hidden, connected := listening(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := net.SplitHostPort(hidden.Listener.Addr().String())
	for _, to := range []string{"https://127.0.0.2:" + port, "http://127.0.0.1:" + port, "file:///etc/passwd"} {
		door, _ := listening(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
		client := (&Guard{Proxies: &httpproxy.Config{}, Hosts: []string{"127.0.0.1"}}).Client()
		client.Transport.(*http.Transport).TLSClientConfig = door.Client().Transport.(*http.Transport).TLSClientConfig
		if _, err := client.Get(door.URL); !errors.As(err, new(*RefusedError)) || connected.Load() > 0 {
			t.Errorf("led to %s: %v; %d have connected", to, err, connected.Load())
		}
	}
}

// FuzzURLs asks which URLs of users may be asked: whatever they look like, only TLS and public or allowed addresses.
func FuzzURLs(f *testing.F) {
	for _, seed := range []string{"https://example.com/x", "http://localhost:1/", "https://[::ffff:127.0.0.1]/",
		"https://169.254.169.254", "https://user:pass@[fe80::1%25eth0]:8/", "file:///etc/passwd", "https://0x7f.1/"} {
		f.Add(seed)
	}
	g := &Guard{What: "things are fetched", Setting: "things.hosts", Hosts: []string{"inside"}}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := g.Parse(text)
		if err != nil {
			return
		}
		ip, literal := netip.ParseAddr(u.Hostname())
		if trusted := g.Trusts(u.Hostname()); u.Scheme != "https" || literal == nil && !trusted && !IsPublic(ip) {
			t.Errorf("%q may be asked", text)
		}
	})
}
