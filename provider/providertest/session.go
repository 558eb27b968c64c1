package providertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// patience ends a call of a provider that hangs. No call is expected to take nearly as long.
const patience = 5 * time.Minute

// life is one check of a case.
type life struct {
	t     *testing.T
	start Start
	Case
	kinds []interruption // those that calls are disturbed by
	leak  leaks
}

// world is a service with nothing yet, and a process of the provider for it.
type world struct {
	*life
	Setup
	calls *Calls
	stack string
	*process
}

// process is one process of the provider, configured.
type process struct {
	pulumirpc.ResourceProviderClient
	stop func()
}

// world starts a service and a provider.
func (l *life) world() (*world, error) {
	calls := &Calls{things: func() map[string]any { return nil }}
	w := &world{life: l, calls: calls, stack: own, Setup: l.start(l.t, calls)}
	if w.Package == nil || w.Things == nil {
		return nil, errors.New("the Setup that the test's Start returns has no Package or no Things")
	}
	calls.things = w.Things
	return w, w.restart()
}

// restart ends the provider's process and starts another.
func (w *world) restart() error {
	if w.process != nil {
		w.stop()
	}
	w.calls.disarm()
	p, err := w.begin()
	w.process = p
	return err
}

// beside returns the same service with a process of its own, of an update of a stack.
func (w *world) beside(stack string) (*world, error) {
	v := *w
	v.stack = stack
	var err error
	v.process, err = v.begin()
	return &v, err
}

// begin starts a process beside the one that runs.
func (w *world) begin() (*process, error) {
	w.t.Setenv(provider.StackVariable, "identity-of-"+w.stack)
	client, stop, err := provider.Client(provider.Server(w.Package()))
	if err != nil {
		return nil, err
	}
	p := &process{client, sync.OnceFunc(stop)}
	w.t.Cleanup(p.stop)
	config, err := wire(w.Config.bag())
	if err != nil {
		return nil, err
	}
	urn := "urn:pulumi:dev::project::pulumi:providers:" + w.Package().Name + "::default"
	checked, err := call(w, p, p.CheckConfig, &pulumirpc.CheckRequest{Urn: urn, News: config})
	if err != nil {
		return nil, fmt.Errorf("the Config of the Setup is refused: %w", err)
	}
	if failures := checked.GetFailures(); len(failures) > 0 {
		return nil, fmt.Errorf("the Config of the Setup is refused: %v", failures)
	}
	if err := w.leak.learn(checked.GetInputs()); err != nil {
		return nil, err
	}
	if _, err := call(w, p, p.Configure, &pulumirpc.ConfigureRequest{Args: checked.GetInputs()}); err != nil {
		return nil, fmt.Errorf("Configure with the Config of the Setup: %w", err)
	}
	return p, nil
}

// call makes one call of the protocol. If the process is killed meanwhile, it is told to end.
func call[Req, Resp any](
	w *world, p *process, method func(context.Context, *Req, ...grpc.CallOption) (*Resp, error), req *Req,
	opts ...grpc.CallOption,
) (*Resp, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	dead := w.calls.state().dead
	go func() {
		select {
		case <-dead:
			_, _ = p.Cancel(ctx, &emptypb.Empty{}) // what waits to ask again gives up
		case <-over:
		}
	}()
	resp, err := method(ctx, req, opts...)
	if err != nil {
		w.leak.search("the error message", err.Error())
	}
	return resp, err
}

type (
	checkMethod   = func(context.Context, *pulumirpc.CheckRequest, ...grpc.CallOption) (*pulumirpc.CheckResponse, error)
	diffMethod    = func(context.Context, *pulumirpc.DiffRequest, ...grpc.CallOption) (*pulumirpc.DiffResponse, error)
	readMethod    = func(context.Context, *pulumirpc.ReadRequest, ...grpc.CallOption) (*pulumirpc.ReadResponse, error)
	mappingMethod = func(context.Context, *pulumirpc.GetMappingRequest, ...grpc.CallOption) (
		*pulumirpc.GetMappingResponse, error)
)

func (p *process) check() checkMethod     { return p.Check }
func (p *process) diff() diffMethod       { return p.Diff }
func (p *process) read() readMethod       { return p.Read }
func (p *process) mapping() mappingMethod { return p.GetMapping }

func wire(bag resource.PropertyMap) (*structpb.Struct, error) {
	return plugin.MarshalProperties(bag, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, SkipNulls: true,
		ComputeAssetHashes: true})
}

func unwire(s *structpb.Struct) (resource.PropertyMap, error) {
	return plugin.UnmarshalProperties(s, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, SkipNulls: true})
}

