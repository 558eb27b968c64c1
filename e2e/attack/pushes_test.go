//go:build unix

package attack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/harness"
)

const (
	watchedPath = "/api/stacks/org/watched/dev/deployments"
	pushKey     = "the-secret-of-the-webhook"
)

// said returns how a call to the Pulumi Service API is answered.
func (a *apart) said(ctx context.Context, client *http.Client, path string, body io.Reader, size int64,
	headers ...string,
) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Pulumi+watchedPath+path, body)
	if err != nil {
		return 0, "", err
	}
	r.ContentLength = size
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// from returns a client that makes a connection for each call, from an address of loopback.
func from(host string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
}

// pushes has many hosts send messages of 4 MiB without the secret of the webhook, and never their last bytes, while a
// git server at another address sends signed ones.
func pushes(t *testing.T, f *field) {
	a := f.apart()
	settings := `{"webhook":{"secret":"` + pushKey + `"}}`
	status, text, err := a.said(t.Context(), http.DefaultClient, "/settings", strings.NewReader(settings),
		int64(len(settings)), "Authorization", "token "+a.other)
	if err != nil || status != http.StatusNoContent {
		t.Fatalf("the settings are answered %d: %s %v", status, text, err)
	}
	a.endure(t, func(ctx context.Context) {
		ctx, end := context.WithCancel(ctx)
		var sending sync.WaitGroup
		defer sending.Wait()
		defer end()
		var sent, tried atomic.Int64
		for n := range size(64, 512) {
			client := from([]string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"}[n%4])
			sending.Go(func() {
				for ctx.Err() == nil {
					body := &unfinished{ctx: ctx, zeros: 4*mib - 1, sent: &sent}
					tried.Add(1)
					_, _, _ = a.said(ctx, client, "/push", body, 4*mib, "X-GitHub-Event", "push", "X-Hub-Signature-256",
						"sha256="+strings.Repeat("00", sha256.Size)) // it is refused, or serve hangs up
				}
			})
		}
		harness.Eventually(t, "the flood has what it can get", func() bool { return sent.Load() > 48*mib })
		body := `{"text":"` + strings.Repeat("x", 64<<10) + `"}`
		mac := hmac.New(sha256.New, []byte(pushKey))
		_, _ = io.WriteString(mac, body) // never fails
		slowest := time.Duration(0)
		for range size(5, 100) {
			begun := time.Now()
			status, text, err := a.said(t.Context(), from("127.0.0.5"), "/push", strings.NewReader(body), int64(len(body)),
				"X-GitHub-Event", "ping", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
			if err != nil || status != http.StatusOK {
				t.Errorf("a signed push is answered %d: %s %v", status, text, err)
			}
			slowest = max(slowest, time.Since(begun))
		}
		t.Logf("%d messages without the secret sent %d MiB; signed ones were answered within %v", tried.Load(),
			sent.Load()/mib, slowest)
	})
}
