package modeltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/engine"
)

// cloud is a fake one: it keeps every object, and takes note of what must never happen.
type cloud struct {
	objects map[string]object
	count   int
	// retained are the ids of objects that have left the snapshot and may stay.
	retained map[string]bool
	wrongs   []string
	// tangled: objects may use each other or what is going: two starts of one update have declared different things, or
	// targets or a change behind the service's back have left something as it was.
	tangled bool
}

type object struct {
	inputs string
	seed   string
}

// apply makes the effect of a step and gives its answer.
func (c *cloud) apply(s engine.Step) engine.StepFinished {
	ev := engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeDone}
	if s.Old != nil && s.New != nil && s.Old.Protect && s.New.Protect && s.Kind == engine.StepCreateReplacement {
		c.wrong("%s is protected and replaced", s.URN)
	}
	switch s.Kind {
	case engine.StepCreate, engine.StepCreateReplacement:
		if s.Adopt {
			ev.ID, ev.Outputs = s.New.ID, s.New.Inputs
			return ev
		}
		if id := c.find(s.Seed); id != "" {
			c.wrong("%s is created again, %s is there", s.URN, id)
		}
		c.count++
		ev.ID = fmt.Sprintf("i%d", c.count)
		c.objects[ev.ID] = object{s.New.Inputs.Digest, string(s.Seed)}
		ev.Outputs = s.New.Inputs
	case engine.StepUpdate:
		o, ok := c.objects[s.Old.ID]
		if !ok {
			c.wrong("%s is updated, but %s is gone", s.URN, s.Old.ID)
		}
		o.inputs = s.New.Inputs.Digest
		c.objects[s.Old.ID] = o
		ev.ID, ev.Outputs = s.Old.ID, s.New.Inputs
	case engine.StepImport, engine.StepImportReplacement:
		inputs := bag(c.objects[s.New.ID].inputs)
		if ev.ID, ev.Inputs, ev.Outputs = s.New.ID, &inputs, inputs; inputs.Digest == "" {
			c.wrong("%s is imported, but %s is gone", s.URN, s.New.ID)
		}
	case engine.StepDelete, engine.StepDeleteReplaced:
		c.remove(s)
	case engine.StepRefresh:
		if o, ok := c.objects[s.Old.ID]; ok {
			inputs := bag(o.inputs)
			ev.ID, ev.Inputs, ev.Outputs = s.Old.ID, &inputs, inputs
		}
	default:
		c.wrong("nobody asked for %s", s.Kind)
	}
	return ev
}

// find gives the object that was made with a seed.
func (c *cloud) find(seed []byte) string {
	for id, o := range c.objects { // there is at most one
		if o.seed == string(seed) {
			return id
		}
	}
	return ""
}

// remove deletes an object; in the delete phase nothing may use it any more.
func (c *cloud) remove(s engine.Step) {
	if _, ok := c.objects[s.Old.ID]; !ok {
		c.wrong("%s is deleted, but %s is gone", s.URN, s.Old.ID)
	}
	if s.Old.RetainOnDelete || s.Old.Protect && s.Kind == engine.StepDelete {
		c.wrong("%s is deleted, but protect=%v retain=%v", s.URN, s.Old.Protect, s.Old.RetainOnDelete)
	}
	delete(c.objects, s.Old.ID)
	if s.Kind == engine.StepDeleteReplaced && !s.Old.Delete || c.tangled {
		return
	}
	for id, o := range c.objects { // the order does not matter: one is enough
		if !c.retained[id] && slices.Contains(strings.Fields(strings.ReplaceAll(o.inputs, "=", " ")), s.Old.ID) {
			c.wrong("%s is deleted before %s, which uses it", s.Old.ID, id)
		}
	}
}

func (c *cloud) wrong(format string, args ...any) {
	c.wrongs = append(c.wrongs, fmt.Sprintf(format, args...))
}

// leaks compares the objects with the snapshot that should know them, or with the creates that nobody could decide on.
func (c *cloud) leaks(states []engine.State, pending []engine.PendingOperation) error {
	known := map[string]bool{}
	for _, p := range pending {
		known[c.find(p.Seed)] = true
	}
	for _, s := range states {
		if s.PendingReplacement {
			continue
		}
		if known[s.ID] = true; c.objects[s.ID] == (object{}) {
			return fmt.Errorf("%s should be there as %s", s.URN, s.ID)
		}
	}
	for id := range c.objects { // the order does not matter: one is enough
		if !known[id] && !c.retained[id] {
			return fmt.Errorf("nobody knows %s", id)
		}
	}
	return nil
}
