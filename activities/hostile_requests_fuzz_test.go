package activities

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// wild generates requests that no SDK would send.
type wild struct{ *rand.Rand }

var (
	wildTypes = []string{
		"", ":", "::", "a", "a:b", "my:Comp", "toy:index:Thing", "toy:index:Thing", "toy:index:Box",
		"pulumi:providers:toy",
		"pulumi:providers:", "pulumi:pulumi:Stack", "pulumi:pulumi:StackReference", "nosuch:index:X",
		"toy:index:Thing$x", "a:b:c:d:e", "\x00",
		strings.Repeat("long", 5000), "../../x:y:z",
	}
	wildNames = []string{"", "x", "y", "a::b", "a$b", "../up", "\x00", "\u202e", strings.Repeat("n", 70_000), "pulumi"}
	wildURNs  = []string{
		"", "x", "::", "urn:pulumi:", "urn:pulumi:::::::", "urn:pulumi:dev::test::my:Comp::c",
		"urn:pulumi:dev::test::a::b",
		"urn:pulumi:dev::test::pulumi:pulumi:Stack::test-dev", "urn:pulumi:dev::test::toy:index:Thing::x",
		"urn:pulumi:dev::test::pulumi:providers:toy::default::id", "urn:pulumi:dev::test::my:Comp::c::id",
		"urn:pulumi:dev::test::pulumi:providers:toy::p::04da6b54-80e4-46f7-96ec-b56ff0331ba9",
	}
	wildTexts = []string{
		"", "x", sig.UnknownStringValue, sig.UnknownArrayValue, sig.UnknownAssetValue, sig.Key, "\x00", "NaN", "5m",
		strings.Repeat("s", 5000),
	}
	wildSignatures = []string{
		sig.Secret, sig.OutputValue, sig.ResourceReference, sig.AssetSig, sig.ArchiveSig, sig.ByteString, "",
		"unheard-of",
	}
)

func pick[T any](w wild, of []T) T { return of[w.IntN(len(of))] }

func (w wild) urns() []string {
	list := make([]string, w.IntN(3))
	for i := range list {
		list[i] = pick(w, wildURNs)
	}
	return list
}

func (w wild) value(depth int) *structpb.Value {
	switch w.IntN(11) {
	case 0:
		return structpb.NewNullValue()
	case 1:
		return structpb.NewBoolValue(w.IntN(2) == 0)
	case 2:
		return structpb.NewNumberValue(pick(w, []float64{0, -1, math.NaN(), math.Inf(1), math.MaxFloat64, 1e-300}))
	case 3:
		return structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{w.inner(depth), w.inner(depth)}})
	case 4:
		return structpb.NewStructValue(w.object(depth - 1))
	case 5, 6:
		fields := map[string]*structpb.Value{sig.Key: structpb.NewStringValue(pick(w, wildSignatures))}
		for _, name := range []string{"value", "urn", "id", "hash", "text", "path", "assets", "secret", "dependencies",
			"plaintext", "packageVersion"} {
			if w.IntN(3) == 0 {
				fields[name] = w.inner(depth)
			}
		}
		return structpb.NewStructValue(&structpb.Struct{Fields: fields})
	case 7:
		v := structpb.NewStringValue("deep")
		for range pick(w, []int{10, 400, 600, 3000}) {
			v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
		}
		return v
	case 8:
		return &structpb.Value{}
	}
	return structpb.NewStringValue(pick(w, wildTexts))
}

func (w wild) inner(depth int) *structpb.Value {
	if depth <= 0 {
		return structpb.NewStringValue(pick(w, wildTexts))
	}
	return w.value(depth - 1)
}

func (w wild) object(depth int) *structpb.Struct {
	s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i := range w.IntN(4) {
		s.Fields[pick(w, []string{"", "name", "size", "__self__", "urn", "k" + fmt.Sprint(i)})] = w.inner(depth)
	}
	return s
}

