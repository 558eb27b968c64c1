package engine

import (
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// stage is where a registration stands.
type stage string

const (
	stageHeld      stage = "held"      // waits for what it names, or for its URN's running step
	stageComparing stage = "comparing" // its provider is being compared with the old one
	stagePlanning  stage = "planning"
	stagePlanned   stage = "planned"   // the plan is there and waits for its turn
	stageCascading stage = "cascading" // the cascade of its replacement is being found
	// copies that wait for deletion and depend on what is to be deleted first go ahead of it
	stageSweeping stage = "sweeping"
	stageClearing stage = "clearing" // the old resource is being deleted first
	stageStepping stage = "stepping"
	stageDone     stage = "done"
)

// entry is a registration or a read of this epoch on its way to a reply.
type entry struct {
	Epoch int
	Seq   int
	Order int // of registration in this epoch
	URN   urn.URN
	Reg   Registration
	Read  bool // a read of a resource that this stack does not own
	Stage stage
	Op    int `json:",omitempty"`

	Old     Key    `json:",omitempty"` // state it starts from; "" when there is none
	New     State  // what it becomes
	Seed    []byte `json:",omitempty"`
	Changed bool   `json:",omitempty"` // the old provider cannot go on
	// Forced says why the core replaces on its own account: the keys to show.
	Forced   []string    `json:",omitempty"`
	Members  []Dependent `json:",omitempty"` // of its cascade, while it sweeps
	Plan     *Planned    `json:",omitempty"`
	Imported bool        `json:",omitempty"` // what follows is the ordinary plan over what was imported
	// waits is an entry that must get on before this one is worth another look; listed, that it is in Run.restless.
	waits  *entry
	listed bool
	pair   string   // the comparison that it waits for in stageComparing
	Kind   StepKind `json:",omitempty"` // of the step it came to
	Result ResultKind
	// Answered: the program has its reply already.
	Answered bool `json:",omitempty"`
}

// register takes a registration in.
func (r *Run) register(ev Registered) {
	e := r.admit(ev.Epoch, ev.Seq, ev.Registration)
	if e != nil && r.Stopped {
		r.refuse(e)
	}
}

// requestRead takes a read in; it is a registration whose resource belongs to somebody else.
func (r *Run) requestRead(ev ReadRequested) {
	e := r.admit(ev.Epoch, ev.Seq, Registration{
		Type: ev.Type, Name: ev.Name, Custom: true, Parent: ev.Parent, Provider: ev.Provider, Inputs: ev.Inputs,
		Dependencies: ev.Dependencies, AdditionalSecretOutputs: ev.AdditionalSecretOutputs,
		SourcePosition: ev.SourcePosition, ImportID: ev.ID, Digest: ev.Digest,
	})
	if e == nil {
		return
	}
	e.Read = true
	switch {
	case r.Stopped:
		r.refuse(e)
	case ev.ID == "":
		r.reject(e, "the read of %s names no id", e.URN)
	}
}

// admit makes an entry of what the program asked for; nil when the message is old, repeated or refused at once.
func (r *Run) admit(epoch, seq int, reg Registration) *entry {
	if epoch != r.Epoch || r.bySeq[seq] {
		return nil
	}
	r.bySeq[seq] = true
	e := &entry{Epoch: epoch, Seq: seq, Order: len(r.Entries), Reg: reg}
	e.URN = r.urnOf(reg)
	if first := r.byURN[e.URN]; first != nil {
		e.Stage = stageDone
		r.reject(e, "duplicate resource URN %s: the program registers two resources of this type and name under the "+
			"same "+
			"parent; give one of them another name", e.URN)
		r.Seen = append(r.Seen, seq)
		return nil
	}
	r.Entries = append(r.Entries, e)
	r.byURN[e.URN] = e
	r.enter(e, stageHeld)
	return e
}

// refuse answers an entry that will not be carried out because the update is ending.
func (r *Run) refuse(e *entry) {
	r.drop(e.Op)
	r.finish(e, Reply{Result: ResultFail, Error: "the update is ending; see its diagnostics"})
}

// reject fails an entry with an error that is its own.
func (r *Run) reject(e *entry, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	r.diagnose("error", e.URN, "%s", message)
	r.failEntry(e, message)
}

// failEntry fails an entry whose error has been told.
func (r *Run) failEntry(e *entry, message string) {
	reply := Reply{Result: ResultFail}
	if !r.goal.ContinueOnError {
		reply.Error = message
	}
	r.finish(e, reply)
	r.fail(message)
}

// finish ends an entry with its reply.
func (r *Run) finish(e *entry, reply Reply) {
	e.Stage, e.Result = stageDone, reply.Result
	if reply.Result != ResultSuccess && e.Old == "" {
		r.want(e.URN, e.Reg)
	}
	r.answer(e, reply)
}

func (r *Run) answer(e *entry, reply Reply) {
	if e.Epoch != r.Epoch || e.Answered {
		return
	}
	reply.Epoch, reply.Seq, reply.URN = e.Epoch, e.Seq, e.URN
	r.out = append(r.out, reply)
}

// advanceEntries moves every entry that can move, in order of registration; it reports whether one did.
func (r *Run) advanceEntries() bool {
	moved := false
	looking, order := r.restless, func(a, b *entry) int { return a.Order - b.Order }
	r.restless = r.spare[:0]
	if !slices.IsSortedFunc(looking, order) {
		slices.SortFunc(looking, order)
	}
	for _, e := range looking {
		if !e.blocked() {
			moved = r.advanceEntry(e) || moved
		}
		if e.listed = e.restless(); e.listed {
			r.restless = append(r.restless, e)
		}
	}
	r.spare = looking
	return moved
}

// advanceEntry moves an entry that is not waiting for an answer.
func (r *Run) advanceEntry(e *entry) bool {
	e.waits = nil
	switch e.Stage {
	case stageHeld:
		return r.start(e)
	case stagePlanned:
		return r.commit(e)
	case stageSweeping:
		return r.swept(e)
	case stageClearing:
		return r.cleared(e)
	default:
		return false
	}
}

// restless reports that an entry waits for something of the run's own, and not for an answer.
func (e *entry) restless() bool {
	return e.Stage == stageHeld || e.Stage == stagePlanned || e.Stage == stageSweeping || e.Stage == stageClearing
}

// blocked reports that what the entry was found to wait for has not come about.
func (e *entry) blocked() bool {
	switch {
	case e.waits == nil:
		return false
	case e.Stage == stagePlanned:
		return !e.waits.committed()
	}
	return e.waits.Stage != stageDone
}

// enter puts an entry in a stage in which it is looked at again.
func (r *Run) enter(e *entry, s stage) {
	e.Stage, e.waits = s, nil
	if !e.listed {
		e.listed = true
		r.restless = append(r.restless, e)
	}
}

// firstUndone skips the entries that have ended, so that a long run does not visit them again and again.
func (r *Run) firstUndone() int {
	for r.undone < len(r.Entries) && r.Entries[r.undone].Stage == stageDone {
		r.undone++
	}
	return r.undone
}

// start decides what an entry needs first; it reports whether the entry left its place.
func (r *Run) start(e *entry) bool {
	if r.Stopped {
		r.refuse(e)
		return true
	}
	if op := r.stepOf(e.URN); op != nil {
		return r.attach(e, op)
	}
	if f := r.Done[e.URN]; f != nil && f.Digest == e.Reg.Digest && r.stands(e.URN, f.Key) {
		r.repeat(e, f)
		return true
	}
	switch missing, wait := r.missing(e); {
	case wait:
		return false
	case missing != "":
		r.reject(e, "%s depends on %s, which the program has not registered", e.URN, missing)
		return true
	}
	if failed := r.failedDependency(e); failed != "" {
		r.finish(e, Reply{Result: ResultSkip})
		return true
	}
	if !r.claimOld(e) {
		return e.Stage == stageDone
	}
	r.prepare(e)
	if !r.targeted(e) && r.undecidedOld(e) {
		return false
	}
	r.decide(e)
	return true
}

// missing finds what an entry names and what is not decided: wait tells that it is registered and still on its way.
// Only what was registered before may be named, so that no two wait for each other; and while targets leave resources
// alone, what is stored.
func (r *Run) missing(e *entry) (missing urn.URN, wait bool) {
	for _, u := range e.Reg.references() {
		other := r.byURN[u]
		switch {
		case other == nil && (len(r.goal.Targets) == 0 || r.snap.Live(u) == nil):
			return u, false
		case other != nil && other.Order >= e.Order:
			return u, false
		case other != nil && other.Stage != stageDone:
			e.waits, wait = other, true
		}
	}
	return "", wait
}

// failedDependency gives a failed or skipped resource that the entry needs; only when the update goes on after errors,
// or beside a doubt.
func (r *Run) failedDependency(e *entry) urn.URN {
	if !r.goal.ContinueOnError && len(r.Doubtful) == 0 {
		return ""
	}
	for _, u := range e.Reg.references() {
		if other := r.byURN[u]; other != nil && other.Result != ResultSuccess && !r.Skipped[u] {
			return u
		}
	}
	return ""
}

// references gives every URN that a registration names, in a fixed order.
func (g *Registration) references() []urn.URN {
	s := State{
		Parent: g.Parent, Provider: g.Provider, Dependencies: g.Dependencies,
		PropertyDependencies: g.PropertyDependencies, DeletedWith: g.DeletedWith, ReplaceWith: g.ReplaceWith,
	}
	return s.References()
}

// prepare makes the new state that the entry asks for.
func (r *Run) prepare(e *entry) {
	g := e.Reg
	e.New = State{
		URN: e.URN, Type: g.Type, Custom: g.Custom, Parent: g.Parent, Provider: g.Provider,
		Protect: g.Protect != nil && *g.Protect, RetainOnDelete: g.RetainOnDelete != nil && *g.RetainOnDelete,
		Dependencies: g.Dependencies, PropertyDependencies: g.PropertyDependencies,
		AdditionalSecretOutputs: g.AdditionalSecretOutputs, Timeouts: g.Timeouts, ImportID: g.ImportID,
		DeletedWith: g.DeletedWith, ReplaceWith: g.ReplaceWith, IgnoreChanges: g.IgnoreChanges, HideDiff: g.HideDiff,
		ReplaceOnChanges: g.ReplaceOnChanges, SourcePosition: g.SourcePosition, Inputs: g.Inputs, Trigger: g.Trigger,
		TriggerValue: g.TriggerValue,
	}
	if e.Read {
		e.New.External, e.New.ImportID, e.New.ID = true, "", g.ImportID
	}
	if alias, ok := r.AliasOf[e.URN]; ok {
		e.New.Aliases = []urn.URN{alias}
	}
	if old := r.snap.Get(e.Old); old != nil {
		e.New.RefreshBeforeUpdate = old.RefreshBeforeUpdate
		e.New.Created, e.New.Modified = old.Created, old.Modified
		// known by it are copies until they are gone, and children until they are registered
		for _, a := range old.Aliases {
			if (len(r.snap.copies[a]) > 0 || r.parented(a, e.URN)) && !slices.Contains(e.New.Aliases, a) {
				e.New.Aliases = append(e.New.Aliases, a)
			}
		}
	}
	e.Seed = r.seed(e.URN)
}

// stands reports that a state is still what its URN stands for.
func (r *Run) stands(u urn.URN, k Key) bool {
	live := r.snap.Live(u)
	return live != nil && live.Key == k && !live.PendingReplacement && r.condemned[k] == nil
}

// repeat gives an entry the answer that the same goal got in an earlier epoch.
func (r *Run) repeat(e *entry, f *finished) {
	state := r.snap.Get(f.Key)
	e.Old, e.New, e.Kind = f.Key, *state, f.Kind
	if len(state.Aliases) > 0 && r.snap.current(state.Aliases[0]) == e.URN { // renamed in this update
		r.claim(e.URN, state.Aliases[0])
	}
	r.finish(e, r.success(e, f.Stables))
}

// success is the reply of an entry that ended well; its object is what the program sees.
func (r *Run) success(e *entry, stables []string) Reply {
	object := e.New.Outputs
	if !e.New.Custom {
		object = e.New.Inputs
	}
	return Reply{ID: e.New.ID, Object: object, Stables: stables, Result: ResultSuccess, Unknown: e.unknown(r.goal)}
}

// unknown reports that a preview cannot know the resource's outputs.
func (e *entry) unknown(g Goal) bool {
	return g.DryRun && e.New.Custom && slices.Contains(mutating, e.Kind)
}

// mutating are the kinds of steps whose outputs are new.
var mutating = []StepKind{StepCreate, StepCreateReplacement, StepUpdate}
