package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
)

func TestACallerIsKnownBeforeAnythingIsReadOfThem(t *testing.T) {
	connection := serving(t, Config{Service: memory.New(), Authority: OneToken("local", nil)}, nil)
	ctx := as(waittest.Context(t), "wrong")
	var calls sync.WaitGroup
	for full, r := range rules {
		if r.scope == open {
			continue
		}
		calls.Go(func() {
			// The message is never sent: who waits for it would wait for ever.
			stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, full)
			if err == nil {
				err = stream.RecvMsg(&api.ErrorDetail{})
			}
			if status.Code(err) != codes.Unauthenticated {
				t.Errorf("%s: %v", full, err)
			}
		})
	}
	calls.Wait()
}

// weighed is a service that counts the bytes of files that it has at a time.
type weighed struct {
	*memory.Service
	now, most atomic.Int64
	enter     chan struct{}
	leave     chan struct{}
}

func (w *weighed) PutFile(_ context.Context, _ deployments.StackName, _ string, content []byte) error {
	now := w.now.Add(int64(len(content)))
	for most := w.most.Load(); now > most && !w.most.CompareAndSwap(most, now); most = w.most.Load() {
	}
	w.enter <- struct{}{}
	<-w.leave
	w.now.Add(-int64(len(content)))
	return nil
}

func TestUploadsAreTakenOneAfterTheOtherWhereTheyWouldNotFitTogether(t *testing.T) {
	const size, files = 100 << 20, 6
	service := &weighed{Service: memory.New(), enter: make(chan struct{}), leave: make(chan struct{})}
	connection := serving(t, Config{Service: service, Authority: OneToken("local", nil)}, nil)
	chunk := make([]byte, 1<<20)
	upload := func() error {
		stream, err := api.NewBundlesClient(connection).PutFile(as(t.Context(), "local"))
		if err != nil {
			return err
		}
		m := &api.PutFileRequest{Stack: wire.FromStack(own), Digest: "sha256:" + strings.Repeat("0", 64), Size: size}
		for range size / len(chunk) {
			m.Chunk = chunk
			if err := stream.Send(m); err != nil {
				break // the answer says why
			}
			m = &api.PutFileRequest{}
		}
		_, err = stream.CloseAndRecv()
		return err
	}
	var uploads sync.WaitGroup
	for range files {
		uploads.Go(func() {
			err := upload()
			for status.Code(err) == codes.Unavailable { // on a busy machine one is slow, and gives way
				err = upload()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range files {
		<-service.enter
		service.leave <- struct{}{}
	}
	uploads.Wait()
	if most := service.most.Load(); most > budget {
		t.Errorf("%d MiB were there at a time", most>>20)
	}
}

func TestACallTakesTheMemoryThatItsRuleSays(t *testing.T) {
	for name, c := range map[string]struct {
		full string
		m    proto.Message
		want int64 // of the budget
	}{
		"a file": {api.Bundles_PutFile_FullMethodName, &api.PutFileRequest{Size: 10 << 20},
			10 << 20},
		"a deployment":              {api.Stacks_Import_FullMethodName, &api.ImportRequest{Size: 10 << 20}, 40 << 20},
		"one whose size is unknown": {api.Stacks_Import_FullMethodName, &api.ImportRequest{}, budget},
		"a large message": {api.Stacks_Encrypt_FullMethodName,
			&api.EncryptRequest{Plain: []string{strings.Repeat("x", 2<<20)}}, 8 << 20},
		"a small message": {api.Stacks_Export_FullMethodName, &api.ExportRequest{}, 0},
	} {
		const header = 100 // of a message, parsedTimes
		if got := memoryOf(rules[c.full].room, c.m); got < c.want || got > c.want+header {
			t.Errorf("%s takes %d bytes, and not %d", name, got, c.want)
		}
	}
}

// TestAnOrganizationHasItsShareOfTheExports has one of them ask for all.
func TestAnOrganizationHasItsShareOfTheExports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounds(nil)
		for range exportsOfOne {
			if _, err := b.export(t.Context(), "evil"); err != nil {
				t.Fatal(err)
			}
		}
		go func() { _, _ = b.export(t.Context(), "evil") }() // it waits
		synctest.Wait()
		begun := time.Now()
		if done, err := b.export(t.Context(), "acme"); err != nil || time.Since(begun) > 0 {
			t.Errorf("another organization waits for %s: %v", time.Since(begun), err)
		} else {
			done()
		}
		<-time.After(admitPatience)
	})
}

// TestASlowUploadGivesWayToAnotherOrganization has one announce all that there is and send nothing.
func TestASlowUploadGivesWayToAnotherOrganization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &weighed{Service: memory.New(), enter: make(chan struct{}, 1), leave: make(chan struct{}, 1)}
		connection := servingInBubble(t, Config{Service: service, Authority: OneToken("local", nil),
			Log: slog.New(slog.DiscardHandler)})
		upload := func(organization string, size int64) api.Bundles_PutFileClient {
			stream, err := api.NewBundlesClient(connection).PutFile(as(t.Context(), "local"))
			if err != nil {
				t.Fatal(err)
			}
			stack := wire.FromStack(own)
			stack.Organization = organization
			if err := stream.Send(&api.PutFileRequest{Stack: stack, Digest: "sha256:" + strings.Repeat("0", 64),
				Size: size, Chunk: []byte("x")}); err != nil {
				t.Fatal(err)
			}
			return stream
		}
		slow := upload("evil", MaxContent)
		ended := make(chan error, 1)
		go func() { ended <- slow.RecvMsg(&api.PutFileResponse{}) }()
		service.leave <- struct{}{}
		if _, err := upload("acme", 1).CloseAndRecv(); err != nil {
			t.Errorf("another organization is answered %v", err)
		}
		if err := <-ended; status.Code(err) != codes.Unavailable {
			t.Errorf("the slow one ends with %v", err)
		}
	})
}

