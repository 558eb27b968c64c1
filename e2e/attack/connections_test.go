//go:build unix

package attack

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// connections has one host make more connections without a token than serve takes, to both edges, each again soon after
// it is closed. Somebody with a token at another address connects anew for each call meanwhile.
func connections(t *testing.T, f *field) {
	a := f.apart()
	pulumi, err := url.Parse(a.Pulumi)
	harness.Must(t, err)
	a.endure(t, func(ctx context.Context) {
		ctx, end := context.WithCancel(ctx)
		var flooding sync.WaitGroup
		defer flooding.Wait()
		defer end()
		var made atomic.Int64
		for _, to := range []struct{ address, says string }{
			{pulumi.Host, "GET /api/capabilities HTTP/1.1\r\nHost: serve\r\n\r\n"},
			{a.address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
		} {
			for range size(2_100, 4_200) {
				flooding.Go(func() { stay(ctx, to.address, to.says, &made) })
			}
		}
		harness.Eventually(t, "the flood has all that it can get", func() bool {
			return made.Load() > int64(2*size(2_100, 4_200))
		})
		elsewhere := from("127.0.0.5")
		elsewhere.Timeout = waittest.Patience
		slowest, served := time.Duration(0), 0
		for range size(20, 200) {
			begun := time.Now()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.Pulumi+"/api/user", nil)
			harness.Must(t, err)
			r.Header.Set("Authorization", "token "+a.other)
			answer, err := elsewhere.Do(r)
			if err != nil {
				t.Errorf("whoever has a token is not answered: %v", err)
				continue
			}
			switch _ = answer.Body.Close(); answer.StatusCode {
			case http.StatusOK:
				served++
			case http.StatusServiceUnavailable: // the bucket was slow; the client would ask again
			default:
				t.Errorf("whoever has a token is answered %d", answer.StatusCode)
			}
			slowest = max(slowest, time.Since(begun))
		}
		t.Logf("%d connections were made; somebody with a token was answered within %v", made.Load(), slowest)
		if served < size(20, 200)/2 {
			t.Errorf("whoever has a token is served %d times", served)
		}
	})
}

// stay keeps one connection without a token, and makes another one when that is closed, until ctx ends.
func stay(ctx context.Context, address, says string, made *atomic.Int64) {
	for each := time.NewTicker(500 * time.Millisecond); ctx.Err() == nil; <-each.C {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			continue
		}
		made.Add(1)
		closes := context.AfterFunc(ctx, func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, says)
		_, _ = io.Copy(io.Discard, conn) // until serve hangs up
		closes()
		_ = conn.Close()
	}
}