// existing is a resource as a state has it.
type existing struct {
	id              string
	inputs, outputs *structpb.Struct
	// unfinished: it exists and is not as declared, so that the next update updates it whatever the diff is.
	unfinished bool
	pause      time.Duration // it is only not ready, and is to be looked at after that
	generation int
}

// urn returns the name of the resource in the stack.
func (w *world) urn() string {
	return "urn:pulumi:" + w.stack + "::project::" + w.Type + "::it"
}

// The stacks that are played.
const (
	own   = "dev"
	other = "prod"
)

// ask makes a call that has no effect. If it is the one that is disturbed, it is made again.
func ask[Req, Resp any](
	w *world, method func(*process) func(context.Context, *Req, ...grpc.CallOption) (*Resp, error), req *Req,
	opts ...grpc.CallOption,
) (*Resp, error) {
	before, _ := w.calls.interrupted()
	resp, err := call(w, w.process, method(w.process), req, opts...)
	if after, _ := w.calls.interrupted(); after == before {
		return resp, err
	}
	if w.calls.killed() {
		if err := w.restart(); err != nil {
			return nil, err
		}
	}
	return call(w, w.process, method(w.process), req, opts...)
}

// check has the provider complete inputs, under the seed of a generation.
func (w *world) check(in Inputs, olds *structpb.Struct, generation int) (*structpb.Struct, error) {
	news, err := wire(in.bag())
	if err != nil {
		return nil, err
	}
	resp, err := ask(w, (*process).check, &pulumirpc.CheckRequest{Urn: w.urn(), News: news, Olds: olds,
		RandomSeed: fmt.Appendf(nil, "seed-%s-%d", w.stack, generation)})
	if err != nil {
		return nil, fmt.Errorf("Check: %w", err)
	}
	if failures := resp.GetFailures(); len(failures) > 0 {
		return nil, fmt.Errorf("Check refuses the inputs of the case: %v", failures)
	}
	return resp.GetInputs(), w.leak.learn(resp.GetInputs())
}

// diff compares inputs with those that a resource has.
func (w *world) diff(of existing, news *structpb.Struct) (*pulumirpc.DiffResponse, error) {
	resp, err := ask(w, (*process).diff, &pulumirpc.DiffRequest{Urn: w.urn(), Id: of.id, OldInputs: of.inputs,
		Olds: of.outputs, News: news})
	if err != nil {
		return nil, fmt.Errorf("Diff: %w", err)
	}
	return resp, nil
}

// look is a Read: by the id, or by inputs if there is none.
func (w *world) look(of existing) (provider.Ownership, existing, error) {
	var trailer metadata.MD
	resp, err := ask(w, (*process).read, &pulumirpc.ReadRequest{Urn: w.urn(), Id: of.id, Inputs: of.inputs,
		Properties: of.outputs}, grpc.Trailer(&trailer))
	if err != nil {
		return "", existing{}, fmt.Errorf("Read: %w", err)
	}
	w.leak.bag("the outputs of Read", resp.GetProperties())
	ownership := provider.Undecidable
	if told := trailer.Get(provider.OwnershipTrailer); len(told) > 0 {
		ownership = provider.Ownership(told[len(told)-1])
	}
	return ownership, existing{id: resp.GetId(), inputs: resp.GetInputs(), outputs: resp.GetProperties(),
		generation: of.generation}, nil
}

// settling returns how the type says that lost outcomes are found out.
func (w *world) settling() (provider.Settle, error) {
	resp, err := ask(w, (*process).mapping, &pulumirpc.GetMappingRequest{Key: provider.SettleMapping})
	if err != nil {
		return "", err
	}
	rules := map[string]provider.Settle{}
	if err := json.Unmarshal(resp.GetData(), &rules); err != nil {
		return "", err
	}
	if _, ok := rules[w.Type]; !ok {
		return "", fmt.Errorf("package %s has no resource type %q", w.Package().Name, w.Type)
	}
	return rules[w.Type], nil
}

// spared returns an error that shows which of its former things the service does not have as they were.
func spared(have, before map[string]any) error {
	both := map[string]any{}
	for name := range before {
		if thing, ok := have[name]; ok {
			both[name] = thing
		}
	}
	return same(both, before)
}

// same returns an error that shows how what the service has differs from what it should have.
func same(have, want map[string]any) error {
	var differences []error
	for name, thing := range want {
		switch is, ok := have[name]; {
		case !ok:
			differences = append(differences, fmt.Errorf("%s is missing", name))
		case !reflect.DeepEqual(is, thing):
			differences = append(differences, fmt.Errorf("%s is %+v, not %+v", name, is, thing))
		}
	}
	for name, thing := range have {
		if _, ok := want[name]; !ok {
			differences = append(differences, fmt.Errorf("%s is left over: %+v", name, thing))
		}
	}
	return errors.Join(differences...)
}
