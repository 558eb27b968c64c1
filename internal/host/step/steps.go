// Package step makes the steps of an update, each a call of a provider, and finds out what became of those whose
// answers were lost.
//
// An attempt is made once, and its result is definite; see Steps.Make. What exists before its create, or was made by a
// lost one, is found by the rules of package lookup.
package step

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/autonaming"
	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/identities"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Steps make the steps of an update. They are safe for concurrent use.
type Steps struct {
	update    deployments.UpdateName
	identity  identities.Identity
	stackID   string
	request   deployments.UpdateRequest
	base      int
	store     *statestore.Store
	values    *bags.Codec
	own       stackkeys.Settings
	names     *autonaming.Rules
	providers *hosted.Providers
	host      hosted.Host
	facts     *hosted.Update
	rules     *lookup.Rules
	compared  *compare.Cache
	settled   func(pkg, rule, result string) // counts; may be nil

	known     sync.Map            // what functions have answered for values of rules
	surveying sync.Mutex          // guards surveyed
	surveyed  *surveyed           // nil before the first resource of a preview that surveys
	parallel  ratelimit.Semaphore // held by each step that runs
	sent      sync.Map            // by operation: attempts that have sent their call and are not over
	rejected  sync.Map            // by operation: when its provider first rejected a call in words only
	called    sync.Map            // by operation: a call that changes something was made
	noted     sync.Map            // by operation: the digest of what is noted as absent
	spent     *sync.Map           // by operation: the last round whose call may have had an effect
	answers   *Answers            // of the worker
}

// Options are what the steps of an update need.
type Options struct {
	Update   *hosted.Update
	Rules    *lookup.Rules
	Compared *compare.Cache
	// Answers are those of the worker, and Spent the rounds that it knows to be spent; see answers.SpentBy.
	Answers *Answers
	Spent   *sync.Map
	// Answered are the last rounds that were answered on other workers, by operation.
	Answered map[int]int
	// Parallel is how many steps run at a time.
	Parallel int
	// CountSettled, if not nil, counts what settling a create came to: by which kind of rule, and with which result.
	CountSettled func(pkg, rule, result string)
}

// New returns the steps of an update.
func New(o Options) *Steps {
	u := o.Update
	s := &Steps{
		update: u.Name, identity: u.Identity, stackID: u.StackID, request: u.Request, base: u.Base, store: u.Store,
		values: u.Values, own: u.Own, names: u.Names, providers: u.Providers, host: u.Host, facts: u, rules: o.Rules,
		compared: o.Compared, settled: o.CountSettled, parallel: ratelimit.NewSemaphore(o.Parallel), answers: o.Answers,
		spent: o.Spent,
	}
	for op, round := range o.Answered {
		s.spend(op, round)
	}
	return s
}

// plannedImport reports whether the update imports resources that no program declares yet.
func (s *Steps) plannedImport() bool { return s.request.Kind == engine.KindImport }

// tell prints a message about a resource.
func (s *Steps) tell(severity diag.Severity, u urn.URN, text string) { s.host.Tell(severity, u, text) }

// redactor returns a redactor of the secrets of the update and of bags.
func (s *Steps) redactor(ctx context.Context, bags ...engine.Bag) failure.Redactor {
	return s.host.Redactor(ctx, bags...)
}
