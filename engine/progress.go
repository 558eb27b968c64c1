package engine

import "github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

// Progress is a summary for people.
type Progress struct {
	Done    map[string]int `json:"done,omitempty"`
	Running []RunningStep  `json:"running,omitempty"` // in order of start
	Queued  int            `json:"queued,omitempty"`
	Waiting []urn.URN      `json:"waiting,omitempty"` // undecidable creates
}

// RunningStep is a step in flight.
type RunningStep struct {
	Op   int      `json:"op"`
	URN  urn.URN  `json:"urn"`
	Step StepKind `json:"step"`
	// Ahead: it was issued before its turn.
	Ahead bool `json:"ahead,omitempty"`
}

// Progress tells where the update stands.
func (r *Run) Progress() Progress {
	p := Progress{Done: r.Changes, Queued: len(r.Queue)}
	for i, op := range r.Slots {
		p.Running = append(p.Running, RunningStep{
			Op: op, URN: r.Ops[op].URN, Step: r.Ops[op].Step.Kind, Ahead: i >= r.goal.Parallel,
		})
	}
	for _, op := range r.Waiting {
		p.Waiting = append(p.Waiting, r.Ops[op].URN)
	}
	return p
}
