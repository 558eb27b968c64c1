package pluginhost

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	// maxViewSteps bounds the steps of views that one call may publish: they travel with the outcome of the call.
	maxViewSteps = 1000
	// maxViewTexts bounds their types, names, errors and property paths, in bytes.
	maxViewTexts = 256 << 10
	// maxViewBytes bounds the memory of their values.
	maxViewBytes = 64 << 20
)

// ViewStep is a step of a view that a provider has published.
type ViewStep struct {
	Op       string // as in engine events: create, update, delete-replaced, …
	Error    string // why it failed
	Partial  bool   // it failed, and New is what the view has become
	Old, New *plugin.View
	// Keys are the properties that replace, Diffs those that change; Detailed may say more.
	Keys, Diffs []string
	Detailed    map[string]plugin.PropertyDiff

	bytes int // of memory that its values take beside their texts
}

// viewOps are the operations of published steps, as engine events name them.
var viewOps = map[pulumirpc.ViewStep_Op]string{
	pulumirpc.ViewStep_SAME: "same", pulumirpc.ViewStep_CREATE: "create", pulumirpc.ViewStep_UPDATE: "update",
	pulumirpc.ViewStep_DELETE: "delete", pulumirpc.ViewStep_REPLACE: "replace",
	pulumirpc.ViewStep_CREATE_REPLACEMENT: "create-replacement", pulumirpc.ViewStep_DELETE_REPLACED: "delete-replaced",
	pulumirpc.ViewStep_READ: "read", pulumirpc.ViewStep_READ_REPLACEMENT: "read-replacement",
	pulumirpc.ViewStep_REFRESH: "refresh", pulumirpc.ViewStep_READ_DISCARD: "discard",
	pulumirpc.ViewStep_DISCARD_REPLACED:       "discard-replaced",
	pulumirpc.ViewStep_REMOVE_PENDING_REPLACE: "remove-pending-replace",
	pulumirpc.ViewStep_IMPORT:                 "import", pulumirpc.ViewStep_IMPORT_REPLACEMENT: "import-replacement",
}

// Views collects the steps of views that a provider publishes during one call about their owner. The provider gets
// Address and Token with the call. Close it when the call has been answered.
type Views struct {
	Address, Token string

	preview bool
	server  *viewServer
	mu      sync.Mutex
	steps   []ViewStep
	texts   int // the bytes of their texts
	bytes   int // of memory that their values take
	forget  []func()
}

// OpenViews returns a collection for one call. Unknown values are accepted only in a preview.
func (h *Host) OpenViews(preview bool) *Views {
	v := &Views{Address: h.address, Token: rand.Text(), preview: preview, server: h.views}
	h.views.mu.Lock()
	defer h.views.mu.Unlock()
	h.views.open[v.Token] = v
	return v
}

// Close returns what was published, in its order. Its token is not accepted any more. Close may be called again.
func (v *Views) Close() []ViewStep {
	v.server.mu.Lock()
	delete(v.server.open, v.Token)
	v.server.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, forget := range v.forget {
		forget()
	}
	v.forget, v.bytes = nil, maxViewBytes // nothing more is taken
	return v.steps
}

// viewServer is the ResourceStatus service that providers call.
type viewServer struct {
	pulumirpc.UnimplementedResourceStatusServer
	intake *intake.Intake // of which published steps take room

	mu   sync.Mutex
	open map[string]*Views // by token
}

// drop closes what is open.
func (s *viewServer) drop() {
	s.mu.Lock()
	open := slices.Collect(maps.Values(s.open))
	s.mu.Unlock()
	for _, v := range open {
		v.Close()
	}
}

// PublishViewSteps takes steps of views. Either all of a request are taken or none.
func (s *viewServer) PublishViewSteps(
	_ context.Context, req *pulumirpc.PublishViewStepsRequest,
) (*pulumirpc.PublishViewStepsResponse, error) {
	s.mu.Lock()
	views := s.open[req.GetToken()]
	s.mu.Unlock()
	if views == nil {
		return nil, status.Error(codes.NotFound, "the token is not that of a call which is under way: steps of views "+
			"can be published only while a call about their owner runs")
	}
	steps := make([]ViewStep, len(req.GetSteps()))
	for i, step := range req.GetSteps() {
		var err error
		if steps[i], err = views.read(step); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "view step %d: %v", i, err)
		}
	}
	if err := views.add(steps, req.GetSteps()); err != nil {
		return nil, err
	}
	return &pulumirpc.PublishViewStepsResponse{}, nil
}

