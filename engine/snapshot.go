package engine

// Snapshot is a base with deltas applied: what a checkpoint holds.
// Invariant: see Verify.
type Snapshot struct {
	base    []State // with removed entries marked in gone
	gone    map[int]bool
	news    []State
	removed map[int]bool // of news
	where   map[Key]int  // index in news; base keys are their own index
	pending []PendingOperation
}

// NewSnapshot starts from the states of a base in their stored order. Their keys must be BaseKey of their index.
func NewSnapshot(base []State, pending []PendingOperation) *Snapshot {
	return &Snapshot{
		base: base, gone: map[int]bool{}, removed: map[int]bool{}, where: map[Key]int{}, pending: pending,
	}
}
