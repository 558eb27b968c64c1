package session

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/host/assets"
	"github.com/deployctl/deployctl/internal/host/autonaming"
	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/host/engineprovider"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/host/plan"
	"github.com/deployctl/deployctl/internal/host/policies"
	"github.com/deployctl/deployctl/internal/host/step"
	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// Hosted returns the session of an update that this worker hosts, and rebuilds it if it was lost. It fails with
// ErrorNotStarted if another worker hosts the update. That of a preview is not rebuilt, because no head says who hosts
// it: the preview is claimed again.
func (a *Sessions) Hosted(ctx context.Context, u deployments.UpdateName, base int) (*Session, error) {
	if s := a.Find(u); s != nil {
		return s.Await(ctx)
	}
	elsewhere := failure.NotStarted("update " + u.String() + " is not hosted by this worker")
	if u.Number() == 0 {
		return nil, elsewhere
	}
	claim, err := a.Store.ClaimOf(ctx, u)
	if err != nil && deployments.CodeOf(err) != deployments.CodeConflict {
		return nil, err
	}
	if err != nil || statestore.HostOf(claim.Writer) != a.Worker {
		return nil, elsewhere
	}
	switch queue, err := a.Elsewhere(ctx, u.Organization); {
	case err != nil:
		return nil, err
	case queue != "":
		return nil, failure.NotStarted("updates of " + u.Organization + " are hosted by its own workers alone")
	}
	request, err := a.Store.Updates.Request(ctx, u)
	if err != nil {
		return nil, err
	}
	return a.Open(ctx, u, base, request, true)
}

// Find returns the session of an update, which need not be filled yet; nil if there is none.
func (a *Sessions) Find(u deployments.UpdateName) *Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all[u.String()]
}

// Open returns the session of an update, and creates it if there is none; again: the update may have had one, here or
// elsewhere.
func (a *Sessions) Open(
	ctx context.Context, u deployments.UpdateName, base int, request deployments.UpdateRequest, again bool,
) (*Session, error) {
	of := step.Requested(u, request)
	if s := a.Find(u); s != nil && step.Requested(u, s.request) != of {
		a.Forget(ctx, u)
	}
	a.mu.Lock()
	s, ok := a.all[u.String()]
	if !ok {
		s = &Session{
			spent: a.answers.SpentBy(of), again: again && u.Number() > 0,
			update: u, base: base, request: request, store: a.Store, bundles: a.bundles,
			granted: a.grant(u.Organization, askedParallel(request)),
			config:  request.Config,
			ready:   make(chan struct{}), since: time.Now(),
		}
		a.all[u.String()] = s
		go a.open(context.WithoutCancel(ctx), s)
	}
	a.mu.Unlock()
	return s.Await(ctx)
}

// open fills a session, and removes it if that fails.
func (a *Sessions) open(ctx context.Context, s *Session) {
	defer close(s.ready)
	if s.err = panics.Do("opening update "+s.update.String(), func() error { return a.fill(ctx, s) }); s.err == nil {
		return
	}
	a.mu.Lock()
	if a.all[s.update.String()] == s {
		delete(a.all, s.update.String())
	}
	a.mu.Unlock()
	s.close(ctx)
}

// fill makes what the steps of an update share: what the update asks for, what the store has of it, its files, and the
// processes of its plugins. close undoes what was made when it fails.
func (a *Sessions) fill(ctx context.Context, s *Session) error {
	if err := s.readConfig(); err != nil {
		return err
	}
	if err := a.fillFromStore(ctx, s); err != nil {
		return err
	}
	if err := a.fillDirectory(ctx, s); err != nil {
		return err
	}
	if err := a.openTokens(ctx, s); err != nil {
		return err
	}
	s.log = eventlog.NewOutput(a.Store.Updates, s.update, s.secretTexts())
	s.phases.tell = s.log.Phase
	if err := a.openHost(s); err != nil {
		return err
	}
	s.providers = hosted.NewProviders(s.host, s.values, a.accounts, s.installDependencies)
	s.assets = assets.New(s.host.Start)
	s.openPolicyPacks()
	a.openSteps(s)
	s.tokens.keep(ctx)
	return nil
}

// readConfig reads what the configuration of the stack says about steps.
func (s *Session) readConfig() (err error) {
	if s.own, err = stackkeys.Read(func(key string) string { return s.config[key].Value }); err != nil {
		return err
	}
	s.names, err = autonaming.Read(s.config, autonaming.Stack{
		Organization: s.update.Organization, Project: s.update.Project, Stack: s.update.Stack,
	})
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	return nil
}

