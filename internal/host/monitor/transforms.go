package monitor

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// maxTransforms bounds the transforms of the stack, and those of its invokes.
const maxTransforms = 1000

// transforms are the functions of the program that change registrations and invokes before they are read. It is safe
// for concurrent use.
type transforms struct {
	mu      sync.Mutex
	stack   []*pulumirpc.Callback
	invokes []*pulumirpc.Callback
	// constructing are the transforms of remote components, by constructionKey, until their providers register them.
	constructing map[string][]*pulumirpc.Callback
}

// RegisterStackTransform adds a transform that is applied to all later registrations, after their own and those of
// their parents.
func (m *Monitor) RegisterStackTransform(ctx context.Context, cb *pulumirpc.Callback) (*emptypb.Empty, error) {
	return m.addTransform(ctx, cb, &m.transforms.stack)
}

// RegisterStackInvokeTransform adds a transform that is applied to all later invokes.
func (m *Monitor) RegisterStackInvokeTransform(ctx context.Context, cb *pulumirpc.Callback) (*emptypb.Empty, error) {
	return m.addTransform(ctx, cb, &m.transforms.invokes)
}

func (m *Monitor) addTransform(
	ctx context.Context, cb *pulumirpc.Callback, to *[]*pulumirpc.Callback,
) (*emptypb.Empty, error) {
	if err := m.callbacks.check(cb); err != nil {
		return m.refuseFeature(ctx, err)
	}
	m.transforms.mu.Lock()
	defer m.transforms.mu.Unlock()
	if len(*to) >= maxTransforms {
		return m.refuseFeature(ctx, status.Errorf(codes.ResourceExhausted, "the program registers more than %d transforms",
			maxTransforms))
	}
	*to = append(*to, cb)
	return &emptypb.Empty{}, nil
}

// constructionKey identifies a remote component, which has no URN yet.
func constructionKey(req *pulumirpc.RegisterResourceRequest) string {
	return strings.Join([]string{req.GetParent(), req.GetType(), req.GetName()}, "\x00")
}

// own returns the transforms of the resource itself. Those of a remote component are applied to the request of the
// program and again to the one with which its provider registers the component; children inherit them from the latter.
func (t *transforms) own(req *pulumirpc.RegisterResourceRequest) []*pulumirpc.Callback {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := constructionKey(req)
	if constructed, ok := t.constructing[key]; ok && !req.GetRemote() {
		delete(t.constructing, key)
		return constructed
	}
	if req.GetRemote() && len(req.GetTransforms()) > 0 {
		t.constructing[key] = req.GetTransforms()
	}
	return req.GetTransforms()
}

// transformsOf returns what is applied to a request, in order: its own transforms, those of its parents from the
// nearest on, and those of the stack.
func (m *Monitor) transformsOf(parent urn.URN, own []*pulumirpc.Callback) []*pulumirpc.Callback {
	all := slices.Clone(own)
	for visited := map[urn.URN]bool{}; parent != "" && !visited[parent]; {
		visited[parent] = true
		above, _ := m.registry.get(parent)
		all = append(all, above.transforms...)
		parent = above.parent
	}
	m.transforms.mu.Lock()
	defer m.transforms.mu.Unlock()
	return append(all, m.transforms.stack...)
}

// transform applies transforms to a registration: it replaces the properties and the options of the request. A request
// without transforms is left as it is.
func (m *Monitor) transform(
	ctx context.Context, req *pulumirpc.RegisterResourceRequest, all []*pulumirpc.Callback,
) error {
	if len(all) == 0 {
		return nil
	}
	for _, cb := range all {
		if err := m.callbacks.check(cb); err != nil {
			return err
		}
	}
	props, err := m.transformable(ctx, req)
	if err != nil {
		return err
	}
	options := m.transformOptions(req, fromNode(ctx) && !req.GetAliasSpecs())
	for _, cb := range all {
		if props, options, err = m.applyTransform(ctx, req, cb, props, options); err != nil {
			return status.Errorf(codes.Unknown, "a transform of %s %s failed: %s", req.GetType(), req.GetName(),
				pluginhost.ErrorText(err))
		}
	}
	if req.Object, err = plugin.MarshalProperties(props, m.transformMarshalOptions(req, true)); err != nil {
		return rpcError(err)
	}
	if len(req.GetTransforms()) > 0 {
		setDependencies(req, props, options)
	} else {
		req.Dependencies = options.GetDependsOn()
	}
	setOptions(req, options)
	return nil
}

// transformable returns the properties of a request as transforms get them. If the resource has transforms of its own,
// each property tells the resources that it depends on.
func (m *Monitor) transformable(
	ctx context.Context, req *pulumirpc.RegisterResourceRequest,
) (resource.PropertyMap, error) {
	label := req.GetType() + " " + req.GetName()
	options := m.unmarshalOptions(label)
	options.KeepOutputValues, options.UpgradeToOutputValues = true, true
	props, err := plugin.UnmarshalProperties(req.GetObject(), options)
	if err == nil {
		err = m.project.Assets.Hash(ctx, props)
	}
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "inputs of %s: %v", label, err)
	}
	if props == nil {
		props = resource.PropertyMap{}
	}
	if len(req.GetTransforms()) == 0 {
		return props, nil
	}
	for key, v := range props {
		named := req.GetPropertyDependencies()[string(key)].GetUrns()
		deps, err := parseURNs("dependency of "+req.GetName()+"."+string(key), named)
		if err != nil {
			return nil, err
		}
		props[key] = properties.DependingOn(v, deps)
	}
	return props, nil
}

// transformMarshalOptions are those of the properties in the call of a transform and in its answer.
func (m *Monitor) transformMarshalOptions(
	req *pulumirpc.RegisterResourceRequest, byteStrings bool,
) plugin.MarshalOptions {
	options := m.unmarshalOptions("transform of " + req.GetType() + " " + req.GetName())
	options.KeepOutputValues, options.KeepByteString = true, byteStrings
	return options
}

func (m *Monitor) applyTransform(
	ctx context.Context, req *pulumirpc.RegisterResourceRequest, cb *pulumirpc.Callback, props resource.PropertyMap,
	options *pulumirpc.TransformResourceOptions,
) (resource.PropertyMap, *pulumirpc.TransformResourceOptions, error) {
	marshal := m.transformMarshalOptions(req, cb.GetAcceptsByteString())
	sent, err := plugin.MarshalProperties(props, marshal)
	if err != nil {
		return nil, nil, err
	}
	var answer pulumirpc.TransformResponse
	if err := m.callbacks.invoke(ctx, cb, &pulumirpc.TransformRequest{
		Type: req.GetType(), Name: req.GetName(), Custom: req.GetCustom(), Parent: req.GetParent(),
		Properties: sent, Options: options,
	}, &answer); err != nil {
		return nil, nil, err
	}
	if answer.GetOptions() != nil {
		options = answer.GetOptions()
	}
	if answer.GetProperties() != nil {
		if props, err = plugin.UnmarshalProperties(answer.GetProperties(), marshal); err != nil {
			return nil, nil, err
		}
	}
	return props, options, nil
}
