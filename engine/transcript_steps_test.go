package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// take finds the open command of a kind that is about a URN, and closes it.
func take[C engine.Command](w *stage, u urn.URN) (C, error) {
	i := slices.IndexFunc(w.open, func(c engine.Command) bool {
		_, ok := c.(C)
		return ok && (u == "" || about(c) == u)
	})
	if i < 0 {
		var none C
		return none, fmt.Errorf("no %T of %s is open", none, short(u))
	}
	c := w.open[i].(C)
	w.open = slices.Delete(w.open, i, i+1)
	return c, nil
}

// about is the URN that a command is about.
func about(c engine.Command) urn.URN {
	switch c := c.(type) {
	case engine.Plan:
		return c.URN
	case engine.Cascade:
		return c.Root.URN
	case engine.Step:
		return c.URN
	case engine.Settle:
		return c.Step.URN
	case engine.Pause:
		return c.URN
	}
	return ""
}

// finish reads the outcome of a step: "OUTCOME [KIND] NAME [prop=value…] [options]".
func (w *stage) finish(word, rest string) (engine.Event, error) {
	step, rest, err := w.takeStep(rest)
	if err != nil {
		return nil, err
	}
	ev := engine.StepFinished{Op: step.Op, Outcome: engine.Outcome(word)}
	switch word {
	case "done":
		return ev, w.effect(step, &ev, rest)
	case "answered": // it is done, and the program knows already
		if ev.Outcome, ev.Answered = engine.OutcomeDone, step.Answer != nil; !ev.Answered {
			return nil, fmt.Errorf("the answer to %s is not certain", step.URN)
		}
		err := w.effect(step, &ev, rest)
		w.names[short(step.URN)] = name{step.URN, ev.ID}
		return ev, err
	case "found": // it exists already
		found := foundAs(rest)
		ev.Outcome, ev.Found = engine.OutcomeDone, &found
	case "partial":
		ev.InitErrors = []string{rest}
		return ev, w.effect(step, &ev, "")
	case "fail":
		ev.Outcome = engine.OutcomeFailed
		var views string
		ev.Error, views, _ = strings.Cut(rest, " [")
		for _, o := range strings.Fields(strings.TrimSuffix(views, "]")) {
			ev.Views = append(ev.Views, viewStep(strings.TrimPrefix(o, "view=")))
		}
	case "doubt": // it failed, and may have had its effect
		ev.Outcome, ev.Error = engine.OutcomeFailed, rest
		ev.Evidence = &engine.Evidence{Class: engine.ErrorAmbiguous, By: "test", Look: true}
	case "ambiguous": // the same of what cannot be looked for
		ev.Outcome, ev.Error = engine.OutcomeFailed, rest
		ev.Evidence = &engine.Evidence{Class: engine.ErrorAmbiguous, By: "test"}
	case "invalid":
		ev.Outcome = engine.OutcomeFailed
		for _, f := range strings.Split(rest, "; ") {
			property, reason, _ := strings.Cut(f, ": ")
			ev.Failures = append(ev.Failures, engine.CheckFailure{Property: property, Reason: reason})
		}
	case "undecidable":
		ev.Error = "nothing tells whether it is there"
	case "unknown", "absent":
		ev.Error = rest
	case "cancelled":
	default:
		return nil, fmt.Errorf("there is no event %q", word)
	}
	return ev, nil
}

// foundAs reads "ID [generation=N] [owner=NAME]": with an owner it is somebody else's.
func foundAs(text string) engine.Found {
	id, options, _ := strings.Cut(text, " ")
	f := engine.Found{ID: id}
	for _, o := range strings.Fields(options) {
		key, value, _ := strings.Cut(o, "=")
		if key == "generation" {
			f.Generation, _ = strconv.Atoi(value)
		} else {
			f.Foreign, f.Owner = true, value
		}
	}
	return f
}