// servingInBubble serves the API on a connection within a bubble of synctest, whose time passes as it is waited for.
func servingInBubble(t *testing.T, c Config) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, c) }()
	connection, err := grpc.NewClient("passthrough:bubble", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = connection.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return connection
}

func TestAFileLargerThanItSaidIsRefused(t *testing.T) {
	connection := serving(t, Config{Service: memory.New(), Authority: OneToken("local", nil)}, nil)
	for name, m := range map[string]*api.PutFileRequest{
		"more than it said":           {Size: 3, Chunk: []byte("four")},
		"more than the service takes": {Size: MaxContent + 1},
	} {
		m.Stack, m.Digest = wire.FromStack(own), "sha256:"+strings.Repeat("0", 64)
		if s := invoke(t, connection, api.Bundles_PutFile_FullMethodName, "local",
			m); s.Code() != codes.InvalidArgument {
			t.Errorf("%s: %v", name, s)
		}
	}
}

func TestATokenThatCallsTooOftenIsDelayedAndThenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := newBounds(nil), time.Now()
		var refused error
		for range callBurst + callsPerSecond*10 {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // nobody waits
			if err := b.pace(ctx, "busy"); err != nil && !errors.Is(err, ctx.Err()) {
				refused = err
				break
			}
		}
		if deployments.CodeOf(refused) != deployments.CodeUnavailable {
			t.Errorf("it is never refused: %v", refused)
		}
		if err := b.pace(t.Context(), "other"); err != nil || time.Since(began) > 0 {
			t.Errorf("another token waits for %s: %v", time.Since(began), err)
		}
	})
}

func TestWrongTokensOfOneAddressAreSlowedAndOthersAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := newBounds(nil), time.Now()
		for range wrongBurst {
			b.slow(t.Context(), "192.0.2.1")
		}
		if time.Since(began) > 0 {
			t.Errorf("the first ones wait for %s", time.Since(began))
		}
		b.slow(t.Context(), "192.0.2.1")
		if waited := time.Since(began); waited != time.Second/wrongPerSecond {
			t.Errorf("the address is answered after %s", waited)
		}
		began = time.Now()
		b.slow(t.Context(), "192.0.2.2")
		if time.Since(began) > 0 {
			t.Errorf("another address waits for %s", time.Since(began))
		}
	})
}

func TestAddressesOfOneNetworkAreSlowedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, began := newBounds(nil), time.Now()
		for i := range wrongBurst + 1 {
			b.slow(t.Context(), fmt.Sprintf("2001:db8::%x", i))
		}
		if waited := time.Since(began); waited != time.Second/wrongPerSecond {
			t.Errorf("they are answered after %s", waited)
		}
	})
}

func TestSoFewTokensAndAddressesAreRememberedThatMemoryIsBounded(t *testing.T) {
	b := newBounds(nil)
	first := b.calls.of("0")
	for i := range 3 * maxNamed {
		name := fmt.Sprint(i)
		if err := b.pace(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		b.failures.of(name)
		for _, take := range []func(context.Context, string) (func(), error){b.relook} {
			done, err := take(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			done()
		}
		if b.calls.of("0") != first {
			t.Fatal("a token that is used all the time is forgotten")
		}
	}
	for what, n := range map[string]int{"tokens that call": b.calls.last.Len(), "addresses": b.failures.last.Len(),
		"tokens with streams": b.relooking.last.Len()} {
		if n > maxNamed {
			t.Errorf("%d %s are remembered", n, what)
		}
	}
}
