package engine

import "github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

// Progress is a summary for people. Nothing is decided by it, and it may be asked for at any time.
type Progress struct {
	Done    map[string]int `json:"done,omitempty"`
	Running []RunningStep  `json:"running,omitempty"` // in order of start
	Queued  int            `json:"queued,omitempty"`
	Waiting []urn.URN      `json:"waiting,omitempty"` // undecidable creates
	// NotReady are the resources that are waited for, in order of beginning.
	NotReady []NotReady `json:"notReady,omitempty"`
	// Cancelled: it ends because somebody has asked for that.
	Cancelled bool `json:"cancelled,omitempty"`
}

// NotReady is a resource that exists, and what it waits for.
type NotReady struct {
	URN urn.URN `json:"urn"`
	For string  `json:"for"`
}

// RunningStep is a step in flight.
type RunningStep struct {
	Op   int      `json:"op"`
	URN  urn.URN  `json:"urn"`
	Step StepKind `json:"step"`
	// Ahead: it was issued before its turn.
	Ahead bool `json:"ahead,omitempty"`
}

// Progress tells where the update stands. Steps whose outcome is being settled count as running. Of the steps that were
// issued, the first Goal.Parallel in order are shown as running and the others as ahead; the host decides which really
// run. Done is the run's own map: do not change it.
func (r *Run) Progress() Progress {
	p := Progress{Done: r.Changes, Queued: len(r.Queue), Cancelled: r.Cancelled}
	for _, n := range r.Paused {
		p.NotReady = append(p.NotReady, NotReady{r.Ops[n].URN, r.Ops[n].Awaits.For})
	}
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
