package activities

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/host/assets"
	"github.com/deployctl/deployctl/internal/host/autonaming"
	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/statestore"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// hosted returns the session of an update that this worker hosts, and rebuilds it if it was lost. It fails with
// ErrorNotStarted if another worker hosts the update. That of a preview is not rebuilt, because no head says who hosts
// it: the preview is claimed again.
func (a *Activities) hosted(ctx context.Context, u deployments.UpdateName, base int) (*session, error) {
	if s := a.find(u); s != nil {
		return s.await(ctx)
	}
	elsewhere := notStarted("update " + u.String() + " is not hosted by this worker")
	if u.Number() == 0 {
		return nil, elsewhere
	}
	claim, err := a.Store.ClaimOf(ctx, u)
	if err != nil && deployments.CodeOf(err) != deployments.CodeConflict {
		return nil, err
	}
	if err != nil || HostOf(claim.Writer) != a.Worker {
		return nil, elsewhere
	}
	switch queue, err := a.elsewhere(ctx, u.Organization); {
	case err != nil:
		return nil, err
	case queue != "":
		return nil, notStarted("updates of " + u.Organization + " are hosted by its own workers alone")
	}
	request, err := a.Store.Request(ctx, u)
	if err != nil {
		return nil, err
	}
	return a.host(ctx, u, base, request, true)
}

// writer returns the name of a claim's writer: the worker and the number of the claim.
func writer(worker string, epoch string) string { return worker + "#" + epoch }

// HostOf returns the task queue of the worker that made a claim, from the claim's writer.
func HostOf(writer string) string {
	worker, _, _ := strings.Cut(writer, "#")
	return worker
}

func (a *Activities) find(u deployments.UpdateName) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[u.String()]
}

// host returns the session of an update, and creates it if there is none; again: the update may have had one, here or
// elsewhere.
func (a *Activities) host(
	ctx context.Context, u deployments.UpdateName, base int, request deployments.UpdateRequest, again bool,
) (*session, error) {
	of := requested(u, request)
	if s := a.find(u); s != nil && requested(u, s.request) != of {
		Forget(ctx, a, u)
	}
	a.mu.Lock()
	s, ok := a.sessions[u.String()]
	if !ok {
		if a.spent[of] == nil {
			a.spent[of] = &sync.Map{}
		}
		s = &session{
			spent: a.spent[of], answers: a.answers, departure: &a.departure, again: again && u.Number() > 0,
			update: u, base: base, request: request, store: a.Store, bundles: a.bundles, limits: a.accounts,
			granted:  a.grant(u.Organization, askedParallel(request)),
			compared: a.compared, config: request.Config, catalogue: a.newCatalogue(), settled: a.CountSettled,
			ready: make(chan struct{}), since: time.Now(),
		}
		a.sessions[u.String()] = s
		go a.open(context.WithoutCancel(ctx), s)
	}
	a.mu.Unlock()
	return s.await(ctx)
}

// open fills a session, and removes it if that fails.
func (a *Activities) open(ctx context.Context, s *session) {
	defer close(s.ready)
	if s.err = panics.Do("opening update "+s.update.String(), func() error { return a.fill(ctx, s) }); s.err == nil {
		return
	}
	a.mu.Lock()
	if a.sessions[s.update.String()] == s {
		delete(a.sessions, s.update.String())
	}
	a.mu.Unlock()
	s.close(ctx)
}

// fill makes what the steps of an update share: what the update asks for, what the store has of it, its files, and the
// processes of its plugins. close undoes what was made when it fails.
func (a *Activities) fill(ctx context.Context, s *session) error {
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
	s.parallel = ratelimit.NewSemaphore(s.granted)
	s.log = eventlog.NewOutput(a.Store, s.update, s.secretTexts())
	s.phases.tell = s.log.Phase
	if err := a.openHost(s); err != nil {
		return err
	}
	s.assets = assets.New(s.host.Start)
	s.policyPacks = newPolicyPacks(s)
	s.tokens.keep(ctx)
	return nil
}

