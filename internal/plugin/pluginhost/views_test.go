package pluginhost

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestStepsOfViewsAreTakenOnlyDuringTheirCallAndWithinLimits(t *testing.T) {
	h, err := New(Options{RootDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	state := func(name string, values map[string]any) *pulumirpc.ViewStepState {
		fields, err := structpb.NewStruct(values)
		if err != nil {
			t.Fatal(err)
		}
		return &pulumirpc.ViewStepState{Type: "p:m:Part", Name: name, Inputs: fields, Outputs: fields}
	}
	create := func(s *pulumirpc.ViewStepState) *pulumirpc.ViewStep {
		return &pulumirpc.ViewStep{Op: pulumirpc.ViewStep_CREATE, New: s}
	}
	huge, half := h.OpenViews(false), strings.Repeat("x", maxViewBytes/4)
	halves := []*pulumirpc.ViewStep{create(state("a", map[string]any{"x": half}))}
	views, preview := h.OpenViews(false), h.OpenViews(true)
	unknown := create(state("a", map[string]any{"x": plugin.UnknownStringValue}))
	many := make([]*pulumirpc.ViewStep, maxViewSteps+1)
	for i := range many {
		many[i] = create(state("a", nil))
	}
	for _, c := range []struct {
		name  string
		token string
		steps []*pulumirpc.ViewStep
		want  codes.Code
	}{
		{"a step", views.Token, []*pulumirpc.ViewStep{create(state("a", map[string]any{"x": 1}))}, codes.OK},
		{"no steps", views.Token, nil, codes.OK},
		{"an unknown value in a preview", preview.Token, []*pulumirpc.ViewStep{unknown}, codes.OK},
		{"an unknown value", views.Token, []*pulumirpc.ViewStep{unknown}, codes.InvalidArgument},
		{"no token", "", nil, codes.NotFound},
		{"no operation", views.Token, []*pulumirpc.ViewStep{{New: state("a", nil)}}, codes.InvalidArgument},
		{"no state", views.Token, []*pulumirpc.ViewStep{{Op: pulumirpc.ViewStep_CREATE}}, codes.InvalidArgument},
		{"nothing", views.Token, []*pulumirpc.ViewStep{nil}, codes.InvalidArgument},
		{"a type that is none", views.Token, []*pulumirpc.ViewStep{create(&pulumirpc.ViewStepState{Type: "a$b", Name: "a"})},
			codes.InvalidArgument},
		{"a good step and a bad one", views.Token, []*pulumirpc.ViewStep{create(state("b", nil)), create(nil)},
			codes.InvalidArgument},
		{"large values", huge.Token, halves, codes.OK},
		{"values that are too large together", huge.Token, halves, codes.ResourceExhausted},
		{"too many", views.Token, many, codes.ResourceExhausted},
		{"too long", views.Token, []*pulumirpc.ViewStep{{Op: pulumirpc.ViewStep_UPDATE, New: state("a", nil),
			Error: strings.Repeat("x", maxViewTexts)}}, codes.ResourceExhausted},
	} {
		_, err := h.views.PublishViewSteps(t.Context(), &pulumirpc.PublishViewStepsRequest{Token: c.token, Steps: c.steps})
		if got := status.Code(err); got != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if steps := views.Close(); len(steps) != 1 || steps[0].Op != "create" || steps[0].New.Name != "a" {
		t.Errorf("what was published is %+v", steps)
	}
	_, err = h.views.PublishViewSteps(t.Context(), &pulumirpc.PublishViewStepsRequest{Token: views.Token})
	if status.Code(err) != codes.NotFound {
		t.Errorf("after the call: %v", err)
	}
}

// TestViewsCountAsTheMemoryThatTheyTake publishes what is twelve times as large in memory as it is sent, and more than
// an organization may have its updates keep.
func TestViewsCountAsTheMemoryThatTheyTake(t *testing.T) {
	h, err := New(Options{RootDir: t.TempDir(), Intake: intake.New(mempool.New(4*maxViewBytes), "acme")})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	publish := func(v *Views, objects int) codes.Code {
		list := &structpb.ListValue{}
		for range objects {
			list.Values = append(list.Values, structpb.NewStructValue(&structpb.Struct{}))
		}
		values := &structpb.Struct{Fields: map[string]*structpb.Value{"x": structpb.NewListValue(list)}}
		_, err := h.views.PublishViewSteps(t.Context(), &pulumirpc.PublishViewStepsRequest{Token: v.Token,
			Steps: []*pulumirpc.ViewStep{{Op: pulumirpc.ViewStep_CREATE,
				New: &pulumirpc.ViewStepState{Type: "p:m:Part", Name: "a", Inputs: values}}}})
		return status.Code(err)
	}
	const half = maxViewBytes / valueBytes / 2
	var open []*Views
	for range 4 {
		v := h.OpenViews(false)
		open = append(open, v)
		if got := publish(v, half-half/8); got != codes.OK {
			t.Fatalf("half of what a call may publish is answered with %v", got)
		}
	}
	if got := publish(open[0], half+half/4); got != codes.ResourceExhausted {
		t.Errorf("more than a call may publish is answered with %v", got)
	}
	if got := publish(h.OpenViews(false), half); got != codes.ResourceExhausted {
		t.Errorf("more than an organization may publish at a time is answered with %v", got)
	}
	open[1].Close()
	if got := publish(h.OpenViews(false), half/2); got != codes.OK {
		t.Errorf("what has room again is answered with %v", got)
	}
}
