package monitor

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/google/uuid"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// packageRequest is the package that a call is for, and where its plugin comes from.
type packageRequest struct {
	pluginhost.Package
	checksums map[string][]byte
	extension engine.Bag // empty, or the extension of the package that the call is for
}

// provides returns the package whose resources are served: the parameterised one, if there is a parameter.
func (p packageRequest) provides() string {
	if p.Parameter != nil {
		return p.Parameter.Name
	}
	return p.Name
}

// packageFields are the fields of requests that say which plugin serves them.
type packageFields interface {
	GetVersion() string
	GetPluginDownloadURL() string
	GetPluginChecksums() map[string][]byte
	GetPackageRef() string
}

// request returns the package that a call is for.
func (m *Monitor) request(pkg tokens.Package, r packageFields) (packageRequest, error) {
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

// maxPackageBytes bounds the packages that a program registers, as JSON.
const maxPackageBytes = 64 << 20

// RegisterPackage returns a reference to a package; equal packages have equal references.
func (m *Monitor) RegisterPackage(
	ctx context.Context, req *pulumirpc.RegisterPackageRequest,
) (*pulumirpc.RegisterPackageResponse, error) {
	resp, err := m.registerPackage(ctx, req)
	return resp, m.refuse(ctx, err, engine.Refused{})
}

func (m *Monitor) registerPackage(
	ctx context.Context, req *pulumirpc.RegisterPackageRequest,
) (*pulumirpc.RegisterPackageResponse, error) {
	if req.GetName() == "" {
		return nil, status.Error(codes.InvalidArgument, "a package needs a name")
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
	var err error
	if p.extension, err = m.extension(ctx, req); err != nil {
		return nil, err
	}
	text, err := json.Marshal(struct {
		Package   pluginhost.Package
		Checksums map[string][]byte
		Extension string `json:",omitempty"`
	}{p.Package, p.checksums, p.extension.Digest})
	if err != nil {
		return nil, rpcError(err)
	}
	ref := uuid.NewSHA1(uuid.NameSpaceOID, text).String()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.packages[ref]; !known {
		if m.packageBytes+len(text) > maxPackageBytes {
			return nil, status.Errorf(codes.ResourceExhausted, "the packages of the program, with their parameters, have "+
				"more than %d bytes", maxPackageBytes)
		}
		m.packageBytes += len(text)
	}
	m.packages[ref] = p
	return &pulumirpc.RegisterPackageResponse{Ref: ref}, nil
}

// extension returns the bag of the extension that a package is; an empty one if it is none.
func (m *Monitor) extension(ctx context.Context, req *pulumirpc.RegisterPackageRequest) (engine.Bag, error) {
	e := req.GetExtension()
	if e == nil {
		return engine.Bag{}, nil
	}
	if e.GetName() == "" {
		return engine.Bag{}, status.Errorf(codes.InvalidArgument, "an extension of package %s needs a name", req.GetName())
	}
	if _, err := semver.ParseTolerant(e.GetVersion()); err != nil {
		return engine.Bag{}, status.Errorf(codes.InvalidArgument, "version %q of extension %s of package %s: %v",
			e.GetVersion(), e.GetName(), req.GetName(), err)
	}
	bag, err := m.values.EncodeExtension(ctx, apitype.Extension{
		Name: e.GetName(), Version: e.GetVersion(), Value: e.GetValue(),
	})
	return bag, rpcError(err)
}

// requiredBy returns packages by the name that their resources have, which need not be that of the plugin.
func requiredBy(packages []pluginhost.Package) map[string]pluginhost.Package {
	required := map[string]pluginhost.Package{}
	for _, p := range packages {
		required[packageRequest{Package: p}.provides()] = p
	}
	return required
}

// complete sets what the request leaves open from the program's requirements.
func (m *Monitor) complete(p packageRequest) packageRequest {
	required, ok := m.required[p.provides()]
	if !ok {
		return p
	}
	if p.Version == "" {
		p.Version = required.Version
	}
	if p.DownloadURL == "" {
		p.DownloadURL = strings.TrimSuffix(required.DownloadURL, "/")
	}
	if p.checksums == nil {
		p.checksums = required.Checksums
	}
	if p.Parameter == nil && required.Parameter != nil { // what was asked for is a package of another one's plugin
		p.Name, p.Version, p.Parameter = required.Name, required.Version, required.Parameter
	}
	return p
}

// defaultProvider is a default provider. Its fields are set once ready is closed.
type defaultProvider struct {
	ready chan struct{}
	ref   string
	err   error
}

// provider returns the reference of the provider that a call names, or else of the package's default provider.
func (m *Monitor) provider(ctx context.Context, named string, p packageRequest) (string, error) {
	if named != "" {
		if _, err := token.ParseReference(named); err != nil {
			return "", status.Errorf(codes.InvalidArgument, "provider %q: %v", named, err)
		}
		return named, nil
	}
	p = m.complete(p)
	if m.config.DeniesDefaultProvider(p.provides()) {
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
		go func() { // shared by all calls, so it must not end with the first one
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
func (m *Monitor) registerDefault(ctx context.Context, p packageRequest) (string, error) {
	inputs := m.config.ForPackage(p.provides())
	p.PutInto(inputs, p.checksums)
	bag, err := m.values.Encode(ctx, inputs)
	if err != nil {
		return "", rpcError(err)
	}
	reg := engine.Registration{
		Type: token.ProviderType(p.provides()), Name: p.defaultName(), Custom: true, Inputs: bag,
	}
	// The package of a function can be such that its default provider has no valid URN.
	if err := token.CheckName(string(reg.Type), reg.Name); err != nil {
		return "", status.Error(codes.InvalidArgument, err.Error())
	}
	reply, err := m.register(ctx, reg)
	if err := m.replyError(reply, err); err != nil {
		return "", err
	}
	if reply.Result != engine.ResultSuccess {
		return "", &endingError{status.Newf(codes.Unknown, "the default provider of package %s could not be set up",
			p.provides())}
	}
	// A method that gets the resource resolves the reference to its provider, too.
	m.registry.put(reply.URN, registered{custom: true, id: reply.ID, object: reply.Object})
	return m.keepConfig(ctx, reply, inputs)
}

// keepConfig keeps the configuration of a registered provider for the calls that the monitor itself makes, and returns
// the provider's reference.
func (m *Monitor) keepConfig(ctx context.Context, reply engine.Reply, inputs resource.PropertyMap) (string, error) {
	ref, err := token.NewReference(reply.URN, resource.ID(reply.ID))
	if err != nil {
		return "", rpcError(err)
	}
	config, err := m.values.Decode(ctx, reply.Object)
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

// configured returns the configured provider with a reference, extended unless the extension is empty.
func (m *Monitor) configured(ctx context.Context, ref string, extension engine.Bag) (*pluginhost.Provider, error) {
	m.mu.Lock()
	config, ok := m.configs[ref]
	m.mu.Unlock()
	if !ok {
		return nil, status.Errorf(codes.NotFound, "provider %s is not registered", ref)
	}
	p, err := m.host.Provider(ctx, ref, config, extension)
	if err != nil {
		return nil, rpcError(err)
	}
	return p, nil
}

// register sends a registration to the Run and returns its reply.
func (m *Monitor) register(ctx context.Context, reg engine.Registration) (engine.Reply, error) {
	reg.Digest = m.digest(withoutPosition(reg))
	at := ""
	if !reg.Custom {
		at = time.Now().UTC().Format(time.RFC3339Nano)
	}
	return m.call(ctx, func(epoch, seq int) deployments.Message {
		return deployments.Message{Registered: &engine.Registered{Epoch: epoch, Seq: seq, At: at, Registration: reg}}
	})
}

// digest returns a keyed digest of v as JSON.
func (m *Monitor) digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // every header can be encoded
	}
	mac := hmac.New(sha256.New, m.values.Key)
	mac.Write(data)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// withoutPosition returns what the digest of a registration covers: values by their digests, and nothing that differs
// from one run of the program to the next.
func withoutPosition(reg engine.Registration) engine.Registration {
	reg.SourcePosition, reg.Digest = "", ""
	reg.Inputs = engine.Bag{Digest: reg.Inputs.Digest}
	reg.Trigger = engine.Bag{Digest: reg.Trigger.Digest}
	reg.Extension = engine.Bag{Digest: reg.Extension.Digest}
	return reg
}

// defaultName returns "default", and what distinguishes this default provider of the package from others.
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
