package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// failing leads to an S3 server and answers 503 in its place while it fails.
type failing struct {
	atomic.Bool
	http.Handler
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	f.Handler.ServeHTTP(w, r)
}

// answers gives the status of a page, or 0.
func answers(address, path string, header ...string) int {
	request, err := http.NewRequest(http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return 0
	}
	for _, h := range header {
		request.Header.Set("Authorization", h)
	}
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

func TestServeAndWorkerAreReadyWhileTheirPartsAnswer(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	good, s := h.parts(t)
	target, err := url.Parse(s.S3Endpoint)
	must(t, err)
	s3 := &failing{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host // and the host that was signed stays
	}}}
	front := httptest.NewServer(s3)
	t.Cleanup(front.Close)
	parts := h.in(t.TempDir(), append(good, "DEPLOYCTL_S3_ENDPOINT="+front.URL)...)
	listen, ofServe, ofWorker := porttest.Address(t), porttest.Address(t), porttest.Address(t)
	serve := parts.start(t, "serve", "--listen", listen, "--health-listen", ofServe)
	work := parts.start(t, "worker", "--health-listen", ofWorker)
	conn, err := grpc.NewClient(listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	all := func(ready bool) func() bool {
		status, told := http.StatusServiceUnavailable, grpc_health_v1.HealthCheckResponse_NOT_SERVING
		if ready {
			status, told = http.StatusOK, grpc_health_v1.HealthCheckResponse_SERVING
		}
		return func() bool {
			said, err := grpc_health_v1.NewHealthClient(conn).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			return err == nil && said.GetStatus() == told && answers(ofServe, "/readyz") == status &&
				answers(ofWorker, "/readyz") == status
		}
	}
	eventually(t, "both are ready", all(true))
	s3.Store(true)
	eventually(t, "neither is ready", all(false))
	if answers(ofServe, "/livez") != http.StatusOK || answers(ofWorker, "/livez") != http.StatusOK {
		t.Error("they are not alive")
	}
	s3.Store(false)
	eventually(t, "both are ready again", all(true))
	for _, r := range []*ran{serve, work} {
		r.interrupt(t)
		r.mustEnd(t, 0)
	}
}

func TestACheckSaysAllThatIsMissingAndMakesNothing(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	good, _ := h.parts(t)
	bare := h.in(t.TempDir(), h.namespaced(t, good, "bare")...)
	const makes = "a start makes Drift, Initiator, Kind, Org, Project, Result, Stack"
	for range 2 {
		if said := bare.must(t, "serve", "--check"); !strings.Contains(said, makes) {
			t.Errorf("a check makes search attributes, or does not say that they are missing:\n%s", said)
		}
	}
	serve := bare.start(t, "serve", "--listen", porttest.Address(t))
	serve.says(t, "serving")
	serve.interrupt(t)
	serve.mustEnd(t, 0)
	if said := bare.must(t, "serve", "--check"); strings.Contains(said, "makes") {
		t.Errorf("a start makes no search attributes:\n%s", said)
	}
	for _, command := range []string{"serve", "worker"} {
		said := h.in(t.TempDir(), good...).must(t, command, "--check")
		for _, what := range []string{"settings", "bucket", "conditional writes", "clocks", "Temporal", "namespace",
			"search attributes", "store", "age of the bucket"} {
			if !slices.ContainsFunc(strings.Split(said, "\n"), func(line string) bool {
				return strings.HasPrefix(line, "ok       "+what)
			}) {
				t.Errorf("%s does not say that %s is well:\n%s", command, what, said)
			}
		}
	}
	nobody := porttest.Address(t)
	h.in(t.TempDir(), slices.Concat(good, []string{"DEPLOYCTL_S3_BUCKET=elsewhere", "DEPLOYCTL_TEMPORAL_ADDRESS=" +
		nobody})...).
		fails(t, 1, []string{"failed   bucket", "no bucket elsewhere", "failed   Temporal", nobody +
			" cannot be reached", "failed checks: 2"}, "worker", "--check")
	h.in(t.TempDir(), append(good, "DEPLOYCTL_KEY=short")...).fails(t, 1, []string{"failed   settings", "32 bytes"},
		"serve", "--check")
}

func TestMetricsOffLoopbackNeedAToken(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	good, _ := h.parts(t)
	p := h.in(t.TempDir(), good...)
	address := porttest.Address(t)
	_, port, _ := strings.Cut(address, ":")
	p.fails(t, 2, []string{"0.0.0.0:" + port + " (metrics-listen) is not on loopback", "metrics-token-file"}, "worker",
		"--metrics-listen", "0.0.0.0:"+port)
	must(t, os.WriteFile(p.path("token"), []byte("the-token\n"), 0o600))
	work := p.start(t, "worker", "--metrics-listen", address, "--metrics-token-file", p.path("token"))
	eventually(t, "the worker is ready", func() bool { return answers(address, "/readyz") == http.StatusOK })
	for header, want := range map[string]int{"": http.StatusUnauthorized, "Bearer guessed": http.StatusUnauthorized,
		"Bearer the-token": http.StatusOK} {
		if got := answers(address, "/metrics", header); got != want {
			t.Errorf("with %q it answers %d", header, got)
		}
	}
	work.interrupt(t)
	work.mustEnd(t, 0)
}
