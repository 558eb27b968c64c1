package projection

import (
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// issue takes in a step that the core has issued. Components have no steps of their own: nothing is done for them.
func (s *State) issue(r *Row, m apitype.StepEventMetadata, at time.Time) {
	s.release(r, at)
	for _, state := range []*apitype.StepEventStateMetadata{m.New, m.Old} {
		if state != nil && state.Custom {
			s.Issued = append(s.Issued, r)
			break
		}
	}
	s.turns(at)
}

// release takes in that a step has ended.
func (s *State) release(r *Row, at time.Time) {
	s.Issued = slices.DeleteFunc(s.Issued, func(other *Row) bool { return other == r })
	r.Turnless = false
	s.turns(at)
}

// turns says which steps run: the ones that were issued first, as many as the update runs at a time. The clock of the
// others starts when theirs comes.
func (s *State) turns(at time.Time) {
	for i, r := range s.Issued {
		turnless := s.Parallel > 0 && i >= s.Parallel
		if r.Turnless && !turnless {
			r.Started = at
		}
		r.Turnless = turnless
	}
}

// learn finds out how many steps may run at a time: if some steps that were issued wait, those that run are the limit.
func (s *State) learn(steps []deployments.RunningStep) {
	run := 0
	for _, step := range steps {
		if step.Attempt > 0 {
			run++
		}
	}
	if run > 0 && run < len(steps) {
		s.Parallel = run
	}
}