// fillFromStore reads what the store has of the update and its stack.
func (a *Sessions) fillFromStore(ctx context.Context, s *Session) (err error) {
	if s.again {
		if s.answered, err = a.Store.Updates.Answered(ctx, s.update); err != nil {
			return err
		}
	}
	if err = a.takeSettled(ctx, s); err != nil {
		return err
	}
	scope := statestore.Scope{Update: s.update, Base: s.base, Secrets: s.request.Secrets}
	if s.values, err = a.Store.Bags(ctx, scope); err != nil {
		return err
	}
	s.values.Secret = s.secretsOfProfile()
	if s.stackID, err = a.Store.StackID(ctx, s.update.StackName); err != nil {
		return err
	}
	s.identity, err = a.Store.Identities.Of(ctx, s.update.StackName)
	return err
}

// fillDirectory unpacks the update's bundle in its sandbox.
func (a *Sessions) fillDirectory(ctx context.Context, s *Session) (err error) {
	if s.box, err = a.Sandbox.Box(s.update.Organization, a.bundles.Rooms()); err != nil {
		return bundlecache.Unavailable(err)
	}
	s.place = a.bundles.Entry(s.update.StackName, s.request.Bundle)
	if err = s.pin(ctx, s.place); err != nil {
		return err
	}
	go a.bundles.GC(time.Now())
	s.dir, s.project, err = a.unpack(ctx, s, s.place)
	return err
}

// openHost makes the host of the update's program and plugins.
func (a *Sessions) openHost(s *Session) error {
	env := append(process.Inherit(s.environment(), a.Env), provider.StackVariable+"="+s.identity.Owner)
	env = append(env, s.box.Environment()...)
	fetch, err := a.openPlugins(s, s.request.Environment)
	if err != nil {
		return err
	}
	s.host, err = pluginhost.New(pluginhost.Options{
		RootDir: s.dir, Bundle: s.place, Project: s.project, Config: s.config.Reveal(), Log: s.hear,
		Phase: s.phases.begin,
		Env:   env, Box: s.box, Spares: processesOf(s.request), Reserve: a.reserve, Fetch: fetch,
		Builtin: map[string]func() pulumirpc.ResourceProviderServer{
			engineprovider.Package: func() pulumirpc.ResourceProviderServer {
				return engineprovider.New(s.update, s.request, s.store, s.print)
			},
		},
		Included: a.Included, Install: s.installSource, Intake: intake.New(a.messages, s.update.Organization),
	})
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	return nil
}

// openPolicyPacks makes the policy packs of the update.
func (s *Session) openPolicyPacks() {
	s.policyPacks = policies.NewPacks(policies.PackOptions{
		Stack: s.update.StackName, Packs: s.request.PolicyPacks, Place: s.place, DryRun: s.request.DryRun,
		Values: s.values, Plugins: s.host, SecretKeys: s.config.SecretKeys(), Install: s.installPolicyPack,
		InProject: s.inProject, Begin: s.phases.begin, Put: s.log.Put,
		Tags: func(ctx context.Context) (map[string]string, error) {
			head, err := s.store.Head(ctx, s.update.StackName)
			return head.Tags, err
		},
	})
}

// preparedHeaders bounds the resources of which prepare starts the providers: providers come before what they manage.
const preparedHeaders = 500

// Prepare begins what the update will need, while its Run starts: it reads the state and, unless a program, targets or
// excludes decide what is needed, starts the providers. Whoever needs them meets, and reports, the errors.
func (s *Session) Prepare(ctx context.Context) {
	_ = panics.Do("preparing "+s.update.String(), func() error {
		base, err := s.store.Checkpoint(ctx, s.update.StackName, s.base, s.request.Secrets)
		if r := s.request; err != nil || r.HasProgram() || len(r.Targets)+len(r.Excludes) > 0 {
			return err
		}
		used := map[string]bool{}
		states := base.Headers(0, preparedHeaders).States
		for _, state := range slices.Backward(states) {
			if !token.IsProvider(state.Type) || !used[snapshot.JoinReference(state.URN, state.ID)] {
				used[state.Provider] = true
				continue
			}
			inputs, err := s.values.Decode(ctx, state.Inputs)
			if err != nil {
				return err
			}
			pkg, err := pluginhost.PackageOf(state.Type, inputs)
			if err != nil {
				return err
			}
			if !pluginhost.IsDynamic(pkg.Name) { // its dependencies may have to be installed first
				s.host.Prepare(pkg)
			}
		}
		return nil
	})
}

