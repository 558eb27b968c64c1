package client_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const token = "local-token"

// edge is a service that can be stopped and started again on the same port.
type edge struct {
	t       *testing.T
	service grpcapi.Service
	address string
	stop    func()
}

func (e *edge) start() {
	e.t.Helper()
	if e.address == "" {
		e.address = porttest.Address(e.t)
	}
	listener, err := grpcapi.Listen(e.address, nil)
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		authority, _ := e.service.(grpcapi.Authority)
		if err := grpcapi.Serve(ctx, listener, grpcapi.Config{Service: e.service,
			Authority: grpcapi.OneToken(token, authority)}); err != nil {
			e.t.Error(err)
		}
	}()
	e.stop = func() { cancel(); <-done }
	e.t.Cleanup(e.stop)
}

func newEdge(t *testing.T, service grpcapi.Service) *edge {
	t.Helper()
	e := &edge{t: t, service: service}
	e.start()
	return e
}

func (e *edge) dial(o client.Options) *client.Client {
	e.t.Helper()
	o.Address = e.address
	if o.Token == "" {
		o.Token = token
	}
	o.Patience = cmp.Or(o.Patience, waittest.Patience)
	c, err := client.Dial(o)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = c.Close() })
	return c
}

var dev = deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}

func events(n int) []deployments.WatchEvent {
	var items []deployments.WatchEvent
	for i := range n {
		items = append(items, deployments.WatchEvent{Event: &apitype.EngineEvent{Sequence: i}},
			deployments.WatchEvent{Progress: &deployments.Progress{Done: map[string]int{"create": i}}})
	}
	return items
}

func TestTheTokensNameIsUsedInsteadOfTheClients(t *testing.T) {
	service := memory.New()
	e := newEdge(t, service)
	text, err := e.dial(client.Options{}).CreateToken(t.Context(), deployments.Token{
		Name: "ci", Grant: &deployments.Grant{Role: deployments.RoleDeployer, Organization: dev.Organization},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := e.dial(client.Options{Token: text})
	if err := c.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Submit(t.Context(), deployments.UpdateRequest{Stack: dev, RequestID: "r", Kind: engine.KindRefresh,
		Initiator: "root"}); err != nil {
		t.Fatal(err)
	}
	if got := service.Requests[0].Initiator; got != "ci" {
		t.Errorf("the initiator is %q", got)
	}
}

func TestAWrongTokenIsRefused(t *testing.T) {
	c := newEdge(t, memory.New()).dial(client.Options{Token: "guess"})
	if _, err := c.ListStacks(t.Context(), "organization", ""); deployments.CodeOf(
		err) != deployments.CodeUnauthorized {
		t.Fatal(err)
	}
	if err := c.CreateStack(t.Context(), dev, nil); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Fatal(err)
	}
	if err := c.Watch(t.Context(), deployments.UpdateName{StackName: dev, Version: "1"},
		nil); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Fatal(err)
	}
}

func TestAWatchContinuesAfterItsLastEventWhenTheServiceRestarts(t *testing.T) {
	service, hold := memory.New(), make(chan struct{})
	service.Play = func(deployments.UpdateRequest) memory.Script { return memory.Script{Items: events(50), Hold: hold} }
	e := newEdge(t, service)
	var mu sync.Mutex
	var told []bool
	c := e.dial(client.Options{Unreachable: func(lost bool) { mu.Lock(); told = append(told, lost); mu.Unlock() }})
	if err := c.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	accepted, err := c.Submit(t.Context(), deployments.UpdateRequest{Stack: dev, RequestID: "r",
		Kind: engine.KindRefresh})
	if err != nil {
		t.Fatal(err)
	}
	var sequences []int
	caughtUp, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- c.Watch(t.Context(), accepted.Update, func(item deployments.WatchEvent) error {
			if item.Event != nil {
				if sequences = append(sequences, item.Event.Sequence); len(sequences) == 50 {
					close(caughtUp)
				}
			}
			return nil
		})
	}()
	<-caughtUp
	e.stop()
	e.start()
	close(hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, sequence := range sequences {
		if sequence != i {
			t.Fatalf("event %d came as number %d", sequence, i)
		}
	}
	if len(sequences) != 50 {
		t.Fatalf("%d events", len(sequences))
	}
}

// crossing is a service whose streams come in another order to the second watcher than to the first, which does not get
// all events. Each gets one message of the service itself.
type crossing struct {
	*memory.Service
	watched int
}

