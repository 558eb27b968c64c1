package activities

import (
	"context"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// wildProgram is a program that speaks to its monitor as it likes: the test.
type wildProgram struct {
	pulumirpc.ResourceMonitorClient
	session *session
	talk    *conversation
	address string
	run     *realRun
}

// openWild begins an update whose program is the test, before the real core.
func (h *house) openWild(request deployments.UpdateRequest) *wildProgram {
	h.t.Helper()
	if request.Bundle == "" {
		request.Bundle = h.upload(scenarioProject("steps: []"))
	}
	claimed := h.claim(request)
	s, err := h.acts.hosted(h.t.Context(), h.update, h.base)
	if err != nil {
		h.t.Fatal(err)
	}
	headers, err := call[deployments.Headers](h, h.acts.Headers, deployments.HeadersInput{Update: h.update, Base: h.base})
	if err != nil {
		h.t.Fatal(err)
	}
	run := &realRun{house: h, core: engine.New(claimed.Goal, headers.States, headers.Pending), done: make(chan struct{})}
	h.runs.mu.Lock()
	h.runs.run = run
	h.runs.mu.Unlock()

	w := &wildProgram{session: s, talk: newConversation(h.runs, h.update, 1), run: run}
	s.talk.Store(w.talk)
	talking, hangUp := context.WithCancel(context.Background())
	held := make(chan struct{})
	go func() { defer close(held); w.talk.hold(talking) }()
	h.t.Cleanup(func() { hangUp(); <-held })
	w.talk.say(deployments.Message{Started: &engine.RunStarted{Epoch: 1}})
	m, err := newMonitor(s, w.talk, claimed.Goal, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(m.stop)
	w.address = m.address
	conn, err := grpc.NewClient(m.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	w.ResourceMonitorClient = pulumirpc.NewResourceMonitorClient(conn)
	return w
}

// register registers a resource, and gives its URN.
func (w *wildProgram) register(t *testing.T, req *pulumirpc.RegisterResourceRequest) *pulumirpc.RegisterResourceResponse {
	t.Helper()
	resp, err := w.RegisterResource(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestTokensOfAnyFormAreRefusedWithASentence(t *testing.T) {
	w := newHouse(t).openWild(deployments.UpdateRequest{})
	ctx := t.Context()
	reference := "urn:pulumi:dev::test::my:Comp::c::id"
	for what, call := range map[string]func() error{
		"a function of one part": func() error {
			_, err := w.Invoke(ctx, &pulumirpc.ResourceInvokeRequest{Tok: "foo"})
			return err
		},
		"a function of two parts": func() error {
			_, err := w.Invoke(ctx, &pulumirpc.ResourceInvokeRequest{Tok: "foo:bar"})
			return err
		},
		"a method without a package": func() error {
			_, err := w.Call(ctx, &pulumirpc.ResourceCallRequest{Tok: "foo"})
			return err
		},
		"a method of two parts of no package": func() error {
			_, err := w.Call(ctx, &pulumirpc.ResourceCallRequest{Tok: ":bar"})
			return err
		},
		"a custom resource of two parts": func() error {
			_, err := w.RegisterResource(ctx, &pulumirpc.RegisterResourceRequest{Type: "my:Thing", Name: "x", Custom: true})
			return err
		},
		"a remote component of two parts": func() error {
			_, err := w.RegisterResource(ctx, &pulumirpc.RegisterResourceRequest{Type: "my:Thing", Name: "x", Remote: true})
			return err
		},
		"a provider of two parts": func() error {
			_, err := w.RegisterResource(ctx, &pulumirpc.RegisterResourceRequest{
				Type: "toy:index:Thing", Name: "x", Custom: true, Provider: reference,
			})
			return err
		},
		"a read with a provider of two parts": func() error {
			_, err := w.ReadResource(ctx, &pulumirpc.ReadResourceRequest{
				Type: "toy:index:Thing", Name: "x", Id: "x", Provider: reference,
			})
			return err
		},
		"an invoke with a provider of two parts": func() error {
			_, err := w.Invoke(ctx, &pulumirpc.ResourceInvokeRequest{Tok: "toy:index:ask", Provider: reference})
			return err
		},
		"a method of a provider that is none": func() error {
			self := structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
				"urn": structpb.NewStringValue("urn:pulumi:dev::test::my:Comp::c"), "id": structpb.NewStringValue("id"),
			}})
			_, err := w.Call(ctx, &pulumirpc.ResourceCallRequest{
				Tok: "pulumi:providers:toy/m", Args: &structpb.Struct{Fields: map[string]*structpb.Value{"__self__": self}},
			})
			return err
		},
	} {
		if err := call(); status.Code(err) != codes.InvalidArgument || strings.Contains(err.Error(), "assertion") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAComponentOfATwoPartTypeMayHaveACustomParent(t *testing.T) {
	w := newHouse(t).openWild(deployments.UpdateRequest{})
	parent := w.register(t, &pulumirpc.RegisterResourceRequest{Type: "toy:index:Thing", Name: "a", Custom: true})
	component := w.register(t, &pulumirpc.RegisterResourceRequest{Type: "my:Comp", Name: "c", Parent: parent.GetUrn()})
	if want := "urn:pulumi:dev::test::toy:index:Thing$my:Comp::c"; component.GetUrn() != want {
		t.Errorf("got %s, want %s", component.GetUrn(), want)
	}
	child := w.register(t, &pulumirpc.RegisterResourceRequest{
		Type: "toy:index:Thing", Name: "b", Custom: true, Parent: component.GetUrn(),
	})
	if child.GetId() == "" {
		t.Errorf("%+v", child)
	}
}

func TestAPanicOfTheMonitorEndsItsCallOnly(t *testing.T) {
	w := newHouse(t).openWild(deployments.UpdateRequest{})
	_, err := w.RegisterResource(t.Context(), &pulumirpc.RegisterResourceRequest{
		Type: "toy:index:Thing", Name: "a", Custom: true,
		Object: &structpb.Struct{Fields: map[string]*structpb.Value{"nothing": {}}}, // the SDK has no case for this
	})
	if err == nil {
		t.Error("a value of no kind was taken")
	}
	w.register(t, &pulumirpc.RegisterResourceRequest{Type: "toy:index:Thing", Name: "b", Custom: true})
}
