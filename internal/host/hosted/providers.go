package hosted

import (
	"context"
	"errors"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	"google.golang.org/grpc/codes"
)

// Providers are the providers of an update: started, configured, and each with the account that it is for.
type Providers struct {
	host    *pluginhost.Host
	values  *bags.Codec
	limits  *ratelimit.Accounts         // nil: calls are not limited
	install func(context.Context) error // what the program imports, for its dynamic providers
	// accounts caches results of Account, by reference and digest of the inputs.
	accounts sync.Map
}

// NewProviders returns the providers of an update. A host starts their plugins, and limits, if not nil, limits their
// calls. Before a dynamic provider starts, install installs what the program imports.
func NewProviders(
	host *pluginhost.Host, values *bags.Codec, limits *ratelimit.Accounts, install func(context.Context) error,
) *Providers {
	return &Providers{host: host, values: values, limits: limits, install: install}
}

// Account is a provider's configuration and the limiter of its calls.
type Account struct {
	Reference providers.Reference
	pkg       pluginhost.Package
	Config    resource.PropertyMap
	Digest    string // of config
	Limiter   *ratelimit.Limiter
}

// Account returns the account of the provider that a command names. It is cached, because every step needs it.
func (s *Providers) Account(ctx context.Context, p *engine.Provider) (*Account, error) {
	if p == nil {
		return nil, failure.Internal(deployments.Errorf(deployments.CodeInternal, "a resource has no provider"))
	}
	name := p.Ref + "#" + p.Inputs.Digest
	if known, ok := s.accounts.Load(name); ok {
		return known.(*Account), nil
	}
	inputs, err := s.values.Decode(ctx, p.Inputs)
	if err != nil {
		return nil, failure.Internal(err)
	}
	a, err := s.account(p.Ref, inputs)
	if err == nil {
		s.accounts.Store(name, a)
	}
	return a, err
}

// account returns the account of the provider with a reference and these inputs.
func (s *Providers) account(reference string, inputs resource.PropertyMap) (a *Account, err error) {
	a = &Account{Config: pluginhost.ProviderConfig(inputs)}
	if a.Reference, err = token.ParseReference(reference); err != nil {
		return nil, failure.Internal(deployments.Errorf(deployments.CodeInternal, "provider %q: %w", reference, err))
	}
	if a.pkg, err = pluginhost.PackageOf(a.Reference.URN().Type(), inputs); err != nil {
		return nil, err
	}
	if a.Digest, err = bags.Digest(s.values.Key, a.Config); err != nil || s.limits == nil {
		return a, err
	}
	a.Limiter, err = s.limits.Limiter(a.pkg.Name, a.Config)
	return a, err
}

// Of returns the provider that a command names, configured.
func (s *Providers) Of(ctx context.Context, p *engine.Provider) (*pluginhost.Provider, error) {
	a, err := s.Account(ctx, p)
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, a, p.Extension)
}

// Configured returns the provider with a reference and these inputs, configured.
func (s *Providers) Configured(
	ctx context.Context, reference string, inputs resource.PropertyMap, extension engine.Bag,
) (*pluginhost.Provider, error) {
	a, err := s.account(reference, inputs)
	if err != nil {
		return nil, err
	}
	return s.Open(ctx, a, extension)
}

// Open returns the provider of an account, configured and extended. Both may be repeated: they change nothing outside
// the plugin.
func (s *Providers) Open(ctx context.Context, a *Account, extension engine.Bag) (*pluginhost.Provider, error) {
	if pluginhost.IsDynamic(a.pkg.Name) {
		if err := s.install(ctx); err != nil {
			return nil, err
		}
	}
	p, err := s.host.Provider(ctx, a.pkg, a.Reference.String()+"#"+a.Digest)
	if err != nil {
		return nil, err
	}
	u, id := a.Reference.URN(), a.Reference.ID()
	name, t := u.Name(), u.Type()
	_, err = p.Configure(ctx, plugin.ConfigureRequest{URN: &u, Name: &name, Type: &t, ID: &id, Inputs: a.Config})
	if err != nil || extension.Empty() {
		return p, err
	}
	return p, p.Extend(ctx, extension.Digest, func(ctx context.Context) (apitype.Extension, error) {
		e, err := s.values.DecodeExtension(ctx, extension)
		if deployments.CodeOf(err) == deployments.CodeFormat { // the state lacks it, which fails the resource
			return e, err
		}
		return e, failure.Internal(err)
	})
}

// Unconfigured returns a provider without a configuration, which can only check and compare configurations.
func (s *Providers) Unconfigured(
	ctx context.Context, t tokens.Type, inputs resource.PropertyMap,
) (*pluginhost.Provider, error) {
	pkg, err := pluginhost.PackageOf(t, inputs)
	if err != nil {
		return nil, err
	}
	return s.host.Provider(ctx, pkg, "")
}

// Retried makes a call that changes nothing, and repeats it if its provider dies or throttles it.
func Retried(ctx context.Context, call func() error) error {
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil || !IsTransient(err) || attempt == planAttempts {
			return err
		}
		if failure.Pause(ctx, failure.FirstRetry<<(2*(attempt-1))) != nil {
			return err
		}
	}
}

// IsTransient reports whether a call that changes nothing may succeed when it is repeated.
func IsTransient(err error) bool {
	if lost := (*pluginhost.LostError)(nil); errors.As(err, &lost) {
		return true
	}
	e, ok := rpcerror.FromError(err)
	if !ok {
		return false
	}
	switch e.Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return !pluginhost.TooLarge(err)
	default:
		return false
	}
}

// CheckedVersion is the version of the plugin for rules that are for some of its versions. A package that a plugin
// makes at run time, as the bridge to Terraform does, has another version than the package of that name for which the
// rules were checked; a version that is not known is no reason against a rule.
func (a *Account) CheckedVersion() string {
	if a.pkg.Parameter != nil {
		return ""
	}
	return a.pkg.Version
}

// planAttempts bounds the attempts of a call that changes nothing and whose provider dies or throttles it.
const planAttempts = 3