func (c *crossing) Watch(_ context.Context, _ deployments.UpdateName, fn func(deployments.WatchEvent) error) error {
	event := func(stream string, n int) deployments.WatchEvent {
		return deployments.WatchEvent{Stream: stream, Event: &apitype.EngineEvent{Sequence: n}}
	}
	steps, output := []deployments.WatchEvent{event("steps", 1), event("steps", 2)},
		[]deployments.WatchEvent{event("output", 3), event("output", 4)}
	own := deployments.ServiceStream("1")
	log := slices.Concat([]deployments.WatchEvent{event(own, 6)}, output, steps,
		[]deployments.WatchEvent{{End: &deployments.UpdateInfo{}}})
	if c.watched++; c.watched == 1 {
		log = []deployments.WatchEvent{steps[0], output[0], event(own, 5)}
	}
	for _, e := range log {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

func TestAWatchContinuesAfterTheLastEventOfEachStream(t *testing.T) {
	c := newEdge(t, &crossing{Service: memory.New()}).dial(client.Options{})
	var got []int
	err := c.Watch(t.Context(), deployments.UpdateName{StackName: dev, Version: "1"},
		func(e deployments.WatchEvent) error {
			if e.Event != nil {
				got = append(got, e.Event.Sequence)
			}
			return nil
		})
	if want := []int{1, 3, 5, 6, 4, 2}; err != nil || !slices.Equal(got, want) {
		t.Errorf("watched %v, %v; want %v", got, err, want)
	}
}

func TestALongSilenceIsReportedOnceAndItsEndToo(t *testing.T) {
	e := newEdge(t, memory.New())
	told := make(chan bool, 10)
	c := e.dial(client.Options{Unreachable: func(lost bool) { told <- lost }})
	e.stop()
	answered := make(chan error, 1)
	go func() {
		_, err := c.ListStacks(t.Context(), "organization", "")
		answered <- err
	}()
	if lost := <-told; !lost {
		t.Fatal("it was told that the service is back before it was told that it is gone")
	}
	e.start()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if lost := <-told; lost || len(told) > 0 {
		t.Fatal("it was not told once that the service is back")
	}
}

func TestPatienceEnds(t *testing.T) {
	e := newEdge(t, memory.New())
	c := e.dial(client.Options{Patience: 50 * time.Millisecond})
	e.stop()
	for what, err := range map[string]error{"a call": second(c.ListStacks(t.Context(), "o", "")),
		"a call that is made once": c.CreateStack(t.Context(), dev, nil), "health": c.Healthy(t.Context())} {
		if deployments.CodeOf(err) != deployments.CodeUnavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// failing is a service whose part does not answer at first.
type failing struct {
	grpcapi.Service
	left atomic.Int32
}

func (f *failing) ListStacks(ctx context.Context, organization, project string) ([]deployments.StackInfo, error) {
	if f.left.Add(-1) >= 0 {
		return nil, deployments.Errorf(deployments.CodeUnavailable, "Temporal does not answer")
	}
	return f.Service.ListStacks(ctx, organization, project)
}

func TestAServiceThatSaysThatAPartDoesNotAnswerIsTheRightOne(t *testing.T) {
	f := &failing{Service: memory.New()}
	f.left.Store(2)
	c := newEdge(t, f).dial(client.Options{FirstPatience: time.Nanosecond})
	if _, err := c.ListStacks(t.Context(), "o", ""); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestLargeFilesAndDeploymentsTravelInChunks(t *testing.T) {
	c := newEdge(t, memory.New()).dial(client.Options{})
	for _, size := range []int{0, 1, 1 << 20, 20<<20 + 17} {
		content := bytes.Repeat([]byte("x"), size)
		sum := sha256.Sum256(content)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		if err := c.PutFile(t.Context(), dev, digest, content); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if err := c.PutFile(t.Context(), dev, "sha256:00", content); deployments.CodeOf(
			err) != deployments.CodeInvalid {
			t.Fatalf("%d bytes: %v", size, err)
		}
		m := deployments.Manifest{Files: []deployments.File{{Path: "a", Digest: digest, Mode: 0o644,
			Size: int64(size)}}}
		if missing, err := c.Missing(t.Context(), dev, m); err != nil || len(missing) > 0 {
			t.Fatalf("%d bytes: %v, %v", size, missing, err)
		}
	}
	if err := c.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	large := apitype.UntypedDeployment{Version: 3, Deployment: []byte(`{"a":"` +
		string(bytes.Repeat([]byte("y"), 20<<20)) + `"}`)}
	if _, err := c.Import(t.Context(), deployments.ImportRequest{Stack: dev, Deployment: large}); err != nil {
		t.Fatal(err)
	}
	got, err := c.Export(t.Context(), dev, 0, deployments.SecretsProvider{}, false)
	if err != nil || !bytes.Equal(got.Deployment, large.Deployment) {
		t.Fatalf("%d bytes, %v", len(got.Deployment), err)
	}
}

func TestTheCallbackEndsAWatch(t *testing.T) {
	service := memory.New()
	service.Play = func(deployments.UpdateRequest) memory.Script { return memory.Script{Items: events(3)} }
	c := newEdge(t, service).dial(client.Options{})
	if err := c.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	accepted, err := c.Submit(t.Context(), deployments.UpdateRequest{Stack: dev, RequestID: "r",
		Kind: engine.KindRefresh})
	if err != nil {
		t.Fatal(err)
	}
	enough := deployments.Errorf(deployments.CodeUnavailable, "enough")
	n := 0
	if err := c.Watch(t.Context(), accepted.Update,
		func(deployments.WatchEvent) error { n++; return enough }); !errors.Is(err, enough) || n != 1 {
		t.Fatalf("%v after %d items", err, n)
	}
}

func TestOffLoopbackOnlyTLSIsServed(t *testing.T) {
	if _, err := grpcapi.Listen("0.0.0.0:0", nil); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Fatal(err)
	}
}

func TestAPortInUseIsReported(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	if _, err := grpcapi.Listen(listener.Addr().String(), nil); deployments.CodeOf(err) != deployments.CodeUnavailable {
		t.Fatal(err)
	}
}

func TestATextThatIsNotUTF8IsRefusedByItsName(t *testing.T) {
	c := newEdge(t, memory.New()).dial(client.Options{})
	dev := deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}
	_, submitted := c.Submit(t.Context(), deployments.UpdateRequest{Stack: dev, Message: "caf\xe9"})
	_, hooked := c.PutWebhook(t.Context(), deployments.Webhook{URL: "https://hooks.example/\xe9"})
	_, exported := c.Export(t.Context(), deployments.StackName{Organization: "\xe9"}, 0, deployments.SecretsProvider{},
		false)
	for want, err := range map[string]error{"message is": submitted, ".url is": hooked, "organization is": exported,
		"tags[owner] is": c.CreateStack(t.Context(), dev, map[string]string{"owner": "\xe9"}),
	} {
		if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}
