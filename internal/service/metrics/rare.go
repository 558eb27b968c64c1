package metrics

import "github.com/deployctl/deployctl/engine"

// beginRare shows as 0 what is rare and what alerts look at: Prometheus does not see that a counter has grown which
// begins with 1.
func (m *Metrics) beginRare() {
	for _, op := range []engine.StepKind{engine.StepCreate, engine.StepCreateReplacement, engine.StepUpdate,
		engine.StepDelete, engine.StepDeleteReplaced} {
		m.steps.WithLabelValues(string(op), string(engine.OutcomeUnknown))
	}
	for _, op := range []string{opGet, opHead, opPut, opDelete, opList} {
		for _, reason := range []string{reasonCredentials, reasonUnavailable, reasonOther} {
			m.objectErrors.WithLabelValues(op, reason)
		}
	}
}
