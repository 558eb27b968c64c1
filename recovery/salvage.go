package recovery

import (
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/workflows"
)

// salvage collects what the history itself records, for one that cannot be replayed: the saves that may not have been
// made, and every create that was started and whose end is not saved, as a pending operation, with its result where
// that is known. Other steps need nothing: the next update decides them again.
func (h *history) salvage(outcomeOf workflows.OutcomeOf) (workflows.Salvage, error) {
	var in deployments.RunInput
	if err := h.read(h.events[0], h.events[0].GetWorkflowExecutionStartedEventAttributes().GetInput(),
		&in); err != nil {
		return workflows.Salvage{}, err
	}
	end := workflows.Salvage{Last: in.Saves}
	seq, ended, stored := 0, map[int]bool{}, map[int]bool{} // by operation, as the saves say
	for _, e := range h.events {
		if activityOf(e) != deployments.ActivitySave {
			continue
		}
		var save deployments.SaveInput
		if err := h.read(e, e.GetActivityTaskScheduledEventAttributes().GetInput(), &save); err != nil {
			return end, err
		}
		for _, d := range save.Deltas {
			seq = max(seq, d.Seq)
			ended[d.Op] = ended[d.Op] || d.Kind == engine.DeltaEnd
			stored[d.Op] = stored[d.Op] || d.Kind == engine.DeltaPut
		}
		if end.Last = save.Number; h.closed[e.GetEventId()].GetActivityTaskCompletedEventAttributes() == nil {
			end.Saves = append(end.Saves, save)
		}
	}
	rest := deployments.SaveInput{Update: in.Update, Base: in.Base, Number: end.Last + 1}
	change := func(d engine.Delta) {
		seq++
		d.Seq = seq
		rest.Deltas = append(rest.Deltas, d)
	}
	for _, step := range h.creates() {
		s := step.Step
		if ended[s.Op] {
			continue
		}
		change(engine.Delta{Kind: engine.DeltaEnd, Op: s.Op}) // it may have begun
		if stored[s.Op] {
			continue
		}
		pending := engine.PendingOperation{Op: s.Op, Kind: "creating", State: *s.New, Seed: s.Seed}
		switch answer, ok := outcomeOf(s.Op, step.Round); {
		case ok && (answer.Outcome == engine.OutcomeDone || answer.Outcome == engine.OutcomePartial):
			pending = engine.Answered(pending, answer)
		case ok && answer.Outcome != engine.OutcomeUndecidable: // it had no effect
			continue
		}
		change(engine.Delta{Kind: engine.DeltaBegin, Op: s.Op, Pending: &pending})
	}
	if len(rest.Deltas) > 0 {
		end.Saves, end.Last = append(end.Saves, rest), rest.Number
	}
	return end, nil
}

// creates returns the last attempt of each create, in the order of their first attempts.
func (h *history) creates() []deployments.StepInput {
	var all []deployments.StepInput
	at := map[int]int{}
	for _, e := range h.events {
		var in deployments.StepInput
		if !isStep(e) || h.read(e, e.GetActivityTaskScheduledEventAttributes().GetInput(), &in) != nil ||
			in.Step.Kind != engine.StepCreate && in.Step.Kind != engine.StepCreateReplacement {
			continue
		}
		i, again := at[in.Step.Op]
		if !again {
			i, all = len(all), append(all, in)
		}
		at[in.Step.Op], all[i] = i, in
	}
	return all
}