func (w wild) registration() *pulumirpc.RegisterResourceRequest {
	req := &pulumirpc.RegisterResourceRequest{
		Type: pick(w, wildTypes), Name: pick(w, wildNames), Custom: w.IntN(2) == 0, Remote: w.IntN(10) == 0,
		Object:                  w.object(4),
		SupportsResultReporting: w.IntN(2) == 0, AcceptSecrets: w.IntN(2) == 0, AcceptResources: w.IntN(2) == 0,
	}
	if w.IntN(3) == 0 {
		req.Parent, req.Provider, req.Dependencies = pick(w, wildURNs), pick(w, wildURNs), w.urns()
		req.DeletedWith, req.ReplaceWith, req.AliasURNs = pick(w, wildURNs), w.urns(), w.urns()
		req.PropertyDependencies = map[string]*pulumirpc.RegisterResourceRequest_PropertyDependencies{
			"name": {Urns: w.urns()}, "": nil}
		req.Providers = map[string]string{"toy": pick(w, wildURNs), "": pick(w, wildURNs)}
	}
	if w.IntN(4) == 0 {
		req.Aliases = []*pulumirpc.Alias{nil, {}, {Alias: &pulumirpc.Alias_Urn{Urn: pick(w, wildURNs)}},
			{Alias: &pulumirpc.Alias_Spec_{
				Spec: &pulumirpc.Alias_Spec{Name: pick(w, wildNames), Type: pick(w, wildTypes)},
			}}}
		req.Version, req.PackageRef, req.ImportId = pick(w, wildTexts), pick(w, wildTexts), pick(w, wildTexts)
		req.IgnoreChanges, req.ReplaceOnChanges = []string{pick(w, wildTexts), "a[", "*"},
			[]string{"", "[0].", pick(w, wildTexts)}
		req.CustomTimeouts = &pulumirpc.RegisterResourceRequest_CustomTimeouts{Create: pick(w, wildTexts),
			Delete: "-5m"}
		req.ReplacementTrigger = w.value(2)
	}
	return req
}

// A preview goes on whatever was refused, so each of the registrations is looked at. FuzzRegisterResource makes more.
func TestHostileRegistrationsHarmNobody(t *testing.T) {
	h := newHouse(t)
	w, ctx := h.openWild(deployments.UpdateRequest{ContinueOnError: true, DryRun: true}), waittest.Context(t)
	const callers, each = 16, 125
	var calling sync.WaitGroup
	for caller := range callers {
		calling.Go(func() {
			random := wild{rand.New(rand.NewPCG(15, uint64(caller)))}
			for i := range each {
				w.hostile(ctx, t, random)
				if i%25 == 0 {
					good, err := w.RegisterResource(ctx, &pulumirpc.RegisterResourceRequest{
						Type: "toy:index:Thing", Name: fmt.Sprintf("good-%d-%d", caller, i), Custom: true,
					})
					if err != nil || good.GetUrn() == "" {
						t.Errorf("a good registration: %v %v", good, err)
					}
				}
			}
		})
	}
	calling.Wait()
	if result := w.exit(t); result.Status != engine.StatusFailed || result.IntegrityError != "" {
		t.Errorf("%+v", result)
	}
}

// hostile registers a resource, and returns its URN if it was created.
func (w *wildProgram) hostile(ctx context.Context, t *testing.T, random wild) (created urn.URN) {
	resp, err := w.RegisterResource(ctx, random.registration())
	if ctx.Err() != nil {
		t.Error("a registration is not answered")
	}
	if err != nil || resp.GetId() == "" {
		return ""
	}
	return urn.URN(resp.GetUrn())
}

// Some of the registrations end an update. What was created until then is in the state.
func TestHostileRegistrationsLoseNothingOfTheUpdateThatTheyEnd(t *testing.T) {
	const updates, callers, each = 7, 4, 10
	ctx, all := waittest.Context(t), 0
	for n := range updates {
		w := newHouse(t).openWild(deployments.UpdateRequest{ContinueOnError: true})
		var made sync.Map
		var calling sync.WaitGroup
		for caller := range callers {
			calling.Go(func() {
				random := wild{rand.New(rand.NewPCG(uint64(n), uint64(caller)))}
				for range each {
					if created := w.hostile(ctx, t, random); created != "" {
						made.Store(created, true)
					}
				}
			})
		}
		calling.Wait()
		if result := w.exit(t); result.Status != engine.StatusFailed || result.IntegrityError != "" {
			t.Errorf("%+v", result)
		}
		stored := w.stored()
		made.Range(func(u, _ any) bool {
			all++
			if !stored[u.(urn.URN)] {
				t.Errorf("%s is lost", u)
			}
			return true
		})
	}
	if all == 0 {
		t.Error("nothing was created")
	}
}

// stored returns the resources of which a state was saved.
func (w *wildProgram) stored() map[urn.URN]bool {
	w.run.mu.Lock()
	defer w.run.mu.Unlock()
	stored := map[urn.URN]bool{}
	for _, d := range w.run.deltas {
		if d.State != nil {
			stored[d.State.URN] = true
		}
	}
	return stored
}

