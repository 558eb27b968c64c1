package engine

import "github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

// memory is the persistent state of a Run besides its snapshot. Suspend stores it; the names of its fields are the
// stored names. Maps are for look-up only: iterating over one would make the order of commands depend on chance.
//
// Entries, Seen, Early, Exit, Waits and Exports belong to the epoch: resetEpoch clears them. The rest belongs to the
// update and outlives the program. Deletions lists those that have ended as well, until it is compacted: deletionOf
// says which are open. Forced implies Cancelled, and Cancelled implies Stopped; an error stops a run without cancelling
// it.
//
// Invariant: every operation in Slots, Paused and Waiting is in Ops. Queue may hold some that were dropped.
// Invariant: once the run has stopped, Queue is empty, and every entry is done, has a running step, or has a plan with
// the reply that the program may have got.
type memory struct {
	Phase   phase
	Epoch   int
	NextOp  int
	NextSeq int // of deltas

	Entries []*entry // of this epoch, in order of registration
	Seen    []int    // sequence numbers of this epoch's other messages
	// Early are outputs whose entry, which a replica has answered, is not done.
	Early map[urn.URN][]OutputsRegistered `json:",omitempty"`
	// EarlyNames are the URNs of Early in the order in which they came; some may have been accepted since.
	EarlyNames []urn.URN `json:",omitempty"`
	Exit       *ProgramExited
	Waits      *ProgramWaits      `json:",omitempty"` // the program has registered everything, and waits
	Ops        map[int]*operation // in flight, or waiting for a slot
	Queue      []int              // steps that wait for a slot, in order
	Slots      []int              // steps that were issued and not answered, in order
	Asked      int                // plans, cascades and comparisons that were issued and not answered
	Paused     []int              `json:",omitempty"` // steps that look again after a pause, which is under way
	Waiting    []int              // undecidable creates that wait for a person

	Deletions []*deletion
	Lost      []Key              // found gone by a refresh that goes on
	Exports   *OutputsRegistered `json:",omitempty"` // the outputs of the stack, of this epoch
	Compared  map[string]bool    // provider comparisons by "old new": replace?

	marks map[urn.URN]*mark // what is known about each URN; stored as storedMarks

	Packs         []PolicyPack `json:",omitempty"` // that analysed something
	StackAnalysis int          `json:",omitempty"` // the operation that analyses the stack; 0 before it is issued
	Violated      string       `json:",omitempty"` // the first violation of a mandatory policy in a preview

	FirstError string
	FirstAbout urn.URN `json:",omitempty"` // the resource that FirstError is about
	About      urn.URN `json:",omitempty"` // the resource of the newest diagnostic that is an error
	Misnamed   bool    `json:",omitempty"` // FirstError is that the goal names a resource which is not there
	Refusals   int     `json:",omitempty"` // requests of the program that were refused: nothing is deleted after one
	Stopped    bool    // nothing new starts: an error, or cancelled
	Cancelled  bool
	Forced     bool
	Changes    map[string]int
	Integrity  string
	Broken     string `json:",omitempty"` // the first invariant that a change broke
}

// derive rebuilds what follows from memory: look-up tables, the list of runnable entries, the deletions that nothing
// blocks and the entry that sweeps. It runs when an epoch begins and when a suspended run resumes; both are moments at
// which no cascade and no comparison is in flight.
func (r *Run) derive() {
	r.byURN, r.bySeq = map[urn.URN]*entry{}, map[int]bool{}
	r.runnable = nil
	r.openFrom, r.cascading, r.sweeper, r.comparing = 0, 0, nil, nil
	r.repeated, r.bindings = map[urn.URN]*entry{}, map[urn.URN][]urn.URN{}
	r.snap.All(r.noteBinding)
	for _, e := range r.Entries {
		if e.Stage == stageSweeping {
			r.sweeper = e
		}
		r.list(e)
		if e.Again != nil {
			r.repeated[e.URN] = e
			continue
		}
		r.byURN[r.urnOf(e.Reg)], r.byURN[e.URN] = e, e // two names if it was left alone, see keepName
		r.bySeq[e.Seq] = true
	}
	for _, seq := range r.Seen {
		r.bySeq[seq] = true
	}
	// A deletion that has started has its step in the queue or in a slot, so it is not freed again.
	r.deletionOf, r.free = map[Key]*deletion{}, nil
	for _, d := range r.Deletions {
		r.deletionOf[d.Key] = d
		if d.Blockers == 0 && !d.Started {
			r.free = append(r.free, d.Key)
		}
	}
}
