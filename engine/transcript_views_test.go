package engine_test

import (
	"slices"
	"strings"

	"github.com/deployctl/deployctl/engine"
)

// viewStep reads "KIND:NAME[:prop=value][:PARENT]", and "KIND!NAME…" of a step that failed. A view of a transcript is
// of the type of components.
func viewStep(s string) engine.ViewStep {
	failed := strings.Contains(s, "!")
	parts := strings.Split(strings.Replace(s, "!", ":", 1), ":")
	v := &engine.View{Type: types["component"], Name: parts[1]}
	if len(parts) > 2 {
		v.Inputs, v.Outputs = bag(parts[2:3]), bag(parts[2:3])
	}
	if len(parts) > 3 {
		v.ParentType, v.ParentName = types["component"], parts[3]
	}
	step := engine.ViewStep{Kind: engine.StepKind(parts[0]), Old: v}
	if !slices.Contains([]engine.StepKind{engine.StepDelete, engine.StepDeleteReplaced}, step.Kind) {
		step.New = v
	}
	if failed {
		step.Error = parts[1] + " is broken"
	}
	return step
}

// views reads the steps that a plan publishes: "… publishing KIND:NAME KIND:NAME".
func views(what string) (rest string, steps []engine.ViewStep) {
	rest, list, _ := strings.Cut(what, " publishing ")
	for _, s := range strings.Fields(list) {
		steps = append(steps, viewStep(s))
	}
	return rest, steps
}
