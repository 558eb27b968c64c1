package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Run is one update at work. It is not safe for concurrent use.
type Run struct {
	goal Goal
	snap *Snapshot
	memory

	// Derived from memory, see derive.
	byURN     map[urn.URN]*entry // entries of this epoch
	bySeq     map[int]bool       // sequence numbers seen in this epoch
	condemned map[Key]*deletion

	// Meaningful only while something is in flight or an answer is being worked out, so not put away.
	restless  []*entry // entries that do not wait for an answer
	spare     []*entry // room for the next restless
	undone    int      // entries before this one have ended
	cascading int      // the cascade being found
	sweeper   *entry   // the entry whose copies go first; see sweep
	comparing []int    // the comparisons being made
	free      []Key    // deletions that nothing blocks

	out    []Command
	deltas []Delta
}

// phase is where an update stands. Phases only move forward.
type phase int

const (
	phaseSettling   phase = iota // what earlier updates left undecided
	phaseRefreshing              // reading what is stored
	phaseProgram                 // registrations are decided
	phaseDeleting                // what the program no longer declares goes
	phaseEnded
)

// memory is what a Run remembers besides its snapshot; Suspend puts it away as it is. Maps are for look-up only.
type memory struct {
	Phase   phase
	Epoch   int
	NextOp  int
	NextSeq int // of deltas

	Entries []*entry // of this epoch, in order of registration
	Seen    []int    // sequence numbers of this epoch's other messages
	Exit    *ProgramExited
	Ops     map[int]*operation // in flight, or waiting for a slot
	Queue   []int              // steps that wait for a slot, in order
	Slots   []int              // steps that were issued and not answered, in order
	Asked   int                // plans, cascades and comparisons that were issued and not answered
	Waiting []int              // undecidable creates that wait for a person

	Deletions []*deletion
	Lost      []Key              // found gone by a refresh that goes on
	Exports   *OutputsRegistered `json:",omitempty"` // the outputs of the stack, of this epoch
	Compared  map[string]bool    // provider comparisons by "old new": replace?

	// Marks of this update, kept over epochs: each acts at most once per URN.
	Done     map[urn.URN]*finished
	Replaced map[urn.URN]bool
	Gone     map[urn.URN]bool   // deleted, so what is deletedWith them goes without a call
	Seeds    map[urn.URN][]byte // of pending creates
	Made     map[urn.URN]int    // creates that were recorded
	Doubtful map[urn.URN]bool   // creates that were left undecided: not to be made again
	Targeted map[urn.URN]bool   // targets and, if they are to go with them, their dependents

	// Facts of this epoch.
	Aliased map[urn.URN]urn.URN // old name → the URN that claimed it
	AliasOf map[urn.URN]urn.URN // URN → the old name it claimed
	Skipped map[urn.URN]bool    // creates that targets exclude
	Kept    map[urn.URN]bool    // stored resources moved ahead of those that refer to them
	Wanted  []urn.URN           `json:",omitempty"` // stored resources whose registration failed or was refused

	FirstError string
	Misnamed   bool `json:",omitempty"` // FirstError is that the goal names a resource which is not there
	Refusals   int  `json:",omitempty"` // requests of the program that were refused: nothing is deleted after one
	Stopped    bool // nothing new starts: an error, or cancelled
	Cancelled  bool
	Forced     bool
	Changes    map[string]int
	Integrity  string
	Broken     string `json:",omitempty"` // the first invariant that a change broke
}

// finished remembers how a URN's registration ended, so that the same goal in a later epoch gets the same answer.
type finished struct {
	Digest  string
	Key     Key
	Kind    StepKind
	Stables []string
}

// operation is one command in flight.
type operation struct {
	Op    int
	URN   urn.URN
	Step  *Step   `json:",omitempty"` // nil for plans, cascades and comparisons
	Pair  string  `json:",omitempty"` // of a comparison
	Entry *entry  `json:",omitempty"` // who waits for it
	For   purpose // what its completion means
	Key   Key     `json:",omitempty"` // the state it deletes or refreshes
	// Pending is the operation of an earlier update that it settles.
	Pending int `json:",omitempty"`
	// Check is the step's, while it reads what a person found.
	Check bool `json:",omitempty"`
	// Again is that of the Settle that was issued last.
	Again bool `json:",omitempty"`
	// Lost: an attempt was lost and not looked for, because the one that was begun again would find what it made.
	Lost bool `json:",omitempty"`
	// Reason is why the attempt that was lost last was.
	Reason string `json:",omitempty"`
	// Ended is how a create ended, while it is found out whether an attempt that was lost before made it after all.
	Ended *StepFinished `json:",omitempty"`
}

// purpose says what the completion of an operation is for.
type purpose string

