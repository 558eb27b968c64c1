package activities

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/policies"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// policyPack is a policy pack of a session. It starts with its first call, and again if its process has ended. One call
// is made to it at a time, as Pulumi's engine does: its policies may keep something from one resource to the next.
type policyPack struct {
	session *session
	dir     string
	config  string // see deployments.PolicyPack

	calling  sync.Mutex
	prepared bool // its dependencies are installed
	analyzer *pluginhost.Analyzer
	info     plugin.AnalyzerInfo
}

// newPolicyPacks returns the policy packs of a session's request.
func newPolicyPacks(s *session) []*policyPack {
	var packs []*policyPack
	for _, p := range s.request.PolicyPacks {
		packs = append(packs, &policyPack{session: s, dir: filepath.Join(s.place, filepath.FromSlash(p.Dir)),
			config: p.Config})
	}
	return packs
}

// loadPolicyPacks starts the policy packs, so that an update whose packs cannot be started does not begin.
func (s *session) loadPolicyPacks(ctx context.Context) error {
	if len(s.policyPacks) == 0 {
		return nil
	}
	s.log.Put(apitype.EngineEvent{Timestamp: int(time.Now().Unix()), PolicyLoadEvent: &apitype.PolicyLoadEvent{}})
	defer s.phases.begin("loading policy packs")()
	var loading sync.WaitGroup
	errs := make([]error, len(s.policyPacks))
	for i, p := range s.policyPacks {
		loading.Go(func() {
			errs[i] = panics.Do("loading a policy pack", func() error {
				return p.use(ctx, func(*pluginhost.Analyzer) error { return nil })
			})
		})
	}
	loading.Wait()
	return errors.Join(errs...)
}

// use makes calls to the policy pack.
func (p *policyPack) use(ctx context.Context, call func(*pluginhost.Analyzer) error) error {
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
func (p *policyPack) start(ctx context.Context) error {
	s := p.session
	if !p.prepared {
		if err := s.installPolicyPack(ctx, p.dir); err != nil {
			return p.invalid(err)
		}
		p.prepared = true
	}
	head, err := s.store.Head(ctx, s.update.StackName)
	if err != nil {
		return failure.Internal(err)
	}
	analyzer, err := s.host.Analyzer(ctx, pluginhost.PolicyPack{
		Dir: p.dir, Organization: s.update.Organization, Project: s.update.Project, Stack: s.update.Stack,
		Tags: head.Tags, SecretKeys: s.config.SecretKeys(), DryRun: s.request.DryRun,
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

func (p *policyPack) configure(ctx context.Context, analyzer *pluginhost.Analyzer) error {
	if !p.info.SupportsConfig {
		if p.config != "" {
			return errors.New("it supports no configuration: leave out --policy-pack-config")
		}
		return nil
	}
	given, err := policies.Parse(p.config)
	if err != nil {
		return err
	}
	config, err := policies.Complete(p.info, given)
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
func (p *policyPack) invalid(err error) error {
	var lost *pluginhost.LostError
	_, internal := failure.OfService(err)
	if err == nil || errors.As(err, &lost) || internal || failure.Retryable(err) {
		return err
	}
	return deployments.Errorf(deployments.CodeInvalid, "%s: %s", p.called(),
		p.session.inProject(pluginhost.ErrorText(err)))
}

// called names the policy pack for a user. One that did not start has not said its name.
func (p *policyPack) called() string {
	packs, name := p.session.policyPacks, filepath.Base(p.dir)
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

// installPolicyPack installs the packages that a policy pack imports.
func (s *session) installPolicyPack(ctx context.Context, dir string) error {
	runtime, err := s.host.PolicyPackRuntime(dir)
	if err != nil {
		return err
	}
	return s.installSource(ctx, dir, runtime, func(ctx context.Context) error {
		return s.host.InstallPolicyPack(ctx, dir)
	})
}
