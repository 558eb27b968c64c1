package e2e

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// parts are the settings of serve and worker that lead to the Temporal and the S3 server of a home whose service runs.
func (h *home) parts(t *testing.T) (settings []string, s status) {
	t.Helper()
	s = h.status(t)
	text, err := os.ReadFile(filepath.Join(h.state(), "data", "keys.json"))
	must(t, err)
	var keys struct {
		S3AccessKey, S3SecretKey string
		Master                   []byte
	}
	must(t, json.Unmarshal(text, &keys))
	return []string{"DEPLOYCTL_KEY=" + base64.StdEncoding.EncodeToString(keys.Master),
		"DEPLOYCTL_BOOTSTRAP_TOKEN=the-first-token",
		"DEPLOYCTL_TEMPORAL_ADDRESS=" + s.TemporalAddress, "DEPLOYCTL_TEMPORAL_NAMESPACE=" + s.Namespace,
		"DEPLOYCTL_TEMPORAL_TLS_CERT=" + s.TemporalCredentials, "DEPLOYCTL_TEMPORAL_TLS_KEY=" + s.TemporalCredentials,
		"DEPLOYCTL_TEMPORAL_CA_CERT=" + s.TemporalCredentials,
		"DEPLOYCTL_S3_ENDPOINT=" + s.S3Endpoint, "DEPLOYCTL_S3_BUCKET=deployctl",
		"DEPLOYCTL_S3_ACCESS_KEY_ID=" + keys.S3AccessKey, "DEPLOYCTL_S3_SECRET_ACCESS_KEY=" + keys.S3SecretKey}, s
}

// namespaced adds a namespace of its own on the home's Temporal to settings: the namespace of the home is of the home's
// store.
func (h *home) namespaced(t *testing.T, settings []string, name string) []string {
	t.Helper()
	s := h.status(t)
	temporal, err := s.Dial()
	must(t, err)
	defer temporal.Close()
	_, err = temporal.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	must(t, err)
	eventually(t, "the namespace is known", func() bool {
		_, err := temporal.WorkflowService().CountWorkflowExecutions(t.Context(),
			&workflowservice.CountWorkflowExecutionsRequest{Namespace: name})
		return err == nil
	})
	return append(slices.Clone(settings), "DEPLOYCTL_TEMPORAL_NAMESPACE="+name)
}

// running is the shared home, with its service.
func running(t *testing.T) *home {
	t.Helper()
	h := sharedHome(t)
	h.in(t.TempDir()).must(t, "dev", "--background")
	return h
}

func TestWhatAServiceStandsOnIsWrong(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	good, _ := h.parts(t)
	nobody := porttest.Address(t)
	cases := []struct {
		name    string
		changes []string
		code    int
		says    []string
	}{
		{"no credentials for S3, and nobody there",
			[]string{"DEPLOYCTL_S3_ENDPOINT=http://" + nobody, "DEPLOYCTL_S3_ACCESS_KEY_ID=",
				"DEPLOYCTL_S3_SECRET_ACCESS_KEY=", "AWS_ACCESS_KEY_ID=", "AWS_PROFILE=",
				"AWS_CONFIG_FILE=" + os.DevNull, "AWS_SHARED_CREDENTIALS_FILE=" + os.DevNull},
			2, []string{"there are no credentials", "DEPLOYCTL_S3_ACCESS_KEY_ID"}},
		{"wrong credentials for S3", []string{"DEPLOYCTL_S3_SECRET_ACCESS_KEY=guessed"}, 6,
			[]string{"does not accept the credentials"}},
		{"a bucket that does not exist", []string{"DEPLOYCTL_S3_BUCKET=elsewhere"}, 2,
			[]string{"no bucket elsewhere", "create it"}},
		{"nobody at S3's address", []string{"DEPLOYCTL_S3_ENDPOINT=http://" + nobody}, 5,
			[]string{"bucket deployctl at http://" + nobody + " cannot be reached", "connection refused",
				"check that the server runs"}},
		{"nobody at Temporal's address", []string{"DEPLOYCTL_TEMPORAL_ADDRESS=" + nobody}, 5,
			[]string{"Temporal at " + nobody + " cannot be reached", "connection refused", "check that it runs"}},
		{"a namespace that does not exist", []string{"DEPLOYCTL_TEMPORAL_NAMESPACE=theirs"}, 2,
			[]string{"no namespace theirs", "create it"}},
		{"no certificate for Temporal",
			[]string{"DEPLOYCTL_TEMPORAL_TLS_CERT=", "DEPLOYCTL_TEMPORAL_TLS_KEY=", "DEPLOYCTL_TEMPORAL_CA_CERT="}, 5,
			[]string{"cannot be reached", "TLS"}},
		{"a prefix that nobody has set up, of a worker", []string{"DEPLOYCTL_S3_PREFIX=stray/"}, 2,
			[]string{"with the prefix stray/ is empty", "s3.prefix"}},
		{"an API key, and no certificate, for Temporal", []string{"DEPLOYCTL_TEMPORAL_API_KEY=secret",
			"DEPLOYCTL_TEMPORAL_TLS_CERT=", "DEPLOYCTL_TEMPORAL_TLS_KEY=", "DEPLOYCTL_TEMPORAL_CA_CERT="}, 5,
			[]string{"cannot be reached", "TLS"}},
	}
	var started []*ran // all at once: each waits for what is not there
	for i, c := range cases {
		command := []string{"worker"}
		if i%2 == 0 && !strings.HasSuffix(c.name, "of a worker") {
			command = []string{"serve", "--listen", porttest.Address(t)}
		}
		started = append(started, h.in(t.TempDir(), slices.Concat(good, c.changes)...).start(t, command...))
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := started[i]
			r.mustEnd(t, c.code)
			for _, says := range c.says {
				if !strings.Contains(r.said(), says) {
					t.Errorf("it does not say %q but\n%s", says, r.said())
				}
			}
			said := patient.ReplaceAllString(r.said(), "")
			if strings.Count(said, "\n") != 1 {
				t.Errorf("it says more than a sentence:\n%s", said)
			}
			for _, raw := range []string{"operation error", "StatusCode", "desc =", "WARN"} {
				if strings.Contains(said, raw) {
					t.Errorf("it says %q:\n%s", raw, said)
				}
			}
		})
	}
}