const (
	forNothing  purpose = "" // its entry is gone; the answer is ignored
	forPlan     purpose = "plan"
	forCompare  purpose = "compare"
	forCascade  purpose = "cascade"
	forGoal     purpose = "goal" // create, update, read or import of an entry
	forDeletion purpose = "deletion"
	forRefresh  purpose = "refresh"
	forPending  purpose = "pending" // settles what an earlier update left
)

// New starts an update from the stored states and pending operations of its base.
func New(goal Goal, base []State, pending []PendingOperation) *Run {
	r := &Run{
		goal: goal,
		snap: NewSnapshot(base, pending),
		memory: memory{
			Ops: map[int]*operation{}, Compared: map[string]bool{}, Done: map[urn.URN]*finished{},
			Replaced: map[urn.URN]bool{}, Seeds: map[urn.URN][]byte{}, Made: map[urn.URN]int{},
			Doubtful: map[urn.URN]bool{},
			Targeted: map[urn.URN]bool{}, Changes: map[string]int{},
		},
	}
	if r.goal.Parallel < 1 {
		r.goal.Parallel = 1
	}
	r.resetEpoch()
	if !r.mayStart(base, pending) {
		r.Phase = phaseEnded
		return r
	}
	r.giveDefaults()
	r.settlePending()
	return r
}

// mayStart reports whether the update can be carried out at all; if not, it has told why.
func (r *Run) mayStart(base []State, pending []PendingOperation) bool {
	switch err := errors.Join(Verify(base), VerifyPending(pending)); {
	case !r.goal.Kind.known():
		r.unsupported(fmt.Sprintf("the update kind %q", r.goal.Kind))
		return false
	case err != nil:
		message := "the stored state cannot be worked on: " + err.Error() +
			"; correct it with `deployctl stack export` and `deployctl stack import`"
		r.diagnose("error", "", "%s", message)
		r.noteError(message)
		return false
	}
	return r.goal.Kind == KindImport || !r.namesNothing()
}

// hasProgram reports whether a program takes part in the update.
func (r *Run) hasProgram() bool { return r.goal.Kind == KindUp }

// Handle takes note of an event. It never fails: what cannot be right is reported as a diagnostic, refused by a Reply
// or, if it is old or repeated, ignored.
func (r *Run) Handle(ev Event) {
	switch ev := ev.(type) {
	case RunStarted:
		r.startEpoch(ev.Epoch)
	case Registered:
		r.register(ev)
	case ReadRequested:
		r.requestRead(ev)
	case OutputsRegistered:
		r.registerOutputs(ev)
	case ProgramExited:
		r.programExited(ev)
	case Planned:
		r.planned(ev)
	case CascadePlanned:
		r.cascadePlanned(ev)
	case ProviderDiffed:
		r.providerDiffed(ev)
	case StepFinished:
		r.stepFinished(ev)
	case Cancelled:
		r.cancelled(ev)
	case Resolved:
		r.resolved(ev)
	case Refused:
		r.refused(ev)
	default:
		r.unsupported(fmt.Sprintf("the event %T", ev))
	}
}

// Ready answers what may start now, in a fixed order. Call it until it answers nothing: starting nothing does not
// change the answer.
func (r *Run) Ready() []Command {
	if r.Broken != "" && !r.Stopped { // what runs finishes, and what it does is recorded
		r.diagnose("error", "", "%s", faulty(r.Broken))
		r.noteError(faulty(r.Broken))
		r.stop()
	}
	for r.advance() {
	}
	r.issueSteps()
	return r.Pressing()
}

// Pressing is Ready without anything new: what was issued before and is to be found out about or begun again, and what
// is told.
func (r *Run) Pressing() []Command {
	out := r.out
	r.out = nil
	return out
}

// advance moves entries and phases on; it reports whether anything moved.
func (r *Run) advance() bool {
	moved := false
	switch r.Phase {
	case phaseSettling, phaseRefreshing:
		moved = r.advanceOpening()
	case phaseProgram:
		moved = r.advanceEntries()
		moved = r.advanceDeletions() || moved
		moved = r.advanceProgram() || moved
	case phaseDeleting:
		moved = r.advanceDeletions()
		if !moved && r.idle() {
			if moved = r.untangle(); !moved {
				r.end()
				moved = true
			}
		}
	}
	return moved
}

// idle reports that no operation is in flight or waits for a slot.
func (r *Run) idle() bool { return len(r.Ops) == 0 }

