package activities

import (
	"context"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// dictation returns the path of a file in the toy provider's world that replaces the provider's answer to a method. It
// has a byte for the code, and the message or the detail of the error.
func dictation(world, method string) string { return filepath.Join(world, ".answers-"+method) }

// dictated returns the options of a server whose answers come from the dictation files of a world.
func dictated(world string) []grpc.ServerOption {
	answer := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		data, err := os.ReadFile(dictation(world, path.Base(info.FullMethod)))
		if err != nil || len(data) == 0 {
			return handle(ctx, req)
		}
		if code := codes.Code(data[0]); code != codes.OK {
			detail := &anypb.Any{TypeUrl: "type.googleapis.com/pulumirpc.ErrorResourceInitFailed", Value: data[1:]}
			return nil, status.ErrorProto(&spb.Status{Code: int32(code), Message: "no", Details: []*anypb.Any{detail}})
		}
		return encoded(data[1:]), nil
	}
	return []grpc.ServerOption{grpc.UnaryInterceptor(answer), grpc.ForceServerCodecV2(
		mixedCodec{encoding.GetCodecV2("proto")})}
}

// encoded is a message in its wire format.
type encoded []byte

// mixedCodec also accepts messages that are encoded already.
type mixedCodec struct{ encoding.CodecV2 }

func (c mixedCodec) Marshal(v any) (mem.BufferSlice, error) {
	if data, ok := v.(encoded); ok {
		return mem.BufferSlice{mem.SliceBuffer(data)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// dictatedSteps are operations on a resource, by the method whose answer is replaced.
var dictatedSteps = []struct {
	method string
	step   func(h *house, op int) (any, error)
}{
	{"Check", (*house).planned},
	{"Diff", (*house).planned},
	{"Create", func(h *house, op int) (any, error) {
		return h.step(engine.Step{Op: op, Kind: engine.StepCreate, New: h.thing("", texts("size", "1"), nil)}, 1)
	}},
	{"Update", func(h *house, op int) (any, error) {
		return h.step(engine.Step{
			Op: op, Kind: engine.StepUpdate, Old: h.thing("x", texts("size", "1"), texts("size", "1")),
			New: h.thing("x", texts("size", "2"), nil),
		}, 1)
	}},
	{"Read", func(h *house, op int) (any, error) {
		return h.step(engine.Step{Op: op, Kind: engine.StepRefresh,
			Old: h.thing("x", texts("size", "1"), texts("size", "1"))}, 1)
	}},
	{"Read", func(h *house, op int) (any, error) {
		return h.settleStep(engine.Step{Op: op, Kind: engine.StepCreate, New: h.thing("", texts("size", "1"), nil)})
	}},
}

func (h *house) planned(op int) (any, error) {
	return call[deployments.PlanOutput](h, h.acts.PlanResources, deployments.PlanInput{
		Update: h.update, Base: h.base, Plans: []engine.Plan{{
			Op: op, URN: thingURN, Old: h.thing("x", texts("size", "1"), texts("size", "1")), Provider: h.toy(),
			Seed: seedOf(thingURN),
			Goal: engine.Registration{
				Type: thingType, Name: "thing", Custom: true, Inputs: h.bag(texts("size", "2")),
				ReplaceOnChanges: []string{"size", "a[0].b"},
			},
		}},
	})
}

// FuzzStepsOverAnswers runs the operations of an update on a resource, with a provider that returns arbitrary answers.
func FuzzStepsOverAnswers(f *testing.F) {
	add := func(method string, code codes.Code, m proto.Message) {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		for i, s := range dictatedSteps {
			if s.method == method {
				f.Add(uint8(i), code != codes.OK, data) //nolint:gosec // few
			}
		}
	}
	for _, v := range []*structpb.Value{
		{}, structpb.NewNumberValue(math.NaN()), structpb.NewStringValue(sig.UnknownStringValue),
		structpb.NewStringValue("\x00\x1b[2J"),
		structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			sig.Key: structpb.NewStringValue(sig.Secret)}}),
		structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			sig.Key: structpb.NewStringValue(sig.AssetSig), "path": structpb.NewStringValue("/etc/hostname"),
			"hash": structpb.NewBoolValue(true),
		}}),
		structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			sig.Key: structpb.NewStringValue(sig.ResourceReference), "urn": structpb.NewStringValue("x"),
			"id": structpb.NewNullValue(),
		}}),
	} {
		s := &structpb.Struct{Fields: map[string]*structpb.Value{"size": v, "": v, "__defaults": v}}
		add("Check", codes.OK, &pulumirpc.CheckResponse{
			Inputs: s, Failures: []*pulumirpc.CheckFailure{{Property: "a[", Reason: "\x1b[2J"}},
		})
		add("Check", codes.OK, &pulumirpc.CheckResponse{Inputs: s})
		add("Create", codes.OK, &pulumirpc.CreateResponse{Id: "x", Properties: s})
		add("Create", codes.Unknown, &pulumirpc.ErrorResourceInitFailed{Id: "x", Properties: s, Inputs: s,
			Reasons: []string{"", "\x00"}})
		add("Update", codes.OK, &pulumirpc.UpdateResponse{Properties: s})
		add("Read", codes.OK, &pulumirpc.ReadResponse{Id: "y", Properties: s, Inputs: s})
	}
	add("Diff", codes.OK, &pulumirpc.DiffResponse{
		Changes: 99, Replaces: []string{"", "a["}, Diffs: []string{"[0]", "size"}, Stables: []string{"]"},
		HasDetailedDiff: true, DeleteBeforeReplace: true,
		DetailedDiff: map[string]*pulumirpc.PropertyDiff{"": {Kind: 77}, "a[": {}, "__proto__": {InputDiff: true},
			"size[99999999]": {Kind: 5}},
	})
	add("Diff", codes.OK, &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_SOME})

	h := newHouse(f)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	op := 0
	f.Fuzz(func(t *testing.T, i uint8, fails bool, data []byte) {
		s := dictatedSteps[int(i)%len(dictatedSteps)]
		code := byte(codes.OK)
		if fails {
			code = byte(codes.Unknown)
		}
		if err := os.WriteFile(dictation(h.world, s.method), append([]byte{code}, data...), 0o600); err != nil {
			t.Fatal(err)
		}
		h.t = t
		op++
		begun := time.Now()
		done, err := s.step(h, op)
		if said := fmt.Sprintf("%+v %v", done, err); strings.Contains(said, "failed internally") ||
			time.Since(begun) > waittest.Patience {
			t.Fatalf("after %v: %s", time.Since(begun), said)
		}
		if err := os.Remove(dictation(h.world, s.method)); err != nil {
			t.Fatal(err)
		}
	})
}
