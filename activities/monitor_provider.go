package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/blang/semver"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/panics"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/internal/token"
	"github.com/google/uuid"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// packageRequest says which package a call is for and where its plugin comes from.
type packageRequest struct {
	pluginhost.Package
	checksums map[string][]byte
}

// provides is the package that is served: the parameterised one, if there is a parameter.
func (p packageRequest) provides() string {
	if p.Parameter != nil {
		return p.Parameter.Name
	}
	return p.Name
}

// wants is what a request's fields say about its plugin.
type wants interface {
	GetVersion() string
	GetPluginDownloadURL() string
	GetPluginChecksums() map[string][]byte
	GetPackageRef() string
}

// request reads which package a call is for.
func (m *monitor) request(pkg tokens.Package, r wants) (packageRequest, error) {
	if ref := r.GetPackageRef(); ref != "" {
		m.mu.Lock()
		defer m.mu.Unlock()
		p, ok := m.packages[ref]
		if !ok {
			return p, status.Errorf(codes.InvalidArgument, "unknown package reference %q", ref)
		}
		return p, nil
	}
	p := packageRequest{
		Package: pluginhost.Package{
			Name: string(pkg), Version: r.GetVersion(), DownloadURL: strings.TrimSuffix(r.GetPluginDownloadURL(), "/"),
		},
		checksums: r.GetPluginChecksums(),
	}
	if p.Version == "" {
		return p, nil
	}
	v, err := semver.ParseTolerant(p.Version)
	if err != nil {
		return p, status.Errorf(codes.InvalidArgument, "version %q of package %s: %v", p.Version, pkg, err)
	}
	p.Version = v.String()
	return p, nil
}

// RegisterPackage gives a reference to a package, the same for the same package.
func (m *monitor) RegisterPackage(
	ctx context.Context, req *pulumirpc.RegisterPackageRequest,
) (*pulumirpc.RegisterPackageResponse, error) {
	resp, err := m.registerPackage(req)
	return resp, m.refuse(ctx, err, engine.Refused{})
}

func (m *monitor) registerPackage(req *pulumirpc.RegisterPackageRequest) (*pulumirpc.RegisterPackageResponse, error) {
	if req.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "a package needs a name")
	}
	if req.GetExtension() != nil {
		return nil, unsupported("extension packages")
	}
	p := packageRequest{
		Package: pluginhost.Package{
			Name: req.GetName(), Version: strings.TrimPrefix(req.GetVersion(), "v"),
			DownloadURL: strings.TrimSuffix(req.GetDownloadUrl(), "/"),
		},
		checksums: req.GetChecksums(),
	}
	if q := req.GetParameterization(); q != nil {
		p.Parameter = &pluginhost.Parameter{Name: q.GetName(), Version: q.GetVersion(), Value: q.GetValue()}
	}
	text, err := json.Marshal(struct {
		Package   pluginhost.Package
		Checksums map[string][]byte
	}{p.Package, p.checksums})
	if err != nil {
		return nil, rpcError(err)
	}
	ref := uuid.NewSHA1(uuid.NameSpaceOID, text).String()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.packages[ref] = p
	return &pulumirpc.RegisterPackageResponse{Ref: ref}, nil
}

// complete fills in what the program requires of the package, where the request does not say.
func (m *monitor) complete(p packageRequest) packageRequest {
	required, ok := m.require[p.provides()]
	if !ok {
		return p
	}
	if p.Version == "" {
		p.Version = required.Version
	}
	if p.DownloadURL == "" {
		p.DownloadURL = strings.TrimSuffix(required.DownloadURL, "/")
	}
	if p.Parameter == nil && required.Parameter != nil {
		p.Parameter = required.Parameter
	}
	return p
}

// defaultProvider is a default provider that is being registered, or was.
type defaultProvider struct {
	ready chan struct{}
	ref   string
	err   error
}

