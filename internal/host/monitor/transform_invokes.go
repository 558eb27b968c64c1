package monitor

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// transformInvoke applies the stack's invoke transforms to an invoke: it replaces the arguments, which it returns, and
// the options of the request.
func (m *Monitor) transformInvoke(
	ctx context.Context, req *pulumirpc.ResourceInvokeRequest, args resource.PropertyMap,
) (resource.PropertyMap, error) {
	m.transforms.mu.Lock()
	all := slices.Clone(m.transforms.invokes)
	m.transforms.mu.Unlock()
	if len(all) == 0 {
		return args, nil
	}
	options := &pulumirpc.TransformInvokeOptions{
		Provider: req.GetProvider(), PluginDownloadUrl: req.GetPluginDownloadURL(), Version: req.GetVersion(),
		PluginChecksums: req.GetPluginChecksums(),
	}
	if above, ok := m.registry.get(urn.URN(req.GetParent())); ok && options.Provider == "" {
		options.Provider = above.providers[string(token.Package(tokens.ModuleMember(req.GetTok())))]
	}
	for _, cb := range all {
		changed, err := m.applyInvokeTransform(ctx, req.GetTok(), cb, args, options)
		if err != nil {
			return nil, status.Errorf(codes.Unknown, "a transform of the invoke %s failed: %s", req.GetTok(),
				pluginhost.ErrorText(err))
		}
		args, options = changed.args, changed.options
	}
	req.Provider, req.Version = options.GetProvider(), options.GetVersion()
	req.PluginDownloadURL, req.PluginChecksums = options.GetPluginDownloadUrl(), options.GetPluginChecksums()
	return args, nil
}

// transformedInvoke is what an invoke transform returned.
type transformedInvoke struct {
	args    resource.PropertyMap
	options *pulumirpc.TransformInvokeOptions
}

func (m *Monitor) applyInvokeTransform(
	ctx context.Context, function string, cb *pulumirpc.Callback, args resource.PropertyMap,
	options *pulumirpc.TransformInvokeOptions,
) (transformedInvoke, error) {
	marshal := m.unmarshalOptions("transform of the invoke " + function)
	marshal.KeepOutputValues, marshal.KeepByteString = true, cb.GetAcceptsByteString()
	changed := transformedInvoke{args, options}
	sent, err := plugin.MarshalProperties(args, marshal)
	if err != nil {
		return changed, err
	}
	var answer pulumirpc.TransformInvokeResponse
	if err := m.callbacks.invoke(ctx, cb, &pulumirpc.TransformInvokeRequest{
		Token: function, Args: sent, Options: options,
	}, &answer); err != nil {
		return changed, err
	}
	if answer.GetOptions() != nil {
		changed.options = answer.GetOptions()
	}
	if answer.GetArgs() != nil {
		changed.args, err = plugin.UnmarshalProperties(answer.GetArgs(), marshal)
	}
	return changed, err
}
