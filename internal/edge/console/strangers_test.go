package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/sys/mempool"
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

// claims notes whether calls have claimed memory.
type claims struct {
	*offline
	claimed []bool
}

func (s *claims) Admitting(ctx context.Context, token string) ([]string, error) {
	s.claimed = append(s.claimed, mempool.Claimed(ctx))
	return s.offline.Admitting(ctx, token)
}

func (s *claims) Exchange(ctx context.Context, e deployments.Exchange) (deployments.Exchanged, error) {
	s.claimed = append(s.claimed, mempool.Claimed(ctx))
	return s.offline.Exchange(ctx, e)
}

func TestALoginWithTheProviderHasNoMoreMemoryThanItsHost(t *testing.T) {
	d := newDesk(t)
	s := &claims{offline: d.service}
	d.config.Service = s
	d.serve()
	d.logsIn(nil)
	if !slices.Equal(s.claimed, []bool{true, true}) {
		t.Errorf("the reads of a login have claimed memory: %v", s.claimed)
	}
}

func TestWhoIsNotTrustedIsNotInTheLogOfTheOrganizationThatTheyName(t *testing.T) {
	d := newDesk(t)
	d.provider.Is(map[string]any{"sub": "eve", "email": "eve@evil.example", "email_verified": true})
	said := map[string]bool{}
	for _, organization := range []string{"acme", "made-up"} {
		d.audit.entries = nil
		cookie, back := d.begun(url.Values{"organization": {organization}})
		status, page, _ := d.returned(back, cookie)
		if e := d.audit.entries; status != http.StatusUnauthorized || len(e) != 1 || e[0].Organization != "" ||
			e[0].Identity != "eve" || e[0].Subject != "organization="+organization || !e[0].Refused {
			t.Errorf("at %s, it is answered %d; the log has %+v", organization, status, e)
		}
		said[strings.ReplaceAll(page, organization, "ORGANIZATION")] = true
	}
	if len(said) != 1 {
		t.Errorf("the pages differ: %v", said)
	}
}
