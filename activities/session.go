package activities

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/host/assets"
	"github.com/deployctl/deployctl/internal/host/autonaming"
	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/host/monitor"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/host/stackconfig"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"google.golang.org/grpc/codes"
)

// session is what this worker keeps of an update that it hosts: its files, plugins, values and configuration. All of it
// can be rebuilt from the stored request. It is safe for concurrent use.
type session struct {
	update   deployments.UpdateName
	identity statestore.StackIdentity
	stackID  string
	request  deployments.UpdateRequest
	granted  int // steps at a time
	base     int
	store    *statestore.Store
	values   *bags.Codec
	config   stackconfig.Config
	own      stackkeys.Settings
	names    *autonaming.Rules
	project  *workspace.Project // nil without a program
	place    string             // the directory of the bundle
	dir      string             // the directory of its Pulumi.yaml
	box      *sandbox.Box       // in which its processes start
	assets   *assets.Hasher
	bundles  *bundlecache.Cache
	limits   *ratelimit.Accounts
	compared *comparisons
	// accounts caches results of accountOf, by reference and digest of the inputs.
	accounts sync.Map
	// found caches what knownRules returns, and known what functions have answered for values of rules.
	found, known sync.Map
	// told caches what providers have answered to declaredRule.
	told      sync.Map
	toldBytes atomic.Int64                   // of the answers
	surveying sync.Mutex                     // guards surveyed
	surveyed  *surveyed                      // nil before the first resource of a preview that surveys
	catalogue settlerule.Catalogue           // nil: none
	settled   func(pkg, rule, result string) // counts; may be nil
	host      *pluginhost.Host
	plugins   *pluginSource // nil: nothing is downloaded
	log       *eventlog.Output
	tokens    *workloadTokens                    // for clouds; nil: none
	hidden    atomic.Pointer[redaction.Redactor] // of the secrets of the profile; nil until there are any
	refusals  monitor.Refusals
	hooks     monitor.Hooks
	// policyPacks check what the program registers, and the stack.
	policyPacks []*policyPack
	memory      *mempool.Claim // of its state; nil: it takes none. See takeSettled
	phases      phases
	since       time.Time                    // when it was made
	started     atomic.Pointer[time.Time]    // when the update was first claimed; nil until that is known
	ready       chan struct{}                // closed once the session is filled or has failed; see open
	parallel    ratelimit.Semaphore          // held by each step that runs
	sent        sync.Map                     // by operation: attempts that have sent their call and are not over
	rejected    sync.Map                     // by operation: when its provider first rejected a call in words only
	called      sync.Map                     // by operation: a call that changes something was made
	spent       *sync.Map                    // by operation: the last round whose call may have had an effect
	answers     *answers                     // of the worker
	departure   *departure                   // of the worker
	again       bool                         // another session has had the update: the store says what was answered
	link        atomic.Pointer[runlink.Link] // of the running program; nil if none runs

	installing sync.Mutex                  // guards installed
	installed  bool                        // see installDependencies
	modules    atomic.Pointer[[]shownPath] // packages of other bundles that this one uses
	pins       []io.Closer                 // of the bundle cache; guarded by installing once the session is ready
	err        error
}

// root returns the directory of Pulumi.yaml.
func (s *session) root() string { return s.dir }

// programDir returns the directory in which the program runs.
func (s *session) programDir() string { return s.host.ProgramDir() }

// plannedImport reports whether the update imports resources that no program declares yet.
func (s *session) plannedImport() bool { return s.request.Kind == engine.KindImport }

// tell prints a message about a resource.
func (s *session) tell(severity diag.Severity, u urn.URN, text string) {
	s.print(pluginhost.Message{Severity: severity, URN: u, Text: text})
}

// hear receives the messages of the program and the plugins.
func (s *session) hear(m pluginhost.Message) {
	if s.refusals.Explain(m) {
		return
	}
	if s.request.Survey && findingText(m) { // only the survey itself tells what exists
		m.Text = "a program or plugin says: " + m.Text
	}
	s.print(m)
}

