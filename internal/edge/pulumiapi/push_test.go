package pulumiapi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections in memory, each from an address of its own choice.
type pipes struct {
	dialed chan net.Conn
	closed context.Context
	close  context.CancelFunc
}

type pipe struct {
	net.Conn
	from string
}

func (p pipe) RemoteAddr() net.Addr { return pipeAddress(p.from) }

type pipeAddress string

func (a pipeAddress) Network() string { return "tcp" }
func (a pipeAddress) String() string  { return string(a) }

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.dialed:
		return conn, nil
	case <-p.closed.Done():
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { p.close(); return nil }
func (p pipes) Addr() net.Addr { return pipeAddress("192.0.2.1:443") }

// from returns a client at an address, with the patience of a git server.
func (p pipes) from(host string) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			select {
			case p.dialed <- pipe{theirs, net.JoinHostPort(host, "1234")}:
				return ours, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-p.closed.Done():
				return nil, net.ErrClosed
			}
		}}}
}

// newPushedBench is a bench whose stack has a webhook.
func newPushedBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.want(http.StatusNoContent, http.MethodPost, strings.TrimSuffix(pushPath, "push")+"settings", "token deployer",
		`{"webhook":{"secret":"`+pushSecret+`"}}`)
	return b
}

// serve serves until the test ends.
func serve(t *testing.T, c Config) pipes {
	t.Helper()
	closed, end := context.WithCancel(context.Background())
	p := pipes{make(chan net.Conn), closed, end}
	served, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- Serve(served, p, c) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

// drip is a body of which a byte arrives each second.
type drip struct{ ctx context.Context }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(time.Second):
		return copy(p, "x"), nil
	}
}

const (
	pushPath   = "/api/stacks/acme/shop/dev/deployments/push"
	pushSecret = "the-secret-of-the-webhook"
)

// sendPush sends a message of a size and returns how it is answered; 0 when it is not.
func sendPush(client *http.Client, body io.Reader, size int64, headers ...string) (int, string) {
	r, err := http.NewRequest(http.MethodPost, "http://service"+pushPath, body)
	if err != nil {
		return 0, err.Error()
	}
	r.ContentLength = size
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(answer.Body) // the status says enough
	return answer.StatusCode, string(text)
}

// mac is the signature of texts with the secret of the webhook.
func mac(texts ...string) []byte {
	h := hmac.New(sha256.New, []byte(pushSecret))
	for _, text := range texts {
		_, _ = io.WriteString(h, text)
	}
	return h.Sum(nil)
}

// signedPushes are the headers of a message by how it is signed.
func signedPushes(body string, now time.Time) map[string][]string {
	stamp := strconv.FormatInt(now.Unix(), 10)
	return map[string][]string{
		"GitHub's signature": {"X-GitHub-Event", "ping", "X-Hub-Signature-256", "sha256=" + hex.EncodeToString(mac(body))},
		"GitLab's signature": {"X-Gitlab-Event", "Tag Push Hook", "Webhook-Id", "7", "Webhook-Timestamp", stamp,
			"Webhook-Signature", "v1," + base64.StdEncoding.EncodeToString(mac("7."+stamp+".", body))},
		"GitLab's token": {"X-Gitlab-Event", "Tag Push Hook", "X-Gitlab-Token", pushSecret},
	}
}

// forgedPushes are headers with which somebody without the secret has their message read, if at all.
func forgedPushes(now time.Time) [][]string {
	return [][]string{
		{"X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256=" + strings.Repeat("00", sha256.Size)},
		{"X-Gitlab-Event", "Push Hook", "Webhook-Id", "1", "Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10),
			"Webhook-Signature", "v1," + base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))},
		{"X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", "guess"},
	}
}

// flood sends forged messages from hosts until ctx ends: most announce 4 MiB and send a byte each second, the others
// are whole.
func (p pipes) flood(ctx context.Context, hosts []string) {
	const senders = 200
	for n := range senders {
		client := p.from(hosts[n%len(hosts)])
		go func() {
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				forged := forgedPushes(time.Now())
				headers := forged[n%len(forged)]
				if n%5 == 0 {
					sendPush(client, strings.NewReader(strings.Repeat("x", 1<<10)), 1<<10, headers...)
				} else {
					sendPush(client, drip{ctx}, 4<<20, headers...)
				}
				select {
				case <-ctx.Done():
				case <-time.After(500 * time.Millisecond):
				}
			}
		}()
	}
}

