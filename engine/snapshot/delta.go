package snapshot

import "github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

// DeltaKind says what a Delta does to the snapshot.
type DeltaKind string

// The kinds of deltas.
const (
	// DeltaBegin records a pending operation (Pending), in the place of what is recorded of it.
	DeltaBegin DeltaKind = "begin"
	// DeltaEnd removes the pending operation Op.
	DeltaEnd DeltaKind = "end"
	// DeltaPut adds State at the end of the new list, and removes Removes.
	DeltaPut DeltaKind = "put"
	// DeltaKeep moves Count base states from index First on, unchanged, to the end of the new list.
	DeltaKeep DeltaKind = "keep"
	// DeltaSet replaces the state with the key of State where it stands.
	DeltaSet DeltaKind = "set"
	// DeltaRemove removes Removes.
	DeltaRemove DeltaKind = "remove"
	// DeltaAlias renames From to To in every reference.
	DeltaAlias DeltaKind = "alias"
)

// Delta is one durable change of the snapshot. Applying the deltas of an update in order to its base gives its
// snapshot: the new list in order of sequence, then what is left of the base.
//
// Seq counts all deltas of an update without gaps, except that adjacent keeps are merged into the first. Which of the
// other fields are set is said at the kinds. Op is that of the operation which made State, if one did.
type Delta struct {
	Seq     int               `json:"seq"`
	Kind    DeltaKind         `json:"kind"`
	Op      int               `json:"op,omitempty"`
	State   *State            `json:"state,omitempty"`
	Pending *PendingOperation `json:"pending,omitempty"`
	Removes []Key             `json:"removes,omitempty"`
	First   int               `json:"first,omitempty"`
	Count   int               `json:"count,omitempty"`
	From    urn.URN           `json:"from,omitempty"`
	To      urn.URN           `json:"to,omitempty"`
	// Next is the generation of the next create of State.URN, if this one has made it, or found it made.
	Next int `json:"next,omitempty"`
}