// findingText reports whether a message reads as what a survey tells.
func findingText(m pluginhost.Message) bool {
	text := strings.TrimSpace(m.Text)
	_, finding := deployments.ParseFinding(text)
	_, found := engine.ParseFound(m.URN, text)
	return finding || found
}

// print writes a message to the update's event log.
func (s *session) print(m pluginhost.Message) {
	s.log.Print(m.Source, apitype.DiagnosticEvent{
		URN: string(m.URN), Message: s.inProject(m.Text), Severity: string(m.Severity), StreamID: int(m.Stream),
		Ephemeral: m.Ephemeral,
	})
}

// close ends the update's plugins and forgets its secrets.
func (s *session) close(ctx context.Context) {
	if s.memory != nil {
		defer s.memory.Release()
	}
	s.assets.Close()
	if s.host != nil {
		s.host.Close(ctx)
	}
	s.plugins.close()
	left := s.box.EndLeft()
	if s.log != nil {
		if left != nil {
			s.print(pluginhost.Message{Severity: diag.Warning, Text: left.Error()})
		}
		s.log.Close(ctx)
	}
	_ = s.tokens.close() // the next box of the organization removes what is left
	_ = s.box.Close()    // bundlecache.Cache.GC removes temporary files that are left
	s.installing.Lock()
	defer s.installing.Unlock()
	for _, pin := range s.pins {
		_ = pin.Close()
	}
	s.pins = nil
}

// pin keeps an entry of the bundle cache until the session is closed. Calls must not overlap.
func (s *session) pin(ctx context.Context, entry string) error {
	pin, err := s.bundles.Pin(ctx, entry)
	if err == nil {
		s.pins = append(s.pins, pin)
	}
	return err
}

// account is a provider's configuration and the limiter of its calls.
type account struct {
	reference providers.Reference
	pkg       pluginhost.Package
	config    resource.PropertyMap
	digest    string // of config
	limiter   *ratelimit.Limiter
}

// accountOf returns the account of the provider that a command names. It is cached, because every step needs it.
func (s *session) accountOf(ctx context.Context, p *engine.Provider) (*account, error) {
	if p == nil {
		return nil, internalError(deployments.Errorf(deployments.CodeInternal, "a resource has no provider"))
	}
	name := p.Ref + "#" + p.Inputs.Digest
	if known, ok := s.accounts.Load(name); ok {
		return known.(*account), nil
	}
	inputs, err := s.values.Decode(ctx, p.Inputs)
	if err != nil {
		return nil, internalError(err)
	}
	a, err := s.account(p.Ref, inputs)
	if err == nil {
		s.accounts.Store(name, a)
	}
	return a, err
}

// account returns the account of the provider with a reference and these inputs.
func (s *session) account(reference string, inputs resource.PropertyMap) (a *account, err error) {
	a = &account{config: pluginhost.ProviderConfig(inputs)}
	if a.reference, err = token.ParseReference(reference); err != nil {
		return nil, internalError(deployments.Errorf(deployments.CodeInternal, "provider %q: %w", reference, err))
	}
	if a.pkg, err = pluginhost.PackageOf(a.reference.URN().Type(), inputs); err != nil {
		return nil, err
	}
	if a.digest, err = bags.Digest(s.values.Key, a.config); err != nil || s.limits == nil {
		return a, err
	}
	a.limiter, err = s.limits.Limiter(a.pkg.Name, a.config)
	return a, err
}

// providerOf returns the provider that a command names, configured.
func (s *session) providerOf(ctx context.Context, p *engine.Provider) (*pluginhost.Provider, error) {
	a, err := s.accountOf(ctx, p)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, a, p.Extension)
}

// provider returns the provider with a reference and these inputs, configured.
func (s *session) provider(
	ctx context.Context, reference string, inputs resource.PropertyMap, extension engine.Bag,
) (*pluginhost.Provider, error) {
	a, err := s.account(reference, inputs)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, a, extension)
}

