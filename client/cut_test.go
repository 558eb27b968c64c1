package client_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
)

// relay carries connections to an address, and cuts those that there are.
type relay struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns []net.Conn
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, to: to}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.carry(conn)
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); r.cut() })
	return r
}

func (r *relay) carry(conn net.Conn) {
	service, err := net.Dial("tcp", r.to)
	if err != nil {
		_ = conn.Close()
		return
	}
	r.mu.Lock()
	r.conns = append(r.conns, conn, service)
	r.mu.Unlock()
	go func() { _, _ = io.Copy(service, conn) }()
	_, _ = io.Copy(conn, service)
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		_ = conn.Close()
	}
	r.conns = nil
}

// cutting is a service that loses the connections of its clients during the first call.
type cutting struct {
	*memory.Service
	lasts time.Duration // of that call
	calls atomic.Int32
	cut   func()
}

func (c *cutting) lose(ctx context.Context) {
	if c.calls.Add(1) > 1 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(c.lasts):
		c.cut()
		<-ctx.Done()
	}
}

func (c *cutting) ListStacks(ctx context.Context, organization, project string) ([]deployments.StackInfo, error) {
	c.lose(ctx)
	return c.Service.ListStacks(ctx, organization, project)
}

func (c *cutting) CreateStack(ctx context.Context, s deployments.StackName, tags map[string]string) error {
	c.lose(ctx)
	return c.Service.CreateStack(ctx, s, tags)
}

func (c *cutting) Audit(ctx context.Context, q deployments.AuditQuery, fn func(deployments.AuditEntry) error) error {
	c.lose(ctx)
	return c.Service.Audit(ctx, q, fn)
}

var _ grpcapi.Service = (*cutting)(nil)

// throughRelay returns a client of the service that has never been answered.
func throughRelay(t *testing.T, service *cutting, o client.Options) *client.Client {
	t.Helper()
	e := newEdge(t, service)
	r := newRelay(t, e.address)
	service.cut = r.cut
	through := edge{t: t, address: r.Addr().String()}
	return through.dial(o)
}

func TestACallWhoseConnectionIsCutIsTriedAgainAlsoByWhoHasNeverBeenAnswered(t *testing.T) {
	for what, call := range map[string]func(context.Context, *client.Client) error{
		"a list": func(ctx context.Context, c *client.Client) error {
			return second(c.ListStacks(ctx, "organization", ""))
		},
		"an audit log": func(ctx context.Context, c *client.Client) error {
			return c.Audit(ctx, deployments.AuditQuery{Organization: "organization"},
				func(deployments.AuditEntry) error { return nil })
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			service := &cutting{Service: memory.New()}
			c := throughRelay(t, service, client.Options{FirstPatience: time.Nanosecond})
			if err := call(t.Context(), c); err != nil || service.calls.Load() != 2 {
				t.Errorf("after %d calls: %v", service.calls.Load(), err)
			}
		})
	}
}

func TestTheTimeInWhichTheServiceHasACallIsNotOneInWhichItIsUnreachable(t *testing.T) {
	t.Parallel()
	const patience = 5 * time.Second // in which a slow machine connects again
	service := &cutting{Service: memory.New(), lasts: patience}
	c := throughRelay(t, service, client.Options{Patience: patience})
	if _, err := c.ListStacks(t.Context(), "organization", ""); err != nil || service.calls.Load() != 2 {
		t.Errorf("after %d calls: %v", service.calls.Load(), err)
	}
}

func TestACallThatMustNotBeRepeatedIsNotAndSaysThatItsConnectionWasLost(t *testing.T) {
	t.Parallel()
	service := &cutting{Service: memory.New()}
	err := throughRelay(t, service, client.Options{}).CreateStack(t.Context(), dev, nil)
	if deployments.CodeOf(err) != deployments.CodeUnavailable ||
		!strings.Contains(err.Error(), "not known whether this was done") || service.calls.Load() != 1 {
		t.Errorf("after %d calls: %v", service.calls.Load(), err)
	}
}

func TestAStreamThatABalancerBreaksOffIsTriedAgainUntilPatienceEnds(t *testing.T) {
	for what, breakOff := range map[string]func(http.ResponseWriter){
		"RST_STREAM": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"without sending trailers": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/grpc")
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			balancer := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				breakOff(w)
			}))
			balancer.Config.Protocols = &http.Protocols{}
			balancer.Config.Protocols.SetUnencryptedHTTP2(true)
			balancer.Start()
			defer balancer.Close()
			through := edge{t: t, address: balancer.Listener.Addr().String()}
			c := through.dial(client.Options{Patience: 5 * time.Second})
			_, err := c.ListStacks(t.Context(), "organization", "")
			if deployments.CodeOf(err) != deployments.CodeUnavailable || !strings.Contains(err.Error(), what) ||
				calls.Load() < 2 {
				t.Errorf("after %d calls: %v", calls.Load(), err)
			}
		})
	}
}