// provider is the reference of the provider that a call names, or else of the package's default provider.
func (m *monitor) provider(ctx context.Context, named string, p packageRequest) (string, error) {
	if named != "" {
		if _, err := token.ParseReference(named); err != nil {
			return "", status.Errorf(codes.InvalidArgument, "provider %q: %v", named, err)
		}
		return named, nil
	}
	p = m.complete(p)
	if m.session.config.DeniesDefaultProvider(p.provides()) {
		return "", status.Errorf(codes.FailedPrecondition,
			"default provider for package %q is disabled by pulumi:disable-default-providers; pass an explicit "+
				"provider",
			p.provides())
	}
	key := strings.Join([]string{p.provides(), p.Version, p.DownloadURL}, "\x00")
	if p.Parameter != nil {
		key += "\x00" + p.Parameter.Version
	}
	m.mu.Lock()
	d, ok := m.defaults[key]
	if !ok {
		d = &defaultProvider{ready: make(chan struct{})}
		m.defaults[key] = d
		go func() { // for all who ask, so it outlives the call that was first
			defer close(d.ready)
			defer panics.Into(&d.err, "registering the default provider of package "+p.provides())
			d.ref, d.err = m.registerDefault(context.WithoutCancel(ctx), p)
		}()
	}
	m.mu.Unlock()
	select {
	case <-d.ready:
		return d.ref, d.err
	case <-ctx.Done():
		return "", rpcError(context.Cause(ctx))
	}
}

// registerDefault registers the default provider of a package as a resource.
func (m *monitor) registerDefault(ctx context.Context, p packageRequest) (string, error) {
	inputs := m.session.config.ForPackage(p.provides())
	p.PutInto(inputs, p.checksums)
	bag, err := m.session.values.Encode(ctx, inputs)
	if err != nil {
		return "", rpcError(err)
	}
	reg := engine.Registration{
		Type: token.ProviderType(p.provides()), Name: p.defaultName(), Custom: true, Inputs: bag,
	}
	reply, err := m.register(ctx, reg)
	if err := m.refusal(reply, err); err != nil {
		return "", err
	}
	if reply.Result != engine.ResultSuccess {
		return "", &toldError{status.Newf(codes.Unknown, "the default provider of package %s could not be set up",
			p.provides())}
	}
	return m.remember(ctx, reply, inputs)
}

// remember keeps the configuration of a registered provider for the calls that the monitor itself makes, and gives its
// reference.
func (m *monitor) remember(ctx context.Context, reply engine.Reply, inputs resource.PropertyMap) (string, error) {
	ref, err := token.NewReference(reply.URN, resource.ID(reply.ID))
	if err != nil {
		return "", rpcError(err)
	}
	config, err := m.session.values.Decode(ctx, reply.Object)
	if err != nil {
		return "", rpcError(err)
	}
	if internal, ok := inputs[pluginhost.InternalKey]; ok {
		config = config.Copy()
		config[pluginhost.InternalKey] = internal
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.configs[ref.String()] = config
	return ref.String(), nil
}

// running gives the configured provider behind a reference.
func (m *monitor) running(ctx context.Context, ref string) (*pluginhost.Provider, error) {
	m.mu.Lock()
	config, ok := m.configs[ref]
	m.mu.Unlock()
	if !ok {
		return nil, status.Errorf(codes.NotFound, "provider %s is not registered", ref)
	}
	p, err := m.session.provider(ctx, ref, config)
	if err != nil {
		return nil, rpcError(err)
	}
	return p, nil
}

// register asks the Run for a resource.
func (m *monitor) register(ctx context.Context, reg engine.Registration) (engine.Reply, error) {
	reg.Digest = m.session.digest(withoutPosition(reg))
	return m.ask(ctx, func(epoch, seq int) deployments.Message {
		return deployments.Message{Registered: &engine.Registered{Epoch: epoch, Seq: seq, Registration: reg}}
	})
}

// withoutPosition is what a goal's digest is taken over: values by their digests, nothing that changes from run to run.
func withoutPosition(reg engine.Registration) engine.Registration {
	reg.SourcePosition, reg.Digest = "", ""
	reg.Inputs = engine.Bag{Digest: reg.Inputs.Digest}
	reg.Trigger = engine.Bag{Digest: reg.Trigger.Digest}
	return reg
}

// defaultName is "default", and what tells this default provider of the package from others.
func (p packageRequest) defaultName() string {
	name, version := "default", p.Version
	if p.Parameter != nil {
		version = p.Parameter.Version
	}
	if v, err := semver.ParseTolerant(version); err == nil && version != "" {
		name += fmt.Sprintf("_%d_%d_%d", v.Major, v.Minor, v.Patch)
		for _, pre := range v.Pre {
			name += "_" + pre.String()
		}
		for _, build := range v.Build {
			name += "_" + build
		}
	}
	if p.DownloadURL != "" {
		name += "_" + string(tokens.IntoQName(p.DownloadURL))
	}
	return name
}