// readConfig reads what the configuration of the stack says about steps.
func (s *session) readConfig() (err error) {
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
func (a *Activities) fillFromStore(ctx context.Context, s *session) (err error) {
	if s.again {
		answered, err := a.Store.Answered(ctx, s.update)
		if err != nil {
			return err
		}
		for op, round := range answered {
			s.spend(op, round)
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
	s.identity, err = a.Store.StackIdentity(ctx, s.update.StackName)
	return err
}

// fillDirectory unpacks the update's bundle in its sandbox.
func (a *Activities) fillDirectory(ctx context.Context, s *session) (err error) {
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
func (a *Activities) openHost(s *session) error {
	env := append(Environment(s.environment(), a.Env), provider.StackVariable+"="+s.identity.Owner)
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
			enginePackage: func() pulumirpc.ResourceProviderServer { return &engineProvider{session: s} },
		},
		Included: a.Included, Install: s.installSource, Intake: intake.New(a.messages, s.update.Organization),
	})
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	return nil
}

// prepare begins what the update will need, while its Run starts: it reads the state and, unless a program, targets or
// excludes decide what is needed, starts the providers. Whoever needs them meets, and reports, the errors.
func (s *session) prepare(ctx context.Context) {
	_ = panics.Do("preparing "+s.update.String(), func() error {
		base, err := s.store.Checkpoint(ctx, s.update.StackName, s.base, s.request.Secrets)
		if r := s.request; err != nil || r.HasProgram() || len(r.Targets)+len(r.Excludes) > 0 {
			return err
		}
		used := map[string]bool{}
		states := base.Headers(0, maxHeaders).States // whose providers come before them
		for _, state := range slices.Backward(states) {
			if !token.IsProvider(state.Type) || !used[engine.JoinReference(state.URN, state.ID)] {
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

// await waits until the session is filled.
func (s *session) await(ctx context.Context) (*session, error) {
	select {
	case <-s.ready:
		return s, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// forget ends a session.
func (a *Activities) forget(ctx context.Context, u deployments.UpdateName) {
	a.mu.Lock()
	s, ok := a.sessions[u.String()]
	delete(a.sessions, u.String())
	a.mu.Unlock()
	if ok {
		s.end(ctx)
		a.reserve.Fill(reserved)
	}
}

// end closes a session that is no longer registered. It waits until the session is filled, so that processes that are
// just starting are ended, too.
func (s *session) end(ctx context.Context) {
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

// Hosted returns the updates of which this worker has, or has had, a session. It has kept answers of some that it has
// forgotten: a step may end after that.
func Hosted(a *Activities) []deployments.UpdateName {
	updates := a.answers.updates()
	a.mu.Lock()
	defer a.mu.Unlock()
	for of := range a.spent {
		updates[of.update] = true
	}
	return slices.Collect(maps.Keys(updates))
}

// HostedSince returns since when this worker has a session of each update that it hosts.
func HostedSince(a *Activities) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	var since []time.Time
	for _, s := range a.sessions {
		since = append(since, s.since)
	}
	return since
}

// Forget ends the session of an update whose workflow is closed, and forgets which of its steps were answered.
func Forget(ctx context.Context, a *Activities, u deployments.UpdateName) {
	a.forget(ctx, u)
	a.answers.forget(u)
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.spent, func(of updateOf, _ *sync.Map) bool { return of.update == u })
}

// spend notes that the call of a round of an operation may have had its effect.
func (s *session) spend(op, round int) {
	if known, _ := s.spent.Load(op); known == nil || known.(int) < round {
		s.spent.Store(op, round)
	}
}

// newCatalogue returns the catalogue of a session; nil if there is none.
func (o *Options) newCatalogue() settlerule.Catalogue {
	if o.Catalogue == nil {
		return nil
	}
	return o.Catalogue()
}
