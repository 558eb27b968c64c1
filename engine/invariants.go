package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Check reports every invariant of the run's memory that does not hold, joined; nil when all hold. It visits everything
// that the run holds, so only tests call it: after every event, once Ready has returned nothing. The invariants stand
// in the comments of entry, operation, deletion, mark and memory; those of the snapshot are Verify's.
func (r *Run) Check() error {
	var c checker
	for i, e := range r.Entries {
		c.that(e.Order == i && (r.byURN[e.URN] == e || e.Again != nil), "%s is not found where it was registered", e.URN)
		r.checkEntry(&c, e)
	}
	r.checkOperations(&c)
	r.checkDeletions(&c)
	each(r.marks, func(u urn.URN, m *mark) {
		c.that(m.Claims == "" || r.marked(m.Claims).ClaimedBy == u, "%s continues %s, which %q does", u, m.Claims,
			r.marked(m.Claims).ClaimedBy)
	})
	return errors.Join(c...)
}

// checker collects the invariants that do not hold.
type checker []error

func (c *checker) that(holds bool, format string, args ...any) {
	if !holds {
		*c = append(*c, fmt.Errorf(format, args...))
	}
}

// checkEntry checks the invariants of entry, and that of memory about a run that has stopped.
func (r *Run) checkEntry(c *checker, e *entry) {
	purposes := map[stage]purpose{stagePlanning: forPlan, stageCascading: forCascade, stageStepping: forGoal}
	if want, waits := purposes[e.Stage]; waits {
		op := r.Ops[e.Op]
		c.that(op != nil && op.For == want && op.Entry == e, "%s is %s without its operation", e.URN, e.Stage)
	} else {
		c.that(e.Op == 0, "%s is %s and has operation %d", e.URN, e.Stage, e.Op)
	}
	if e.Stage == stageComparing {
		asked := func(op int) bool { return r.Ops[op] != nil && r.Ops[op].Pair == e.pair }
		c.that(slices.ContainsFunc(r.comparing, asked), "nothing compares the providers of %s", e.URN)
	}
	c.that(e.listed || !e.runnable(), "%s is %s and not listed", e.URN, e.Stage)
	c.that(e.listed == slices.Contains(r.runnable, e), "%s: listed is %v", e.URN, e.listed)
	// Each entry waits only for an earlier one, or a binding for its resource, which has been done before. So there is no
	// circle of entries that wait for each other.
	if w := e.blockedOn; w != nil {
		before := r.byURN[w.URN] == w && w.Order < e.Order
		again := r.repeated[w.URN] == w && e.Reg.Type == BindingType
		c.that(before || again, "%s waits for %s, which is not before it", e.URN, w.URN)
	}
	c.that(e.Stage != stageDone || e.Result != "", "%s is done without a result", e.URN)
	ends := e.Stage == stageDone || r.running(e) || r.promised(e)
	c.that(!r.Stopped || ends && len(r.Queue) == 0, "%s is %s although the run has stopped", e.URN, e.Stage)
}

// checkOperations checks the invariants of operations, and that what mutates is pending in the snapshot until it ends.
// Queue may still hold the number of a dropped operation, so the check goes by Ops and not by the lists. A preview
// changes nothing and has nothing pending.
func (r *Run) checkOperations(c *checker) {
	questions, places := 0, map[int]int{}
	for _, list := range [][]int{r.Queue, r.Slots, r.Paused, r.Waiting} {
		for _, n := range list {
			places[n]++
		}
	}
	for n := 1; n <= r.NextOp; n++ {
		op := r.Ops[n]
		switch {
		case op == nil:
		case op.Step == nil:
			questions++
		default:
			c.that(places[n] == 1, "operation %d (%s of %s) stands in %d lists", n, op.Step.Kind, op.URN, places[n])
		}
	}
	c.that(questions == r.Asked, "%d questions are counted, %d are open", r.Asked, questions)
	for _, n := range slices.Concat(r.Slots, r.Waiting) {
		op := r.Ops[n]
		if c.that(op != nil, "operation %d was issued and is forgotten", n); op == nil || r.goal.DryRun {
			continue
		}
		if op.Hooks != nil || op.Silent {
			continue
		}
		recorded := op.Op
		if op.For == forPending {
			recorded = op.Pending
		}
		found := r.snap.IsPending(recorded)
		c.that(found || pendingKinds[op.Step.Kind] == "", "%s of %s is not pending", op.Step.Kind, op.URN)
	}
}

// checkDeletions checks the invariants of deletion. It counts the blockers from the other side, by what each deletion
// frees, and compares: a difference would start a deletion too early, or never.
func (r *Run) checkDeletions(c *checker) {
	blockers := map[Key]int{}
	for _, d := range r.openDeletions() {
		for _, k := range d.Frees {
			blockers[k]++
		}
	}
	open := r.openDeletions()
	c.that(len(open) == len(r.deletionOf), "%d deletions are marked, %d listed", len(r.deletionOf), len(open))
	for _, d := range open {
		c.that(d.Blockers == blockers[d.Key], "%s waits for %d deletions, not %d", d.URN, blockers[d.Key], d.Blockers)
		c.that(!d.Started || d.Blockers == 0, "%s is being deleted and waits for %d deletions", d.URN, d.Blockers)
		c.that(d.Started || d.Blockers > 0 || slices.Contains(r.free, d.Key), "nothing starts the deletion of %s", d.URN)
	}
}
