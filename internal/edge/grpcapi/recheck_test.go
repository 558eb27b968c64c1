package grpcapi

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// endless is a service whose updates go on until nobody watches them, and say something all the time when they are
// talkative.
type endless struct {
	*memory.Service
	talkative bool
}

var said = deployments.WatchEvent{Progress: &deployments.Progress{Done: map[string]int{"create": 1}}}

func (e endless) Watch(ctx context.Context, _ deployments.UpdateName, fn func(deployments.WatchEvent) error) error {
	err := fn(said)
	for err == nil && e.talkative {
		err = fn(said)
	}
	if err == nil {
		<-ctx.Done()
		err = ctx.Err()
	}
	return err
}

// watching begins to watch an update of own, and returns when the first event has come.
func watching(t *testing.T, c *grpc.ClientConn, token string) api.Deployments_WatchClient {
	t.Helper()
	stream, err := api.NewDeploymentsClient(c).Watch(as(t.Context(), token), &api.WatchRequest{
		Update: &api.UpdateName{Stack: wire.FromStack(own), Version: "1"},
	})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// changing is an authority whose answer can be replaced by an error, and that counts how often it is asked.
type changing struct {
	Authority
	mu    sync.Mutex
	err   error
	asked int
	more  *sync.Cond // than before
}

func newChanging(a Authority) *changing {
	c := &changing{Authority: a}
	c.more = sync.NewCond(&c.mu)
	return c
}

func (c *changing) Authenticate(ctx context.Context, text string) (deployments.Caller, error) {
	caller, err := c.Authority.Authenticate(ctx, text)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	c.more.Broadcast()
	if c.err != nil {
		return deployments.Caller{}, c.err
	}
	return caller, err
}

func (c *changing) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// wait returns when it was asked so often again.
func (c *changing) wait(times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for enough := c.asked + times; c.asked < enough; {
		c.more.Wait()
	}
}

func TestAStreamEndsWhenItsCallerWouldBeRefused(t *testing.T) {
	viewing := deployments.Grant{Role: viewer, Organization: "acme"}
	for name, c := range map[string]struct {
		take func(context.Context, *memory.Service, *changing) error
		want codes.Code
	}{
		"the token is removed": {func(ctx context.Context, s *memory.Service, _ *changing) error {
			return s.RemoveToken(ctx, "eve")
		}, codes.Unauthenticated},
		"the token expires": {func(_ context.Context, _ *memory.Service, a *changing) error {
			a.fail(deployments.Errorf(deployments.CodeUnauthorized, "the access token eve expired"))
			return nil
		}, codes.Unauthenticated},
		"the member's role is for other stacks": {func(ctx context.Context, s *memory.Service, _ *changing) error {
			return s.GrantMember(ctx, "eve", deployments.Grant{Role: viewer, Organization: "acme",
				Stacks: []string{"pay/*"}})
		}, codes.NotFound},
		"the member is removed": {func(ctx context.Context, s *memory.Service, _ *changing) error {
			return s.RemoveMember(ctx, "eve", "acme")
		}, codes.NotFound},
	} {
		for _, talkative := range []bool{false, true} {
			service := endless{memory.New(), talkative}
			if err := service.GrantMember(t.Context(), "eve", viewing); err != nil {
				t.Fatal(err)
			}
			text, err := service.CreateToken(t.Context(), deployments.Token{Name: "eve", Member: "eve", Organization: "acme"})
			if err != nil {
				t.Fatal(err)
			}
			authority := newChanging(service)
			connection := serving(t, Config{Service: service, Authority: authority, Auditor: service,
				recheckEvery: time.Millisecond}, nil)
			stream := watching(t, connection, text)
			if err := c.take(t.Context(), service.Service, authority); err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = stream.Recv()
			}
			anew, failed := api.NewDeploymentsClient(connection).Watch(as(t.Context(), text), &api.WatchRequest{
				Update: &api.UpdateName{Stack: wire.FromStack(own), Version: "1"},
			})
			if failed == nil {
				_, failed = anew.Recv()
			}
			if status.Code(err) != c.want || err.Error() != failed.Error() {
				t.Errorf("%s (talkative %v): the stream ends with %v, a new one with %v", name, talkative, err, failed)
			}
			if len(service.Audited) != 2 || service.Audited[0].Token != "eve" ||
				service.Audited[0].Error != status.Convert(err).Message() {
				t.Errorf("%s (talkative %v): the audit log has %+v", name, talkative, service.Audited)
			}
		}
	}
}

func TestAStreamGoesOnWhileItsCallerCannotBeChecked(t *testing.T) {
	hold := make(chan struct{})
	service := memory.New()
	service.Play = func(deployments.UpdateRequest) memory.Script {
		return memory.Script{Items: []deployments.WatchEvent{said}, Hold: hold}
	}
	if err := service.CreateStack(t.Context(), own, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Submit(t.Context(), deployments.UpdateRequest{Stack: own, RequestID: "r",
		Kind: "up"}); err != nil {
		t.Fatal(err)
	}
	authority := newChanging(OneToken("local", nil))
	connection := serving(t, Config{Service: service, Authority: authority, recheckEvery: time.Millisecond}, nil)
	stream := watching(t, connection, "local")
	authority.fail(deployments.Errorf(deployments.CodeUnavailable, "the bucket does not answer"))
	authority.wait(3)
	close(hold)
	end, err := stream.Recv()
	if err != nil || end.GetEnd() == nil {
		t.Errorf("got %v, %v", end, err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
}

// gets counts the objects that are read, and lets others run meanwhile.
type gets struct {
	bucket.Memory
	n atomic.Int64
}

func (g *gets) Get(ctx context.Context, key string) (bucket.Object, error) {
	if strings.HasPrefix(key, "tokens/") || strings.HasPrefix(key, "members/") {
		g.n.Add(1)
		runtime.Gosched()
	}
	return g.Memory.Get(ctx, key)
}

func TestTheStreamsOfATokenAreCheckedByOneLook(t *testing.T) {
	const watchers = 60
	var passed atomic.Int64 // seconds
	begun := time.Now()
	objects := &gets{}
	store, err := statestore.New(objects, statestore.Options{
		Master: make([]byte, 32), Now: func() time.Time {
			return begun.Add(
				time.Duration(passed.Load()) * time.Second)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	grant := deployments.Grant{Role: viewer, Organization: "acme"}
	if err := store.Access.GrantMember(t.Context(), "ann", grant); err != nil {
		t.Fatal(err)
	}
	text, err := store.Access.CreateToken(t.Context(), deployments.Token{Name: "ann", Member: "ann", Organization: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	authority := newChanging(store.Access)
	connection := serving(t, Config{Service: endless{Service: memory.New()}, Authority: authority,
		recheckEvery: time.Millisecond}, nil)
	for range watchers {
		watching(t, connection, text)
	}
	before := objects.n.Load()
	passed.Add(10)
	authority.wait(5 * watchers)
	if n := objects.n.Load() - before; n != 2 {
		t.Errorf("%d watchers of a token cost %d reads each %s, and not one of the token and one of its member",
			watchers, n, recheckEvery)
	}
}
