package pluginhost

import (
	"strings"
	"testing"

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
