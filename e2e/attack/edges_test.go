//go:build unix

package attack

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// edgeAttacks are those of whoever reaches a port of the service.
var edgeAttacks = []attack{
	{"edge/malformed-calls", malformedEdges},
	{"edge/taken-address", takenAddress},
	{"edge/resets", resets},
	{"edge/held-connections", heldConnections},
}

// edges are the ports at which a service listens, but for the API's calls, which client/malformed-calls makes; full is
// the number of calls at full size.
var edges = []struct {
	name string
	full int
	play func(t *testing.T, f *field, calls int)
}{
	{"the resource monitor", 100_000, func(t *testing.T, f *field, calls int) { f.run(t, "monitor", calls) }},
	{"the engine and the schema loader", 100_000, func(t *testing.T, f *field,
		calls int) {
		f.run(t, "engine", calls)
	}},
	{"registrations", 10_000, func(t *testing.T, f *field, calls int) { f.run(t, "registrations", calls) }},
	{"the Web UI", 100_000, func(t *testing.T, f *field, calls int) {
		at := f.status(t).UIURL
		f.shout(t, at, calls, "/", "/open?link=x", "/api/v1/settings", "/api/v1/namespaces/deployctl/workflows",
			"/codec/decode",
			"/api/v1/namespaces/deployctl/workflows/none/cancel",
			"/api/v1/namespaces/deployctl/workflows/none/query/__stack_trace")
	}},
	{"probes and metrics", 100_000, func(t *testing.T, f *field, calls int) {
		f.shout(t, "http://"+f.vitals, calls, "/metrics", "/livez", "/readyz")
	}},
	{"S3", 100_000, func(t *testing.T, f *field, calls int) {
		f.shout(t, f.S3(t).Endpoint, calls, "/", "/deployctl", "/deployctl?list-type=2", "/deployctl/keys/ring.json",
			"/?Action=ListUsers")
	}},
	{"Temporal", 100_000, func(t *testing.T, f *field, calls int) {
		f.shout(t, "https://"+f.status(t).TemporalAddress, calls, "/")
	}},
	{"the API, without HTTP/2", 100_000, func(t *testing.T, f *field, calls int) {
		f.shout(t, "https://"+f.status(t).APIAddress, calls, "/")
	}},
	{"the Pulumi Service API", 100_000, func(t *testing.T, f *field, calls int) {
		f.shout(t, "http://"+f.status(t).PulumiAddress, calls, "/", "/api/user", "/api/user/stacks",
			"/api/stacks/organization/p/dev", "/api/stacks/organization/p/dev/export",
			"/api/stacks/organization/p/dev/update/1/journalentries", "/console/", "/console/login",
			"/console/organization/p/dev/updates/1")
	}},
}

// largestEmbedded is what the embedded service, with Temporal and the S3 server in its process, may take, in MiB.
const largestEmbedded = 1024

// malformedEdges plays malformed calls on every edge while a neighbour's stack is updated again and again.
func malformedEdges(t *testing.T, f *field) {
	for row, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			soaktest.ButFor(t, 6, row)
			stop, stopped := make(chan struct{}), make(chan int)
			go func() {
				updates := 0
				defer func() { stopped <- updates }()
				for {
					if end := command(t, f.victim, "up", "--yes", "--skip-preview"); end.Code != 0 {
						t.Errorf("the neighbour's update ends with %d: %s", end.Code, end.Said())
						return
					}
					updates++
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
			service := f.status(t).PID
			forgetPeak(t, service)
			begun := time.Now()
			calls := size(300, e.full)
			e.play(t, f, calls)
			took := time.Since(begun)
			close(stop)
			t.Logf("%d calls in %v; meanwhile the neighbour was updated %d times, and the service took %.0f MiB at "+
				"most",
				calls, took.Round(time.Millisecond), <-stopped, cluster.Peak(service))
			if now := f.status(t).PID; now != service {
				t.Errorf("the service was process %d and is %d", service, now)
			}
			if peak := cluster.Peak(service); peak > largestEmbedded {
				t.Errorf("the service took %.0f MiB, more than %d", peak, largestEmbedded)
			}
		})
	}
}

// command runs a command however long it takes, from any goroutine.
func command(t *testing.T, tool *harness.Tool, args ...string) harness.End {
	cmd := exec.CommandContext(t.Context(), tool.Path, args...)
	cmd.Dir, cmd.Env = tool.Dir, tool.Env
	var said, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &wrong
	_ = cmd.Run() // see Code
	return harness.End{Args: args, Stdout: said.String(), Stderr: wrong.String(), Code: cmd.ProcessState.ExitCode()}
}

// shout sends requests that are hardly HTTP to a port, each on a connection of its own, without credentials and with
// those of a browser that may see the Web UI.
func (f *field) shout(t *testing.T, at string, calls int, paths ...string) {
	t.Helper()
	target, err := url.Parse(at)
	harness.Must(t, err)
	cookie := f.session(t)
	before := standing(t, target)
	var next, answered atomic.Int64
	var calling sync.WaitGroup
	for worker := range uint64(4) {
		calling.Go(func() {
			random := rand.New(rand.NewPCG(17, worker))
			for next.Add(1) <= int64(calls) {
				n, err := whisper(target, before != mute, requestOf(random, target.Host, cookie, paths),
					random.IntN(4) == 0)
				if err != nil {
					t.Errorf("%s is not reached or does not hang up: %v", target.Host, err)
					return
				}
				if n > 0 {
					answered.Add(1)
				}
			}
		})
	}
	calling.Wait()
	t.Logf("%d of %d were answered", answered.Load(), calls)
	if after := standing(t, target); after != before {
		t.Errorf("GET / is answered with %s, and was with %s", after, before)
	}
}