// patient is what is logged while a part is waited for, and of a worker that runs as root.
var patient = regexp.MustCompile(`(?m)^time=\S+ level=WARN msg="(waiting for Temporal and S3 to answer|this should be fixed: sandbox).*\n`)

// proxy leads whoever asks for made-up names to real servers, and remembers for whom it was asked.
type proxy struct {
	*httptest.Server
	leads map[string]string // by made-up address
	mu    sync.Mutex
	asked map[string]int // by method and address
}

func newProxy(t *testing.T, leads map[string]string) *proxy {
	p := &proxy{leads: leads, asked: map[string]int{}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked[r.Method+" "+r.Host]++
	p.mu.Unlock()
	to, known := p.leads[r.Host]
	if !known {
		http.Error(w, "there is no "+r.Host, http.StatusBadGateway)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, to)
		return
	}
	r.RequestURI, r.URL.Host = "", to // the Host header stays: it is signed
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	for name, values := range answer.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body) // the client notices
}

// tunnel joins the client's connection with one of the server's until either ends.
func (p *proxy) tunnel(w http.ResponseWriter, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	client, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	if _, err := client.Write([]byte("HTTP/1.1 200 Connected\r\n\r\n")); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, buffered)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

func (p *proxy) count(request string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[request]
}

// TestProxiesAreHonoured has servers whose names only the proxy knows.
func TestProxiesAreHonoured(t *testing.T) {
	t.Parallel()
	h := running(t)
	good, s := h.parts(t)
	const temporal, s3 = "temporal.example.test:7233", "s3.example.test:9000"
	p := newProxy(t, map[string]string{temporal: s.TemporalAddress, s3: strings.TrimPrefix(s.S3Endpoint, "http://")})
	through := h.in(t.TempDir(), slices.Concat(good, []string{"DEPLOYCTL_TEMPORAL_ADDRESS=" + temporal,
		"DEPLOYCTL_TEMPORAL_TLS_SERVER_NAME=localhost", "DEPLOYCTL_S3_ENDPOINT=http://" + s3,
		"HTTP_PROXY=" + p.URL, "HTTPS_PROXY=" + p.URL, "NO_PROXY=127.0.0.1"})...)
	listen := porttest.Address(t)
	served := through.start(t, "serve", "--listen", listen)
	served.says(t, "serving")
	h.in(t.TempDir(), "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN=the-first-token").must(t, "stack", "ls", "--all")
	for _, request := range []string{"CONNECT " + temporal, "GET " + s3} {
		if p.count(request) == 0 {
			t.Errorf("the proxy was not asked to %s but %v", request, p.asked)
		}
	}
	served.interrupt(t)
	served.mustEnd(t, 0)
}