// TestAFloodWithoutTheSecretShutsOutNoSignedPush runs in a bubble, whose time is not the machine's.
func TestAFloodWithoutTheSecretShutsOutNoSignedPush(t *testing.T) {
	var many, network []string
	for n := range 100 {
		many = append(many, fmt.Sprint("203.0.113.", n))
		network = append(network, fmt.Sprintf("2001:db8::%x", n))
	}
	for name, c := range map[string]struct {
		hosts []string
		from  string
	}{
		"from one address":                      {[]string{"203.0.113.1"}, "198.51.100.1"},
		"from many addresses":                   {many, "198.51.100.1"},
		"from many addresses of one network":    {network, "2001:db8:1::1"},
		"from the address of the signed pushes": {[]string{"198.51.100.1"}, "198.51.100.1"},
	} {
		t.Run(name, func(t *testing.T) {
			newPushedBench(t) // the compressor of the process must not be of a bubble
			synctest.Test(t, func(t *testing.T) {
				b := newPushedBench(t)
				p := serve(t, b.config)
				ctx, end := context.WithCancel(t.Context())
				defer end()
				p.flood(ctx, c.hosts)
				client := p.from(c.from)
				for n := range 6 {
					body := `{"text":"` + strings.Repeat("x", []int{50 << 10, 3 << 20}[n%2]) + `"}`
					<-time.After(time.Second)
					for what, headers := range signedPushes(body, time.Now()) {
						begun := time.Now()
						status, text := sendPush(client, strings.NewReader(body), int64(len(body)), headers...)
						if took := time.Since(begun); status != http.StatusOK || took > 5*time.Second {
							t.Errorf("a push of %d bytes with %s is answered %d after %s: %s", len(body), what, status, took, text)
						}
					}
				}
			})
		})
	}
}

// TestWhatAHeaderShowsIsSaidBeforeTheBodyIsRead announces bodies that never come.
func TestWhatAHeaderShowsIsSaidBeforeTheBodyIsRead(t *testing.T) {
	now := time.Now()
	right := signedPushes("", now)
	stamp := func(at time.Time) []string {
		return []string{"X-Gitlab-Event", "Push Hook", "Webhook-Id", "1", "Webhook-Timestamp",
			strconv.FormatInt(at.Unix(), 10), "Webhook-Signature", forgedPushes(at)[1][7]}
	}
	for name, c := range map[string]struct {
		path    string
		status  int
		headers []string
	}{
		"no signature":         {pushPath, 401, []string{"X-GitHub-Event", "push"}},
		"no event":             {pushPath, 400, right["GitHub's signature"][2:]},
		"no stack":             {strings.Replace(pushPath, "dev", "none", 1), 401, right["GitHub's signature"]},
		"no secret":            {strings.Replace(pushPath, "dev", "bare", 1), 401, right["GitHub's signature"]},
		"another digest":       {pushPath, 401, []string{"X-GitHub-Event", "push", "X-Hub-Signature-256", "sha1=00"}},
		"a short signature":    {pushPath, 401, []string{"X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256=00"}},
		"another token":        {pushPath, 401, []string{"X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", "guess"}},
		"an old signature":     {pushPath, 401, stamp(now.Add(-time.Hour))},
		"a future signature":   {pushPath, 401, stamp(now.Add(time.Hour))},
		"no time":              {pushPath, 401, append(stamp(now), "Webhook-Timestamp", "")},
		"an empty signature":   {pushPath, 401, append(stamp(now), "Webhook-Signature", "v1,")},
		"no kind of signature": {pushPath, 401, append(stamp(now), "Webhook-Signature", "x")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newPushedBench(t)
			bare := dev
			bare.Stack = "bare"
			if err := b.store.CreateStack(t.Context(), bare, nil); err != nil {
				t.Fatal(err)
			}
			body := &untouched{}
			if status, text, _ := b.do(http.MethodPost, c.path, "", body, c.headers...); status != c.status {
				t.Errorf("it is answered %d: %s", status, text)
			}
			if body.read {
				t.Error("its body is read")
			}
		})
	}
}

// untouched is a body that notes when it is read.
type untouched struct{ read bool }

func (u *untouched) Read([]byte) (int, error) {
	u.read = true
	return 0, io.EOF
}
