package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// fromPlan writes a saved plan.
func fromPlan(p *engine.SavedPlan) *api.SavedPlan {
	if p == nil {
		return nil
	}
	steps := make(map[string]string, len(p.Steps))
	for u, kind := range p.Steps {
		steps[string(u)] = string(kind)
	}
	return &api.SavedPlan{Steps: steps}
}

// toPlan reads a saved plan.
func toPlan(m *api.SavedPlan) *engine.SavedPlan {
	if m == nil {
		return nil
	}
	steps := make(map[urn.URN]engine.StepKind, len(m.GetSteps()))
	for u, kind := range m.GetSteps() {
		steps[urn.URN(u)] = engine.StepKind(kind)
	}
	return &engine.SavedPlan{Steps: steps}
}

func fromSettling(s *engine.Settling) *api.Settling {
	if s == nil {
		return nil
	}
	m := &api.Settling{}
	for _, a := range s.Answers {
		m.Answers = append(m.Answers, &api.Answer{Urn: string(a.URN), Id: a.ID})
	}
	return m
}

// toSettling reads what an update that only settles is told.
func toSettling(m *api.Settling) *engine.Settling {
	if m == nil {
		return nil
	}
	s := &engine.Settling{}
	for _, a := range m.GetAnswers() {
		s.Answers = append(s.Answers, engine.Resolved{URN: urn.URN(a.GetUrn()), ID: a.GetId()})
	}
	return s
}
