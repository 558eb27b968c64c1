//go:build unix

package attack

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// largestServe is how much memory serve may ever take, in MiB.
const largestServe = 512

// apart is a service whose parts are processes of their own, behind a proxy of S3 that counts requests but those of
// probes.
type apart struct {
	*cluster.Cluster
	address  string        // of the API
	requests *atomic.Int64 // to S3
	// flooder's token is that of the party that attacks, other's that of somebody else.
	flooder, other string
	tool           *harness.Tool // in an empty project's directory, as whoever holds other
}

// watched is the stack that the flooder may use.
var watched = &api.StackName{Organization: "org", Project: "watched", Stack: "dev"}

// apart is another service than the field's own, started when it is asked for first, that lasts until the field's test
// ends.
func (f *field) apart() *apart {
	if f.parts == nil {
		f.parts = newApart(f.root)
	}
	return f.parts
}

// newApart starts the parts and makes the stack watched.
func newApart(t *testing.T) *apart {
	t.Helper()
	h := harness.NewHome(t, harness.Binary())
	home, err := cluster.Prepare(t.Context(), h.Binary, h.Dir, h.Env)
	harness.Must(t, err)
	a := &apart{requests: &atomic.Int64{}}
	target, err := url.Parse(home.S3Endpoint)
	harness.Must(t, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host // and the host that was signed stays
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/"+home.Bucket+"/probe" {
			a.requests.Add(1)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	// serve collects its garbage as it does where nobody has set GOGC
	env := append(h.Env, "DEPLOYCTL_SANDBOX_MODE=off", "GOGC=100")
	a.Cluster, err = cluster.Start(t.Context(), h.Binary, h.Dir, env, home, proxy.URL, 1)
	harness.Must(t, err)
	t.Cleanup(a.Stop)
	for _, variable := range a.Env {
		if at, ok := strings.CutPrefix(variable, "DEPLOYCTL_SERVER="); ok {
			a.address = at
		}
	}
	a.tool = &harness.Tool{Path: h.Binary, Dir: t.TempDir(), Env: a.Env}
	for name, token := range map[string]*string{"flooder": &a.flooder, "other": &a.other} {
		*token = strings.TrimSpace(a.tool.Must(t, "token", "create", name, "--role", "deployer", "--organization",
			"org"))
	}
	a.tool.Env = append(a.tool.Env, "DEPLOYCTL_TOKEN="+a.other)
	harness.Files{"Pulumi.yaml": "name: watched\nruntime: scenario\n", "scenario.yaml": "steps: []\n"}.Write(t,
		a.tool.Dir)
	a.tool.Must(t, "stack", "init", "org/watched/dev")
	return a
}

// as is a context with a token.
func as(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// connect makes a connection to the API of its own.
func (a *apart) connect(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(a.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	harness.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// endure has serve endure a flood: it takes no more memory than it may, and answers somebody else all the while.
func (a *apart) endure(t *testing.T, flood func(context.Context)) {
	t.Helper()
	serve := a.Serve.PID()
	forgetPeak(t, serve)
	stacks := api.NewStacksClient(a.connect(t))
	_, err := stacks.GetStack(as(patient(t), a.other), &api.GetStackRequest{Stack: watched}) // now the connection is known
	harness.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	answered := make(chan struct{})
	var calls int
	var slowest time.Duration
	go func() {
		defer close(answered)
		for each := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-each.C {
			begun := time.Now()
			if err := a.asksAgain(t, func(call context.Context) error {
				_, err := stacks.GetStack(call, &api.GetStackRequest{Stack: watched})
				return err
			}); err != nil {
				t.Errorf("somebody else is answered: %v", err)
				return
			}
			calls, slowest = calls+1, max(slowest, time.Since(begun))
		}
	}()
	flood(ctx)
	stop()
	<-answered
	if now := a.Serve.PID(); now != serve {
		t.Fatalf("serve was process %d and is %d", serve, now)
	}
	peak := cluster.Peak(serve)
	t.Logf("serve took %.0f MiB at most; somebody else was answered %d times, within %v", peak, calls, slowest)
	if peak > largestServe {
		t.Errorf("serve took %.0f MiB, more than %d", peak, largestServe)
	}
}

// asksAgain makes a call as somebody else, and again while the service says that a part of it does not answer, as a
// client does: on a machine that is busy with a flood that may be so for a moment.
func (a *apart) asksAgain(t *testing.T, call func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(as(t.Context(), a.other), waittest.Patience)
	defer cancel()
	for again := time.NewTicker(50 * time.Millisecond); ; <-again.C {
		err = call(ctx)
		if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded || ctx.Err() != nil {
			return err
		}
	}
}

// forgetPeak has the largest size that a process has had told anew from here on.
func forgetPeak(t *testing.T, pid int) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Logf("the peak is that since process %d was started: %v", pid, err)
	}
}
