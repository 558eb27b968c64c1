package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/internal/edge/grpcapi"
)

// from makes a call of a host, with the cookie of a flow.
func (d desk) from(host, path, flow string) (int, string) {
	d.Helper()
	r := httptest.NewRequestWithContext(d.Context(), http.MethodGet, path, nil)
	r.RemoteAddr = host
	r.AddCookie(&http.Cookie{Name: flowCookie, Value: flow})
	w := httptest.NewRecorder()
	d.console.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestStrangersOfOneNetworkKeepNobodyFromLoggingInWithTheProvider(t *testing.T) {
	d := newDesk(t)
	var wg sync.WaitGroup
	for i := range 150 {
		junk, back := d.begun(nil) // by anybody, who needs no account
		query := back.Query()
		query.Set("code", "none")
		back.RawQuery = query.Encode()
		host := []string{"[2001:db8::1]:5000", "[2001:db8::2:3]:5000"}[i%2]
		wg.Go(func() {
			status, said := d.from(host, back.RequestURI(), junk)
			if status != http.StatusUnauthorized && (status != http.StatusServiceUnavailable ||
				!strings.Contains(said, "from your network") || !strings.Contains(said, `name="token"`)) {
				t.Errorf("a stranger is answered %d: %s", status, said)
			}
		})
	}
	wg.Wait()
	own, back := d.begun(nil)
	if status, said := d.from("[2001:db8:0:1::1]:5000", back.RequestURI(), own); status != http.StatusOK {
		t.Errorf("who is trusted is answered %d: %s", status, said)
	}
	if grpcapi.Party("[2001:db8::1]:5000") != grpcapi.Party("[2001:db8::2:3]:5000") {
		t.Error("the strangers are of two networks")
	}
}
