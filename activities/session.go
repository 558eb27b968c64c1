package activities

import (
	"context"
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
	"github.com/deployctl/deployctl/internal/host/failure"
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
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// session is what this worker keeps of an update that it hosts: its files, plugins, values and configuration. All of it
// can be rebuilt from the stored request. It is safe for concurrent use.
type session struct {
	update    deployments.UpdateName
	identity  statestore.StackIdentity
	stackID   string
	request   deployments.UpdateRequest
	granted   int // steps at a time
	base      int
	store     *statestore.Store
	values    *bags.Codec
	config    stackconfig.Config
	own       stackkeys.Settings
	names     *autonaming.Rules
	project   *workspace.Project // nil without a program
	place     string             // the directory of the bundle
	dir       string             // the directory of its Pulumi.yaml
	box       *sandbox.Box       // in which its processes start
	assets    *assets.Hasher
	bundles   *bundlecache.Cache
	limits    *ratelimit.Accounts
	compared  *comparisons
	providers *providerSet
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
	policyPacks *policyPacks
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

// leaveOutcome stores the result of an attempt for Settle, and what a create has made also for later updates, which its
// own may leave to them. It retries until the store accepts it or ctx ends. An update of a later stack of the name has
// other attempts.
func (s *session) leaveOutcome(ctx context.Context, round int, step engine.Step, result engine.StepFinished) {
	_ = failure.Persist(ctx, failure.MayPass, func() error {
		if there, err := s.store.IsStack(ctx, s.update.StackName, s.stackID); err != nil || !there {
			return err
		}
		return s.store.PutOutcome(ctx, s.update, round, result)
	})
	if isCreate(step) && len(step.Seed) > 0 && hadEffect(result) && result.ID != "" {
		_ = failure.Persist(ctx, failure.MayPass, func() error {
			return s.store.PutMade(ctx, s.update.StackName, step.Seed, result.ID)
		})
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