// reserved is how many processes are started between two updates for the next one: a provider and a language host.
const reserved = 2

// processesOf returns how many processes an update certainly starts: a provider, and a language host if it has a
// program.
func processesOf(r deployments.UpdateRequest) int {
	if r.HasProgram() {
		return 2
	}
	return 1
}

// Await waits until the session is filled.
func (s *Session) Await(ctx context.Context) (*Session, error) {
	select {
	case <-s.ready:
		return s, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// End ends a session.
func (a *Sessions) End(ctx context.Context, u deployments.UpdateName) {
	a.mu.Lock()
	s, ok := a.all[u.String()]
	delete(a.all, u.String())
	a.mu.Unlock()
	if ok {
		s.end(ctx)
		a.reserve.Fill(reserved)
	}
}

// end closes a session that is no longer registered. It waits until the session is filled, so that processes that are
// just starting are ended, too.
func (s *Session) end(ctx context.Context) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		go func() {
			<-s.ready
			s.end(context.WithoutCancel(ctx))
		}()
		return
	}
	if s.err == nil { // after an error, open has closed it
		s.close(ctx)
	}
}

// newCatalogue returns the catalogue of a session; nil if there is none.
func (a *Sessions) newCatalogue() settlerule.Catalogue {
	if a.Catalogue == nil {
		return nil
	}
	return a.Catalogue()
}

// openSteps makes what plans and steps of the update share.
func (a *Sessions) openSteps(s *Session) {
	s.facts = &hosted.Update{
		Name: s.update, Base: s.base, Request: s.request, StackID: s.stackID, Identity: s.identity, Store: s.store,
		Values: s.values, Own: s.own, Names: s.names, Providers: s.providers, Host: sessionHost{s},
	}
	rules := lookup.New(s.facts, a.newCatalogue())
	s.steps = step.New(step.Options{
		Update: s.facts, Rules: rules, Compared: a.compared, Answers: a.answers, Spent: s.spent, Answered: s.answered,
		Parallel: s.granted, CountSettled: a.CountSettled,
	})
	s.plans = plan.New(plan.Options{
		Update: s.facts, Rules: rules, Compared: a.compared, Packs: s.policyPacks, Look: s.steps.LookFor,
	})
}

// sessionHost implements Host for a session.
type sessionHost struct{ *Session }

// Tell prints a message about a resource.
func (h sessionHost) Tell(severity diag.Severity, u urn.URN, text string) { h.tell(severity, u, text) }

// Redactor returns a redactor of the secrets of the update and of bags.
func (h sessionHost) Redactor(ctx context.Context, bags ...engine.Bag) failure.Redactor {
	return h.redactor(ctx, bags...)
}

// OpenViews lets a provider publish steps of views during a call.
func (h sessionHost) OpenViews(preview bool) *pluginhost.Views { return h.host.OpenViews(preview) }

// ReplyEarly delivers a reply to the program.
func (h sessionHost) ReplyEarly(ctx context.Context, r engine.Reply) (bool, *deployments.Messages) {
	return h.replyEarly(ctx, r)
}

// Elsewhere returns the task queue of the workers that host an organization's updates, or "" if this worker is one of
// them.
func (a *Sessions) Elsewhere(ctx context.Context, organization string) (string, error) {
	if slices.Contains(a.Organizations, organization) {
		return "", nil
	}
	queue, err := a.Store.Organizations.TaskQueue(ctx, organization)
	if err == nil && queue == a.Store.Organizations.SharedTaskQueue() && len(a.Organizations) == 0 {
		queue = ""
	}
	return queue, err
}

// Updates returns the updates of which this worker has, or has had, a session. It has kept answers of some that it has
// forgotten: a step may end after that.
func (a *Sessions) Updates() []deployments.UpdateName {
	return slices.Collect(maps.Keys(a.answers.Updates()))
}

// HostedSince returns since when this worker has a session of each update that it hosts.
func (a *Sessions) HostedSince() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	var since []time.Time
	for _, s := range a.all {
		since = append(since, s.since)
	}
	return since
}

// Forget ends the session of an update whose workflow is closed, and forgets which of its steps were answered.
func (a *Sessions) Forget(ctx context.Context, u deployments.UpdateName) {
	a.End(ctx, u)
	a.answers.Forget(u)
}