// hook reads "NAME of RESOURCE", "…: retry", "…: error why" or "…: warning why".
func (w *stage) hook(rest string) (engine.Event, error) {
	who, what, _ := strings.Cut(rest, ": ")
	name, of, _ := strings.Cut(who, " of ")
	i := slices.IndexFunc(w.open, func(c engine.Command) bool {
		h, ok := c.(engine.Hook)
		return ok && h.Name == name && h.URN == w.urnOf(of)
	})
	if i < 0 {
		return nil, fmt.Errorf("no hook %s of %s runs", name, of)
	}
	h := w.open[i].(engine.Hook)
	w.open = slices.Delete(w.open, i, i+1)
	ev := engine.HookFinished{Op: h.Op, Point: h.Point, Nth: h.Nth, Retry: what == "retry"}
	ev.Error, _ = strings.CutPrefix(what, "error ")
	ev.Warning, _ = strings.CutPrefix(what, "warning ")
	if !strings.HasPrefix(what, "error ") {
		ev.Error = ""
	}
	if !strings.HasPrefix(what, "warning ") {
		ev.Warning = ""
	}
	return ev, nil
}

// takeStep closes the open step or settling that "[KIND] NAME …" names, and gives the words that follow.
func (w *stage) takeStep(s string) (engine.Step, string, error) {
	words := strings.SplitN(s, " ", 3)
	kind := engine.StepKind("")
	if i := slices.IndexFunc(w.open, func(c engine.Command) bool {
		return stepOf(c).Kind == engine.StepKind(
			words[0])
	}); i >= 0 {
		kind, s = engine.StepKind(words[0]), strings.TrimSpace(strings.TrimPrefix(s, words[0]))
	}
	who, rest, _ := strings.Cut(s, " ")
	u := w.urnOf(who)
	i := slices.IndexFunc(w.open, func(c engine.Command) bool {
		step := stepOf(c)
		return step.Op != 0 && step.URN == u && (kind == "" || step.Kind == kind)
	})
	if i < 0 {
		return engine.Step{}, "", fmt.Errorf("no step of %s is open", who)
	}
	step := stepOf(w.open[i])
	w.open = slices.Delete(w.open, i, i+1)
	return step, strings.TrimSpace(rest), nil
}

func stepOf(c engine.Command) engine.Step {
	switch c := c.(type) {
	case engine.Step:
		return c
	case engine.Settle:
		return c.Step
	}
	return engine.Step{}
}

// effect fills in what a step that succeeded found: by default the inputs as outputs, and an id counted by name.
func (w *stage) effect(step engine.Step, ev *engine.StepFinished, rest string) error {
	it, err := parseItem("x " + rest)
	if err != nil {
		return err
	}
	switch step.Kind {
	case engine.StepCreate, engine.StepCreateReplacement:
		if !snapshot.IsProvider(step.Type) {
			ev.ID = step.New.ID // of an adopted resource
			if ev.ID == "" {
				w.made[short(step.URN)]++
				ev.ID = fmt.Sprintf("%s-%d", short(step.URN), w.made[short(step.URN)])
			}
		}
		ev.Outputs = step.New.Inputs
	case engine.StepDelete, engine.StepDeleteReplaced:
	case engine.StepRefresh:
		ev.ID, ev.Outputs, ev.Diff = step.Old.ID, step.Old.Outputs, &engine.Diff{Change: engine.ChangeNone}
	default:
		ev.ID, ev.Outputs = step.New.ID, step.New.Inputs
	}
	if len(it.props) > 0 {
		ev.Outputs = bag(it.props)
		if step.Kind == engine.StepRefresh || step.Kind == engine.StepImport ||
			step.Kind == engine.StepImportReplacement {
			ev.Inputs = &ev.Outputs
		}
		if step.Kind == engine.StepRefresh && !ev.Outputs.Same(step.Old.Outputs) {
			ev.Diff = &engine.Diff{Change: engine.ChangeUpdate}
		}
	}
	for _, o := range it.opts {
		key, value, _ := strings.Cut(o, "=")
		switch key {
		case "id":
			ev.ID = value
		case "refresh-before-update":
			ev.RefreshBeforeUpdate = true
		case "gone":
			ev.ID = ""
		case "no-diff": // its provider calls what differs no change
			ev.Diff.Change = engine.ChangeNone
		case "view":
			ev.Views = append(ev.Views, viewStep(value))
		case "awaits":
			ev.Awaited, ev.InitErrors = &engine.Awaited{For: value, After: 5}, []string{value}
		case "moved":
			ev.Moved = strings.Split(value, ",")
		default:
			return fmt.Errorf("an outcome has no option %q", o)
		}
	}
	return nil
}
