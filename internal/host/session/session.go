package session

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
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/host/monitor"
	"github.com/deployctl/deployctl/internal/host/plan"
	"github.com/deployctl/deployctl/internal/host/policies"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/host/stackconfig"
	"github.com/deployctl/deployctl/internal/host/step"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/identities"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// Session is what this worker keeps of an update that it hosts: its files, plugins, values and configuration. All of it
// can be rebuilt from the stored request. It is safe for concurrent use.
type Session struct {
	update    deployments.UpdateName
	identity  identities.Identity
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
	providers *hosted.Providers
	host      *pluginhost.Host
	plugins   *pluginSource // nil: nothing is downloaded
	log       *eventlog.Output
	tokens    *workloadTokens                    // for clouds; nil: none
	hidden    atomic.Pointer[redaction.Redactor] // of the secrets of the profile; nil until there are any
	refusals  monitor.Refusals
	hooks     monitor.Hooks
	// policyPacks check what the program registers, and the stack.
	policyPacks *policies.Packs
	memory      *mempool.Claim // of its state; nil: it takes none. See takeSettled
	phases      phases
	since       time.Time                 // when it was made
	started     atomic.Pointer[time.Time] // when the update was first claimed; nil until that is known
	ready       chan struct{}             // closed once the session is filled or has failed; see open
	again       bool                      // another session has had the update: the store says what was answered
	answered    map[int]int               // what it says, by operation
	spent       *sync.Map                 // see answers.SpentBy
	facts       *hosted.Update
	steps       *step.Steps
	plans       *plan.Plans
	link        atomic.Pointer[runlink.Link] // of the running program; nil if none runs

	installing sync.Mutex                  // guards installed
	installed  bool                        // see installDependencies
	modules    atomic.Pointer[[]shownPath] // packages of other bundles that this one uses
	pins       []io.Closer                 // of the bundle cache; guarded by installing once the session is ready
	err        error
}

// root returns the directory of Pulumi.yaml.
func (s *Session) root() string { return s.dir }

// programDir returns the directory in which the program runs.
func (s *Session) programDir() string { return s.host.ProgramDir() }

// tell prints a message about a resource.
func (s *Session) tell(severity diag.Severity, u urn.URN, text string) {
	s.print(pluginhost.Message{Severity: severity, URN: u, Text: text})
}

// hear receives the messages of the program and the plugins.
func (s *Session) hear(m pluginhost.Message) {
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
func (s *Session) print(m pluginhost.Message) {
	s.log.Print(m.Source, apitype.DiagnosticEvent{
		URN: string(m.URN), Message: s.inProject(m.Text), Severity: string(m.Severity), StreamID: int(m.Stream),
		Ephemeral: m.Ephemeral,
	})
}

// close ends the update's plugins and forgets its secrets.
func (s *Session) close(ctx context.Context) {
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
func (s *Session) pin(ctx context.Context, entry string) error {
	pin, err := s.bundles.Pin(ctx, entry)
	if err == nil {
		s.pins = append(s.pins, pin)
	}
	return err
}

// replyEarly delivers a reply to the program directly from the activity of its step or plan; see
// runlink.Link.ReplyEarly.
func (s *Session) replyEarly(ctx context.Context, r engine.Reply) (delivered bool, next *deployments.Messages) {
	if link := s.link.Load(); link != nil {
		return link.ReplyEarly(ctx, r)
	}
	return false, nil
}

// Update returns what is known of the update once the session is filled.
func (s *Session) Update() *hosted.Update { return s.facts }

// Request returns the request of the update.
func (s *Session) Request() deployments.UpdateRequest { return s.request }

// Granted returns how many steps at a time the update was granted.
func (s *Session) Granted() int { return s.granted }

// Begun notes since when the update runs.
func (s *Session) Begun(since time.Time) { s.started.Store(&since) }

// RunsSince returns since when the update runs; nil if its claim is not known to have begun it.
func (s *Session) RunsSince() *time.Time { return s.started.Load() }

// Flush writes what is printed to the log of the update. An error loses only output.
func (s *Session) Flush(ctx context.Context) {
	if s.log != nil {
		_ = s.log.Flush(ctx)
	}
}

// Steps returns what makes the steps of the update.
func (s *Session) Steps() *step.Steps { return s.steps }

// Plans returns what makes the plans of the update.
func (s *Session) Plans() *plan.Plans { return s.plans }

// Policies returns the policy packs of the update.
func (s *Session) Policies() *policies.Packs { return s.policyPacks }