// add adds steps, unless they are too many or too large.
func (v *Views) add(steps []ViewStep, sent []*pulumirpc.ViewStep) error {
	texts, bytes := 0, 0
	for i, step := range sent {
		bytes += proto.Size(step) + steps[i].bytes
		for _, s := range []*pulumirpc.ViewStepState{step.GetOld(), step.GetNew()} {
			texts += len(s.GetType()) + len(s.GetName()) + len(s.GetParentType()) + len(s.GetParentName())
		}
		texts += len(step.GetError()) + len(strings.Join(step.GetKeys(), "")) + len(strings.Join(step.GetDiffs(), ""))
		for path := range step.GetDetailedDiff() {
			texts += len(path)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.steps)+len(steps) > maxViewSteps || v.texts+texts > maxViewTexts || v.bytes+bytes > maxViewBytes {
		return status.Errorf(codes.ResourceExhausted, "a call may publish %d steps of views, of %d bytes, with %d bytes "+
			"of texts", maxViewSteps, maxViewBytes, maxViewTexts)
	}
	forget, ok := v.server.intake.Keep(bytes)
	if !ok {
		return status.Error(codes.ResourceExhausted, "the calls of the organization's updates publish too large views at "+
			"a time")
	}
	v.steps, v.texts, v.bytes = append(v.steps, steps...), v.texts+texts, v.bytes+bytes
	v.forget = append(v.forget, forget)
	return nil
}

// What a value and a property take of memory beside their texts, at most.
const (
	valueBytes    = 64
	propertyBytes = 128
)

// memoryOf returns about how much memory a value takes beside its texts.
func memoryOf(v resource.PropertyValue) int {
	n := valueBytes
	switch {
	case v.IsArray():
		for _, item := range v.ArrayValue() {
			n += memoryOf(item)
		}
	case v.IsObject():
		for _, item := range v.ObjectValue() {
			n += propertyBytes + memoryOf(item)
		}
	case v.IsSecret():
		n += memoryOf(v.SecretValue().Element)
	case v.IsOutput():
		n += memoryOf(v.OutputValue().Element)
	}
	return n
}

// read reads one step.
func (v *Views) read(step *pulumirpc.ViewStep) (out ViewStep, err error) {
	defer panics.Into(&err, "reading a view step")
	op, ok := viewOps[step.GetOp()]
	switch {
	case !ok:
		return out, fmt.Errorf("the operation %s is not known", step.GetOp())
	case step.GetOld() == nil && step.GetNew() == nil:
		return out, fmt.Errorf("it has neither an old nor a new state")
	}
	out = ViewStep{
		Op: op, Error: step.GetError(), Partial: step.GetStatus() == pulumirpc.ViewStep_PARTIAL_FAILURE,
		Keys: step.GetKeys(), Diffs: step.GetDiffs(),
	}
	if step.GetHasDetailedDiff() {
		out.Detailed = map[string]plugin.PropertyDiff{}
		for path, d := range step.GetDetailedDiff() {
			out.Detailed[path] = plugin.PropertyDiff{Kind: diffKind(d.GetKind()), InputDiff: d.GetInputDiff()}
		}
	}
	if out.Old, err = v.state(step.GetOld()); err != nil {
		return out, fmt.Errorf("its old state: %w", err)
	}
	if out.New, err = v.state(step.GetNew()); err != nil {
		return out, fmt.Errorf("its new state: %w", err)
	}
	for _, state := range []*plugin.View{out.Old, out.New} {
		if state != nil {
			out.bytes += memoryOf(resource.NewProperty(state.Inputs)) + memoryOf(resource.NewProperty(state.Outputs))
		}
	}
	return out, nil
}

// state reads the state of a view; nil when there is none.
func (v *Views) state(s *pulumirpc.ViewStepState) (*plugin.View, error) {
	if s == nil {
		return nil, nil
	}
	if err := token.CheckName(s.GetType(), s.GetName()); err != nil {
		return nil, err
	}
	out := &plugin.View{
		Type: tokens.Type(s.GetType()), Name: s.GetName(), ParentType: tokens.Type(s.GetParentType()),
		ParentName: s.GetParentName(),
	}
	options := plugin.MarshalOptions{
		KeepUnknowns: v.preview, RejectUnknowns: !v.preview, KeepSecrets: true, KeepResources: true,
	}
	for _, part := range []struct {
		name string
		into *resource.PropertyMap
	}{{"inputs", &out.Inputs}, {"outputs", &out.Outputs}} {
		values := s.GetInputs()
		if part.name == "outputs" {
			values = s.GetOutputs()
		}
		var err error
		if *part.into, err = plugin.UnmarshalProperties(values, options); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return out, nil
}

// diffKind reads a kind of a property's difference. One that is not known is an update.
func diffKind(kind pulumirpc.PropertyDiff_Kind) plugin.DiffKind {
	switch kind {
	case pulumirpc.PropertyDiff_ADD:
		return plugin.DiffAdd
	case pulumirpc.PropertyDiff_ADD_REPLACE:
		return plugin.DiffAddReplace
	case pulumirpc.PropertyDiff_DELETE:
		return plugin.DiffDelete
	case pulumirpc.PropertyDiff_DELETE_REPLACE:
		return plugin.DiffDeleteReplace
	case pulumirpc.PropertyDiff_UPDATE_REPLACE:
		return plugin.DiffUpdateReplace
	default:
		return plugin.DiffUpdate
	}
}