// session is the cookie of a browser that has opened a link to the Web UI.
func (f *field) session(t *testing.T) string {
	t.Helper()
	link := regexp.MustCompile(`http://\S+/open\?link=\S+`).FindString(f.Deployctl(f.Dir).Must(t, "dev", "status"))
	jar, err := cookiejar.New(nil)
	harness.Must(t, err)
	answer, err := porttest.Browser(jar).Get(link)
	harness.Must(t, err)
	_ = answer.Body.Close()
	for _, c := range jar.Cookies(answer.Request.URL) {
		return c.String()
	}
	t.Fatalf("%s gives no cookie: %s", link, answer.Status)
	return ""
}

// mute is how a port stands that does not speak HTTP, or not with a stranger.
const mute = "no HTTP"

// standing is how a port answers a good request: a status, or mute.
func standing(t *testing.T, target *url.URL) string {
	t.Helper()
	b := porttest.Browser(nil)
	b.Timeout = waittest.Patience
	answer, err := b.Get(target.String() + "/")
	if err != nil {
		return mute
	}
	_ = answer.Body.Close()
	return answer.Status
}

// whisper sends bytes to a port, over TLS without a certificate or as they are, and waits until the other side hangs
// up. It gives the number of bytes that were answered. A port that speaks HTTP is greeted before: then the connection
// has been accepted.
func whisper(target *url.URL, greets bool, message []byte, secure bool) (int64, error) {
	conn, err := net.Dial("tcp", porttest.Resolved(target.Host))
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.(*net.TCPConn).SetLinger(0) // a hundred thousand ports must not stay taken
	_ = conn.SetDeadline(time.Now().Add(waittest.Patience))
	answers := bufio.NewReader(conn)
	if greets {
		// the answer shows whether it was sent
		_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", target.Host)
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			return 0, err
		}
		_, _ = io.Copy(io.Discard, answer.Body) // what is missing is missed below
		_ = answer.Body.Close()
	}
	if secure && target.Scheme == "https" {
		if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).Handshake(); err == nil {
			//nolint:gosec // an attacker does not care
			message = append([]byte{23, 3, 3, 0, 9}, message...)
		}
	}
	_, _ = conn.Write(message) // the other side may have hung up
	_ = conn.(*net.TCPConn).CloseWrite()
	n, err := io.Copy(io.Discard, answers)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	return n, nil
}

// requestOf is a request that is good in places.
func requestOf(random *rand.Rand, host, cookie string, paths []string) []byte {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	if random.IntN(10) == 0 {
		garbage := make([]byte, 1+random.IntN(2000))
		for i := range garbage {
			garbage[i] = byte(random.Uint32())
		}
		return garbage
	}
	payloads, err := json.Marshal(mutate(random, map[string]any{"payloads": []any{
		map[string]any{"metadata": map[string]any{"encoding": "YmluYXJ5L3NlYWxlZA=="}, "data": "AAAA"},
		map[string]any{"data": "e30="},
	}}))
	if err != nil {
		panic(err)
	}
	body := pick("", string(payloads), string(payloads), "{", strings.Repeat("[", 10_000),
		"5\r\nhello\r\nffffffffff\r\n", "\xff\x00")
	path := pick(append(paths, append(paths, pick(texts...), "http://evil/", "*", "/%00", "/%2e%2e/%2e%2e/etc/passwd",
		"//"+host)...)...)
	var b strings.Builder
	method := pick("GET", "POST", "POST", "PUT", "DELETE", "TRACE", "PRI", "", "G\x00T")
	fmt.Fprintf(&b, "%s %s %s\r\n", method, path, pick("HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/9.9", ""))
	length := fmt.Sprint(len(body))
	for _, header := range []string{
		"Host: " + pick(host, host, host, "evil.example", ""), "Content-Type: application/json",
		"Cookie: " + pick(cookie, cookie, "deployctl_ui=1.2.3", strings.Repeat("c=", 9_000)),
		"Content-Length: " + pick(length, length, "-1", "99999999999999999999", "1000000"),
	} {
		if random.IntN(8) > 0 {
			b.WriteString(header + "\r\n")
		}
	}
	if random.IntN(4) == 0 {
		b.WriteString(pick("Transfer-Encoding: chunked", "Upgrade: h2c",
			"Authorization: AWS4-HMAC-SHA256 Credential=/////", "X", ": ",
			"Range: bytes=9-1,-", "Expect: 100-continue", "Authorization: Bearer \x00", "Sec-Fetch-Site: cross-site",
			strings.Repeat("X", 20_000)+": x", "Connection: close, keep-alive") + "\r\n")
	}
	return []byte(b.String() + "\r\n" + body)
}
