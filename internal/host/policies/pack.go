package policies

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// Packs are the policy packs of an update: they check what its program registers, and its stack.
type Packs struct {
	options PackOptions
	packs   []*pack
}

// PackOptions are what policy packs need of the update's session.
type PackOptions struct {
	Stack   deployments.StackName
	Packs   []deployments.PolicyPack
	Place   string // the directory of the bundle, which has the packs
	DryRun  bool
	Values  *bags.Codec
	Plugins *pluginhost.Host
	// SecretKeys are the keys of the configuration whose values are secret.
	SecretKeys []string
	// Tags returns the tags of the stack.
	Tags func(context.Context) (map[string]string, error)
	// Install installs what the pack in a directory imports.
	Install func(ctx context.Context, dir string) error
	// InProject writes paths in a text as the user knows them.
	InProject func(text string) string
	// Begin begins a phase, which ends when the function that it returns is called.
	Begin func(phase string) (end func())
	// Put writes an event to the log of the update.
	Put func(apitype.EngineEvent)
}

// NewPacks returns the policy packs of an update.
func NewPacks(o PackOptions) *Packs {
	all := &Packs{options: o}
	for _, p := range o.Packs {
		all.packs = append(all.packs, &pack{of: all, dir: filepath.Join(o.Place, filepath.FromSlash(p.Dir)),
			config: p.Config})
	}
	return all
}

// Load starts the policy packs, so that an update whose packs cannot be started does not begin.
func (a *Packs) Load(ctx context.Context) error {
	if len(a.packs) == 0 {
		return nil
	}
	a.put(apitype.EngineEvent{PolicyLoadEvent: &apitype.PolicyLoadEvent{}})
	defer a.options.Begin("loading policy packs")()
	var loading sync.WaitGroup
	errs := make([]error, len(a.packs))
	for i, p := range a.packs {
		loading.Go(func() {
			errs[i] = panics.Do("loading a policy pack", func() error {
				return p.use(ctx, func(*pluginhost.Analyzer) error { return nil })
			})
		})
	}
	loading.Wait()
	return errors.Join(errs...)
}

// pack is a policy pack of an update. It starts with its first call, and again if its process has ended. One call
// is made to it at a time, as Pulumi's engine does: its policies may keep something from one resource to the next.
type pack struct {
	of     *Packs
	dir    string
	config string // see deployments.PolicyPack

	calling  sync.Mutex
	prepared bool // its dependencies are installed
	analyzer *pluginhost.Analyzer
	info     plugin.AnalyzerInfo
}

// use makes calls to the policy pack.
func (p *pack) use(ctx context.Context, call func(*pluginhost.Analyzer) error) error {
	p.calling.Lock()
	defer p.calling.Unlock()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if p.analyzer == nil || !p.analyzer.Alive() {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	// What a pack answers is not trusted: the SDK panics on some of it.
	err := panics.Do("calling a policy pack", func() error { return call(p.analyzer) })
	return p.invalid(p.analyzer.Explain(ctx, err))
}

// start starts and configures the policy pack. An error of the pack is CodeInvalid: a repetition would fail, too.
func (p *pack) start(ctx context.Context) error {
	o := p.of.options
	if !p.prepared {
		if err := o.Install(ctx, p.dir); err != nil {
			return p.invalid(err)
		}
		p.prepared = true
	}
	tags, err := o.Tags(ctx)
	if err != nil {
		return failure.Internal(err)
	}
	analyzer, err := o.Plugins.Analyzer(ctx, pluginhost.PolicyPack{
		Dir: p.dir, Organization: o.Stack.Organization, Project: o.Stack.Project, Stack: o.Stack.Stack,
		Tags: tags, SecretKeys: o.SecretKeys, DryRun: o.DryRun,
	})
	if err != nil {
		return p.invalid(err)
	}
	if p.info, err = analyzer.GetAnalyzerInfo(ctx); err == nil {
		if analyzer.Version != "" {
			p.info.Version = analyzer.Version
		}
		err = p.configure(ctx, analyzer)
	}
	if err != nil {
		err = analyzer.Explain(ctx, err)
		_ = analyzer.Close()
		return p.invalid(err)
	}
	p.analyzer = analyzer
	return nil
}

func (p *pack) configure(ctx context.Context, analyzer *pluginhost.Analyzer) error {
	if !p.info.SupportsConfig {
		if p.config != "" {
			return errors.New("it supports no configuration: leave out --policy-pack-config")
		}
		return nil
	}
	given, err := Parse(p.config)
	if err != nil {
		return err
	}
	config, err := Complete(p.info, given)
	if err != nil {
		return err
	}
	if err := analyzer.Configure(ctx, config); err != nil {
		return err
	}
	for i, policy := range p.info.Policies {
		p.info.Policies[i].EnforcementLevel = config[policy.Name].EnforcementLevel
	}
	return nil
}

// invalid returns an error of the policy pack, as CodeInvalid with its name. That its process was lost, and errors of
// the service, stay known.
func (p *pack) invalid(err error) error {
	var lost *pluginhost.LostError
	_, internal := failure.OfService(err)
	if err == nil || errors.As(err, &lost) || internal || failure.Retryable(err) {
		return err
	}
	return deployments.Errorf(deployments.CodeInvalid, "%s: %s", p.called(),
		p.of.options.InProject(pluginhost.ErrorText(err)))
}

// called names the policy pack for a user. One that did not start has not said its name.
func (p *pack) called() string {
	packs, name := p.of.packs, filepath.Base(p.dir)
	_, numbered := strconv.Atoi(name) // by an older client
	switch {
	case p.info.Name != "":
		return "policy pack " + p.info.Name
	case numbered != nil:
		return "policy pack " + name
	case len(packs) < 2:
		return "the policy pack"
	}
	return fmt.Sprintf("policy pack %d of %d", slices.Index(packs, p)+1, len(packs))
}