// fuzzed fuzzes one call of the monitor, which must answer every request.
func fuzzed[Request any, Message interface {
	*Request
	proto.Message
}](f *testing.F, seed func(wild) Message, call func(context.Context, *wildProgram, Message) error) {
	random := wild{rand.New(rand.NewPCG(1, 2))}
	for range 50 {
		if data, err := proto.Marshal(seed(random)); err == nil {
			f.Add(data)
		}
	}
	// a preview goes on whatever was refused
	w := newHouse(f).openWild(deployments.UpdateRequest{ContinueOnError: true, DryRun: true})
	f.Fuzz(func(t *testing.T, data []byte) {
		var req Message = new(Request)
		if proto.Unmarshal(data, req) != nil {
			t.Skip()
		}
		ctx := waittest.Context(t)
		if err := call(ctx, w, req); ctx.Err() != nil {
			t.Fatalf("not answered: %v", err)
		} else if err != nil && (strings.Contains(err.Error(), "deployctl failed internally") ||
			strings.Contains(err.Error(), "does not answer any more")) { // the update goes on
			t.Fatal(err)
		}
	})
}

func FuzzRegisterResource(f *testing.F) {
	fuzzed(f, wild.registration, func(ctx context.Context, w *wildProgram,
		req *pulumirpc.RegisterResourceRequest) error {
		_, err := w.RegisterResource(ctx, req)
		return err
	})
}

func FuzzReadResource(f *testing.F) {
	fuzzed(f, func(w wild) *pulumirpc.ReadResourceRequest {
		return &pulumirpc.ReadResourceRequest{
			Id: pick(w, wildTexts), Type: pick(w, wildTypes), Name: pick(w, wildNames), Parent: pick(w, wildURNs),
			Properties:   w.object(4),
			Dependencies: w.urns(), Provider: pick(w, wildURNs), PackageRef: pick(w, wildTexts),
		}
	}, func(ctx context.Context, w *wildProgram, req *pulumirpc.ReadResourceRequest) error {
		_, err := w.ReadResource(ctx, req)
		return err
	})
}

func FuzzInvoke(f *testing.F) {
	fuzzed(f, func(w wild) *pulumirpc.ResourceInvokeRequest {
		return &pulumirpc.ResourceInvokeRequest{
			Tok:      pick(w, append([]string{"toy:index:ask", "pulumi:pulumi:getResource"}, wildTypes...)),
			Args:     w.object(4),
			Provider: pick(w, wildURNs),
			Parent:   pick(w, wildURNs), DependsOn: w.urns(), Version: pick(w, wildTexts),
		}
	}, func(ctx context.Context, w *wildProgram, req *pulumirpc.ResourceInvokeRequest) error {
		_, err := w.Invoke(ctx, req)
		return err
	})
}

func FuzzCall(f *testing.F) {
	fuzzed(f, func(w wild) *pulumirpc.ResourceCallRequest {
		return &pulumirpc.ResourceCallRequest{Tok: pick(w, wildTypes), Args: w.object(4), Provider: pick(w, wildURNs)}
	}, func(ctx context.Context, w *wildProgram, req *pulumirpc.ResourceCallRequest) error {
		_, err := w.Call(ctx, req)
		return err
	})
}

func FuzzRegisterResourceOutputs(f *testing.F) {
	fuzzed(f, func(w wild) *pulumirpc.RegisterResourceOutputsRequest {
		return &pulumirpc.RegisterResourceOutputsRequest{Urn: pick(w, wildURNs), Outputs: w.object(4)}
	}, func(ctx context.Context, w *wildProgram, req *pulumirpc.RegisterResourceOutputsRequest) error {
		_, err := w.RegisterResourceOutputs(ctx, req)
		return err
	})
}

func FuzzRegisterPackage(f *testing.F) {
	fuzzed(f, func(w wild) *pulumirpc.RegisterPackageRequest {
		return &pulumirpc.RegisterPackageRequest{
			Name: pick(w, wildNames), Version: pick(w, wildTexts), DownloadUrl: pick(w, wildTexts),
			Parameterization: &pulumirpc.Parameterization{Name: pick(w, wildNames), Version: pick(w, wildTexts)},
			Extension:        &pulumirpc.Parameterization{Name: pick(w, wildNames), Version: pick(w, wildTexts)},
		}
	}, func(ctx context.Context, w *wildProgram, req *pulumirpc.RegisterPackageRequest) error {
		_, err := w.RegisterPackage(ctx, req)
		return err
	})
}
