package engine

import "github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

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

// derive builds what follows from memory.
func (r *Run) derive() {
	r.byURN, r.bySeq = map[urn.URN]*entry{}, map[int]bool{}
	r.restless = nil
	for _, e := range r.Entries {
		r.list(e)
		r.byURN[e.URN] = e
		r.bySeq[e.Seq] = true
	}
	for _, seq := range r.Seen {
		r.bySeq[seq] = true
	}
	r.condemned, r.free = map[Key]*deletion{}, nil
	for _, d := range r.Deletions {
		r.condemned[d.Key] = d
		if d.Blockers == 0 && !d.Started {
			r.free = append(r.free, d.Key)
		}
	}
	if r.Gone == nil {
		r.Gone = map[urn.URN]bool{}
	}
	r.undone, r.cascading, r.sweeper, r.comparing = 0, 0, nil, nil
}
