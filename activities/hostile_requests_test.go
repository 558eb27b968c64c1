package activities

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/host/session"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// wildProgram is a program whose calls to its monitor the test makes itself.
type wildProgram struct {
	pulumirpc.ResourceMonitorClient
	session *session.Session
	link    *runlink.Link
	address string
	run     *realRun
}

// openWild starts an update with the real core, whose program is the test itself.
func (h *house) openWild(request deployments.UpdateRequest) *wildProgram {
	h.t.Helper()
	if request.Bundle == "" {
		request.Bundle = h.upload(scenarioProject("steps: []"))
	}
	claimed := h.claim(request)
	s, err := h.acts.sessions.Hosted(h.t.Context(), h.update, h.base)
	if err != nil {
		h.t.Fatal(err)
	}
	headers, err := call[deployments.Headers](h, h.acts.ReadHeaders, deployments.HeadersInput{Update: h.update,
		Base: h.base})
	if err != nil {
		h.t.Fatal(err)
	}
	run := &realRun{house: h, core: engine.New(claimed.Goal, headers.States, headers.Pending),
		done: make(chan struct{}), forgiving: true}
	h.runs.mu.Lock()
	h.runs.run = run
	h.runs.mu.Unlock()

	w := &wildProgram{session: s, link: runlink.New(h.runs, h.update, 1), run: run}
	serving, closeLink := context.WithCancel(context.Background())
	closed := make(chan struct{})
	go func() { defer close(closed); w.link.Serve(serving) }()
	h.t.Cleanup(func() { closeLink(); <-closed })
	w.link.Send(deployments.Message{Started: &engine.RunStarted{Epoch: 1}})
	m, err := s.ServeMonitor(h.t.Context(), w.link, claimed.Goal, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(m.Stop)
	w.address = m.Address()
	conn, err := grpc.NewClient(m.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	w.ResourceMonitorClient = pulumirpc.NewResourceMonitorClient(conn)
	return w
}

// register registers a resource, and returns its URN.
func (w *wildProgram) register(
	t *testing.T, req *pulumirpc.RegisterResourceRequest,
) *pulumirpc.RegisterResourceResponse {
	t.Helper()
	resp, err := w.RegisterResource(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestTokensOfAnyFormAreRefusedWithASentence(t *testing.T) {
	reference := "urn:pulumi:dev::test::my:Comp::c::id"
	self := structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"urn": structpb.NewStringValue("urn:pulumi:dev::test::my:Comp::c"), "id": structpb.NewStringValue("id"),
	}})
	for what, c := range map[string]struct {
		call  func(context.Context, *wildProgram) error
		fails bool // the update fails, too: a resource would be lost
	}{
		"a function of one part":              {invoke(&pulumirpc.ResourceInvokeRequest{Tok: "foo"}), false},
		"a function of two parts":             {invoke(&pulumirpc.ResourceInvokeRequest{Tok: "foo:bar"}), false},
		"a method without a package":          {method(&pulumirpc.ResourceCallRequest{Tok: "foo"}), false},
		"a method of two parts of no package": {method(&pulumirpc.ResourceCallRequest{Tok: ":bar"}), false},
		"a method of a package whose default provider has no valid URN": {method(&pulumirpc.ResourceCallRequest{
			Tok: "v1:AAAA:v1:AAAA:AAAA", Args: &structpb.Struct{}, PluginDownloadURL: strings.Repeat("x", 70_000),
		}), false},
		"a function of such a package": {invoke(&pulumirpc.ResourceInvokeRequest{
			Tok: "v1:AAAA:v1:AAAA:AAAA", PluginDownloadURL: strings.Repeat("x", 70_000),
		}), false},
		"a method of a provider that is none": {method(&pulumirpc.ResourceCallRequest{
			Tok: "pulumi:providers:toy/m", Args: &structpb.Struct{Fields: map[string]*structpb.Value{"__self__": self}},
		}), false},
		"an invoke with a provider of two parts": {
			invoke(&pulumirpc.ResourceInvokeRequest{Tok: "toy:index:ask", Provider: reference}), false,
		},
		"a custom resource of two parts": {
			registration(&pulumirpc.RegisterResourceRequest{Type: "my:Thing", Name: "x", Custom: true}), true,
		},
		"a remote component of two parts": {
			registration(&pulumirpc.RegisterResourceRequest{Type: "my:Thing", Name: "x", Remote: true}), true,
		},
		"a provider of two parts": {registration(&pulumirpc.RegisterResourceRequest{
			Type: "toy:index:Thing", Name: "x", Custom: true, Provider: reference,
		}), true},
		"a read with a provider of two parts": {reading(&pulumirpc.ReadResourceRequest{
			Type: "toy:index:Thing", Name: "x", Id: "x", Provider: reference,
		}), true},
		"a value of no kind": {registration(&pulumirpc.RegisterResourceRequest{
			Type: "toy:index:Thing", Name: "x", Custom: true,
			Object: &structpb.Struct{Fields: map[string]*structpb.Value{"nothing": {}}},
		}), true},
	} {
		w := newHouse(t).openWild(deployments.UpdateRequest{})
		err := c.call(t.Context(), w)
		want := codes.InvalidArgument
		if c.fails && what != "a value of no kind" {
			want = codes.Unavailable // SDKs end without a message after this code
		}
		if status.Code(err) != want || strings.Contains(err.Error(), "assertion") {
			t.Errorf("%s: %v", what, err)
		}
		if said := w.refusals(t); len(said) > 0 != c.fails {
			t.Errorf("%s: the update is told %q", what, said)
		}
	}
}

func invoke(req *pulumirpc.ResourceInvokeRequest) func(context.Context, *wildProgram) error {
	return func(ctx context.Context, w *wildProgram) error { _, err := w.Invoke(ctx, req); return err }
}

func method(req *pulumirpc.ResourceCallRequest) func(context.Context, *wildProgram) error {
	return func(ctx context.Context, w *wildProgram) error { _, err := w.Call(ctx, req); return err }
}

func registration(req *pulumirpc.RegisterResourceRequest) func(context.Context, *wildProgram) error {
	return func(ctx context.Context, w *wildProgram) error { _, err := w.RegisterResource(ctx, req); return err }
}

func reading(req *pulumirpc.ReadResourceRequest) func(context.Context, *wildProgram) error {
	return func(ctx context.Context, w *wildProgram) error { _, err := w.ReadResource(ctx, req); return err }
}

func TestWhatIsRefusedFailsTheUpdateWhateverTheProgramMakesOfIt(t *testing.T) {
	elsewhere := &pulumirpc.Callback{Target: "example.com:80", Token: "t"}
	for what, call := range map[string]func(context.Context, *wildProgram) error{
		"a hook needs a name": func(ctx context.Context, w *wildProgram) error {
			_, err := w.RegisterResourceHook(ctx, &pulumirpc.RegisterResourceHookRequest{Callback: elsewhere})
			return err
		},
		"the program registers two hooks of the name \"h\"; rename one": func(ctx context.Context,
			w *wildProgram) error {
			hook := &pulumirpc.RegisterErrorHookRequest{Name: "h", Callback: elsewhere}
			_, err := w.RegisterErrorHook(ctx, hook)
			_, twice := w.RegisterErrorHook(ctx, hook)
			return errors.Join(err, twice)
		},
		"a function of the program must have a target": func(ctx context.Context, w *wildProgram) error {
			_, err := w.RegisterStackTransform(ctx, &pulumirpc.Callback{})
			return err
		},
		"a function of the program is named in more than 4096 bytes": func(ctx context.Context, w *wildProgram) error {
			_, err := w.RegisterStackTransform(ctx, &pulumirpc.Callback{Target: "127.0.0.1:1",
				Token: strings.Repeat("t", 5000)})
			return err
		},
		"the program registers more than 1000 transforms": func(ctx context.Context, w *wildProgram) (err error) {
			for range 1001 {
				_, err = w.RegisterStackInvokeTransform(ctx, elsewhere)
			}
			return err
		},
		"the packages of the program, with their parameters, have more than 67108864 bytes": func(ctx context.Context,
			w *wildProgram) (err error) {
			for _, name := range []string{"a", "b"} {
				_, err = w.RegisterPackage(ctx, &pulumirpc.RegisterPackageRequest{Name: name,
					Parameterization: &pulumirpc.Parameterization{Name: name, Value: make([]byte, 30<<20)}})
			}
			return err
		},
		"an extension of package p needs a name": func(ctx context.Context,
			w *wildProgram) error {
			_, err := w.RegisterPackage(ctx, &pulumirpc.RegisterPackageRequest{Name: "p",
				Extension: &pulumirpc.Parameterization{}})
			return err
		},
		"state migrations (of toy:index:Thing a) are not supported yet; remove them from the program": registration(
			&pulumirpc.RegisterResourceRequest{
				Type: "toy:index:Thing", Name: "a", Custom: true, StateMigrations: []*pulumirpc.Callback{elsewhere},
			}),
		"a transform of toy:index:Thing a failed: functions of the program are called at 127.0.0.1:PORT only, and the " +
			"program says \"example.com:80\"": registration(&pulumirpc.RegisterResourceRequest{
			Type: "toy:index:Thing", Name: "a", Custom: true, Transforms: []*pulumirpc.Callback{elsewhere},
		}),
		"outputs of urn:pulumi:dev::test::my:Comp::c, which the program has not registered": func(ctx context.Context,
			w *wildProgram) error {
			_, err := w.RegisterResourceOutputs(ctx, &pulumirpc.RegisterResourceOutputsRequest{
				Urn: "urn:pulumi:dev::test::my:Comp::c"})
			return err
		},
	} {
		w := newHouse(t).openWild(deployments.UpdateRequest{})
		if err := call(t.Context(), w); err != nil && (status.Code(err) != codes.Unavailable ||
			status.Convert(err).Message() != what) {
			t.Errorf("%s: %v", what, err)
		}
		_, err := w.RegisterResource(t.Context(), &pulumirpc.RegisterResourceRequest{Type: "toy:index:Thing", Name: "b",
			Custom: true})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("%s, and the next registration: %v", what, err)
		}
		if said := w.refusals(t); !slices.Equal(said, []string{what}) {
			t.Errorf("%s: the update is told %q", what, said)
		}
		if result := w.exit(t); result.Status != engine.StatusFailed || result.Error != what {
			t.Errorf("%s: %+v", what, result)
		}
	}
}

// refusals returns the errors that were reported to the update.
func (w *wildProgram) refusals(t *testing.T) []string {
	t.Helper()
	if err := w.link.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.run.mu.Lock()
	defer w.run.mu.Unlock()
	var said []string
	for _, e := range w.run.emits {
		if e.Kind == engine.EmitDiagnostic && e.Severity == "error" {
			said = append(said, e.Message)
		}
	}
	return said
}

// exit ends the program without an error, and returns the result of the update.
func (w *wildProgram) exit(t *testing.T) engine.Result {
	t.Helper()
	w.link.Send(deployments.Message{Exited: &engine.ProgramExited{Epoch: 1}})
	waittest.For(t, "the update ends", w.run.done)
	w.run.mu.Lock()
	defer w.run.mu.Unlock()
	result, _ := w.run.core.Result()
	return result
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
