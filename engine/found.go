package engine

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// What the stack does not have is looked for before it is created: it may be ours, if an answer, a save or the whole
// state was lost, or it may be somebody else's. The look goes with the plan, or with the create if there is no plan, so
// it costs no round trip. What was found is taken into the stack as an import is, and then compared with its goal.
//
//	nothing                    create
//	ours                       taken in: recovered
//	somebody else's            the entry fails as OwnedBySomeoneElse
//	somebody else's, adopted   taken in, and updated, so that it bears our mark

// Look asks to look for what a create would make, before it.
//
// Seeds are those of the generations under which it may exist, the newest first; First is the generation of the first
// of them. TakeOver: what is somebody else's is taken over.
type Look struct {
	Seeds    [][]byte `json:"seeds"`
	First    int      `json:"first,omitempty"`
	TakeOver bool     `json:"takeOver,omitempty"`
}

// Found is what a look has found in the place of a resource that is to be created.
//
// Generation is that of the seed by which it was found. Foreign: it is somebody else's; Owner says whose, for people,
// if that is known. Shown is the id as people may see it, if a part of it is secret.
type Found struct {
	ID         string `json:"id"`
	Shown      string `json:"shown,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Foreign    bool   `json:"foreign,omitempty"`
	Owner      string `json:"owner,omitempty"`
}

// LookedAt is how many generations are looked at if nothing says which was the last, as after the loss of all state.
const LookedAt = 32

// look returns what to look for before an entry is created; nil if nothing is.
func (r *Run) look(e *entry, old *State) *Look {
	if !r.goal.Look || r.goal.Kind != KindUp || old != nil || e.Found != nil || !e.New.Custom ||
		snapshot.IsProvider(e.New.Type) ||
		r.marked(e.URN).Seed != nil || r.goal.Identity == nil {
		return nil
	}
	l := &Look{First: r.generation(e.URN), TakeOver: r.takesOver(e)}
	last := max(l.First-1, 0) // its save may have been lost, or that of the deletion
	if l.TakeOver {
		l.First, last = max(l.First, LookedAt-1), 0
	}
	for g := l.First; g >= last; g-- {
		l.Seeds = append(l.Seeds, SeedOf(r.goal.Identity, e.URN, g))
	}
	return l
}

// takesOver reports whether --adopt names the resource of an entry, by its URN or its type.
func (r *Run) takesOver(e *entry) bool {
	return r.takeover.match(e.URN) || r.takeover.match(urn.URN(e.New.Type))
}

// found decides about what exists in the place of an entry's resource: it is imported, or is somebody else's. It was
// found by the entry's plan, or by the step op.
func (r *Run) found(e *entry, f Found, op *operation) {
	if op != nil && r.snap.IsPending(op.Op) { // nothing was created
		r.change(Delta{Kind: DeltaEnd, Op: op.Op})
	}
	if f.Foreign && !r.takesOver(e) {
		r.ownedBySomeoneElse(e, f, op)
		return
	}
	e.Found, e.Plan = &f, nil
	r.become(e, stageHeld, 0)
	if r.Stopped || e.Epoch != r.Epoch {
		r.refuse(e)
		return
	}
	severity := "info"
	if f.Foreign {
		severity = "warning"
	}
	r.diagnose(severity, e.URN, "%s%s", e.URN, f.told())
	r.decide(e)
}

// ownedBySomeoneElse fails an entry in whose place there is something that is not ours.
func (r *Run) ownedBySomeoneElse(e *entry, f Found, op *operation) {
	message := fmt.Sprintf("OwnedBySomeoneElse: %s exists already as %s%s, and was not made by this stack; give the "+
		"resource another name, import it with the option import, or take it over with --adopt", e.URN, f.shown(),
		f.owner())
	r.diagnose("error", e.URN, "%s", message)
	if op != nil {
		r.emitFailed(op, message)
		r.failEntry(e, message)
		return
	}
	r.bail(e, message)
}

// Parts of what is told of something that was found, and is taken in.
const existsAlready, recovered, takenOver, ownedBy = " exists already", ", and is this stack's: recovered ",
	", and is taken over: ", ", owned by "

// told completes the sentence about a resource that was found and is taken in. ParseFound reads it.
func (f Found) told() string {
	if f.Foreign {
		return existsAlready + f.owner() + takenOver + f.shown()
	}
	return existsAlready + recovered + f.shown()
}

// ParseFound reads what a diagnostic tells of a resource that was found and is taken in; ok is false if it tells
// anything else.
func ParseFound(u urn.URN, text string) (f Found, ok bool) {
	rest, ok := strings.CutPrefix(text, string(u)+existsAlready)
	if !ok {
		return f, false
	}
	if f.ID, ok = strings.CutPrefix(rest, recovered); ok {
		return f, true
	}
	owner, id, ok := strings.Cut(rest, takenOver)
	return Found{ID: id, Foreign: true, Owner: strings.TrimPrefix(owner, ownedBy)}, ok
}

func (f Found) shown() string { return cmp.Or(f.Shown, f.ID) }

// owner says whose it is, as a part of a sentence.
func (f Found) owner() string {
	if f.Owner == "" {
		return ""
	}
	return ownedBy + f.Owner
}

// takeIn completes the state of what was found and read. The next create is of the generation after it. What was taken
// over has a reason to be updated, although it may be as declared: it does not bear our mark yet. The update may be
// another one, if this one ends before.
func (r *Run) takeIn(e *entry) {
	if e.Found == nil || e.Kind != StepImport {
		return
	}
	m := r.mark(e.URN)
	m.Creates = max(m.Creates+e.Found.Generation+1-r.generation(e.URN), 0)
	if e.Found.Foreign {
		e.New.InitErrors = append(e.New.InitErrors, "it was taken over, and is not marked as this stack's yet")
	}
}