// advanceProgram ends the program's phase once the program has ended and everything it asked for has, too.
func (r *Run) advanceProgram() bool {
	if r.hasProgram() && r.Exit == nil && !r.abandoned() {
		return false
	}
	if !r.idle() || r.undecided() {
		return false
	}
	unmatched := r.hasProgram() && !r.Stopped && r.namedNothing()
	r.exportOutputs()
	if r.Stopped || r.Refusals > 0 || unmatched || (r.Exit != nil && r.Exit.Error != "") ||
		(r.FirstError != "" && !r.goal.ContinueOnError) {
		r.end()
		return true
	}
	r.Phase = phaseDeleting
	switch r.goal.Kind {
	case KindUp, KindDestroy:
		r.condemnUnseen()
	default: // no other kind deletes
	}
	return true
}

// end closes the update. What its steps have done is never thrown away: a snapshot that breaks an invariant is told of.
func (r *Run) end() {
	r.Phase = phaseEnded
	if r.goal.DryRun {
		return
	}
	states, _ := r.snap.States()
	if err := Verify(states); err != nil {
		r.Integrity = err.Error()
		r.noteError(faulty(err.Error()))
	}
}

// faulty says that the state breaks an invariant, and what comes of that.
func faulty(broken string) string {
	return "the state breaks an invariant, which is a fault of this program: " + broken +
		"; all that was done is recorded, and the " +
		"state is repaired as it is stored. If it cannot be, the next update says so and starts nothing: then export " +
		"it with " +
		"`deployctl stack export --file state.json`, correct the file, and put it back with `deployctl stack import " +
		"--file state.json`"
}

// abandoned reports that the update was cancelled before its program ever started.
func (r *Run) abandoned() bool { return r.Cancelled && r.Epoch == 0 }

// undecided reports that an entry still waits for something that can happen.
func (r *Run) undecided() bool {
	return slices.ContainsFunc(r.Entries, func(e *entry) bool { return e.Stage != stageDone })
}

// InFlight counts the commands that were issued and not answered; an undecidable create that waits for a person is
// not among them.
func (r *Run) InFlight() int { return r.Asked + len(r.Slots) }

// Deltas takes the changes of the snapshot since the last call, in order. A preview has none.
func (r *Run) Deltas() []Delta {
	out := r.deltas
	r.deltas = nil
	if r.goal.DryRun {
		return nil
	}
	return out
}

// Result sums the update up once it has ended.
func (r *Run) Result() (Result, bool) {
	if r.Phase != phaseEnded || !r.idle() {
		return Result{}, false
	}
	_, pending := r.snap.States()
	res := Result{
		Status: StatusSucceeded, Changes: r.Changes, Error: r.FirstError, Pending: len(pending),
		IntegrityError: r.Integrity, NamesNothing: r.Misnamed,
	}
	switch {
	case r.FirstError != "":
		res.Status = StatusFailed
	case r.Cancelled:
		res.Status, res.Error = StatusCancelled, "the update was cancelled"+doubts(pending)
	}
	return res, true
}

// mostDoubts is how many operations doubts names.
const mostDoubts = 10

// doubts names what a cancelled update leaves for the next one to find out.
func doubts(pending []PendingOperation) string {
	if len(pending) == 0 {
		return ""
	}
	names := make([]string, 0, mostDoubts)
	for _, p := range pending[:min(len(pending), mostDoubts)] {
		names = append(names, p.Kind+" "+string(p.State.URN))
	}
	text := strings.Join(names, ", ")
	if more := len(pending) - len(names); more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return "; it is not known what became of " + text + ": the next update looks"
}

// Snapshot gives the states as they stand, in snapshot order, and the pending operations.
func (r *Run) Snapshot() ([]State, []PendingOperation) { return r.snap.States() }

// newOp numbers an operation.
func (r *Run) newOp() int {
	r.NextOp++
	return r.NextOp
}

// change applies a delta to the snapshot and records it.
func (r *Run) change(d Delta) {
	r.NextSeq++
	d.Seq = r.NextSeq
	r.snap.Apply(d)
	if d.State != nil && r.Broken == "" && !r.goal.DryRun { // a preview's states have no ids
		r.Broken = r.snap.flaw(d.State.Key)
	}
	if n := len(r.deltas); n > 0 && d.Kind == DeltaKeep {
		if last := &r.deltas[n-1]; last.Kind == DeltaKeep && last.First+last.Count == d.First {
			last.Count += d.Count
			return
		}
	}
	r.deltas = append(r.deltas, d)
}

// emit tells people something.
func (r *Run) emit(e Emit) { r.out = append(r.out, e) }

// diagnose reports a sentence about a URN ("" for the update as a whole).
func (r *Run) diagnose(severity string, u urn.URN, format string, args ...any) {
	r.emit(Emit{Kind: EmitDiagnostic, URN: u, Severity: severity, Message: fmt.Sprintf(format, args...)})
}