// open returns the provider of an account, configured and extended. Both may be repeated: they change nothing outside
// the plugin.
func (s *session) open(ctx context.Context, a *account, extension engine.Bag) (*pluginhost.Provider, error) {
	if pluginhost.IsDynamic(a.pkg.Name) {
		if err := s.installDependencies(ctx); err != nil {
			return nil, err
		}
	}
	p, err := s.host.Provider(ctx, a.pkg, a.reference.String()+"#"+a.digest)
	if err != nil {
		return nil, err
	}
	u, id := a.reference.URN(), a.reference.ID()
	name, t := u.Name(), u.Type()
	_, err = p.Configure(ctx, plugin.ConfigureRequest{URN: &u, Name: &name, Type: &t, ID: &id, Inputs: a.config})
	if err != nil || extension.Empty() {
		return p, err
	}
	return p, p.Extend(ctx, extension.Digest, func(ctx context.Context) (apitype.Extension, error) {
		e, err := s.values.DecodeExtension(ctx, extension)
		if deployments.CodeOf(err) == deployments.CodeFormat { // the state lacks it, which fails the resource
			return e, err
		}
		return e, internalError(err)
	})
}

// unconfigured returns a provider without a configuration, which can only check and compare configurations.
func (s *session) unconfigured(
	ctx context.Context, t tokens.Type, inputs resource.PropertyMap,
) (*pluginhost.Provider, error) {
	pkg, err := pluginhost.PackageOf(t, inputs)
	if err != nil {
		return nil, err
	}
	return s.host.Provider(ctx, pkg, "")
}

// retried makes a call that changes nothing, and repeats it if its provider dies or throttles it.
func (s *session) retried(ctx context.Context, call func() error) error {
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil || !isTransient(err) || attempt == planAttempts {
			return err
		}
		if pause(ctx, firstRetry<<(2*(attempt-1))) != nil {
			return err
		}
	}
}

// isTransient reports whether a call that changes nothing may succeed when it is repeated.
func isTransient(err error) bool {
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

// serviceError marks an error of the service itself, to tell it from an error of a provider.
type serviceError struct{ err error }

func (e *serviceError) Error() string { return e.err.Error() }
func (e *serviceError) Unwrap() error { return e.err }

// internalError marks an error as one of the service, not of a provider.
func internalError(err error) error {
	if err == nil {
		return nil
	}
	return &serviceError{err}
}

func isInternal(err error, target **serviceError) bool { return errors.As(err, target) }

// leaveOutcome stores the result of an attempt for Settle, and what a create has made also for later updates, which its
// own may leave to them. It retries until the store accepts it or ctx ends. An update of a later stack of the name has
// other attempts.
func (s *session) leaveOutcome(ctx context.Context, round int, step engine.Step, result engine.StepFinished) {
	_ = persist(ctx, mayPass, func() error {
		if there, err := s.store.IsStack(ctx, s.update.StackName, s.stackID); err != nil || !there {
			return err
		}
		return s.store.PutOutcome(ctx, s.update, round, result)
	})
	if isCreate(step) && len(step.Seed) > 0 && hadEffect(result) && result.ID != "" {
		_ = persist(ctx, mayPass, func() error { return s.store.PutMade(ctx, s.update.StackName, step.Seed, result.ID) })
	}
}

// isCreate reports whether a step makes a resource.
func isCreate(s engine.Step) bool {
	return s.Kind == engine.StepCreate || s.Kind == engine.StepCreateReplacement
}

// leftOutcome returns the result that the lost attempt of the last round has stored, or a result of an earlier round
// that had its effect.
func (s *session) leftOutcome(ctx context.Context, op, last int) (engine.StepFinished, bool, error) {
	for round := last; round > 0; round-- {
		left, err := s.store.Outcome(ctx, s.update, op, round)
		if err != nil {
			return engine.StepFinished{}, false, err
		}
		if left != nil && (round == last || left.Outcome == engine.OutcomeDone ||
			left.Outcome == engine.OutcomePartial) {
			return *left, true, nil
		}
	}
	return engine.StepFinished{}, false, nil
}

// replyEarly delivers a reply to the program directly from the activity of its step or plan; see
// runlink.Link.ReplyEarly.
func (s *session) replyEarly(ctx context.Context, r engine.Reply) (delivered bool, next *deployments.Messages) {
	if link := s.link.Load(); link != nil {
		return link.ReplyEarly(ctx, r)
	}
	return false, nil
}
