package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
)

// suspended is the stored form of a Run: its memory, and how its snapshot differs from the base. Builds of one revision
// resume each other's runs, so the names of its fields and of those below stay; a field may be added if its zero value
// means what was true before.
type suspended struct {
	Memory storedMemory `json:"memory"`
	snapshot.Stored
	Out []heldOutput `json:"out,omitempty"`
}

// storedMemory is memory in its stored form, in which marks are maps.
type storedMemory struct {
	memory
	storedMarks
}

// heldOutput is a reply or an event that Ready has not returned yet. With nothing in flight, no command is left. Each
// has one of the two. There is no order between replies and events.
type heldOutput struct {
	Reply *Reply `json:"reply,omitempty"`
	Emit  *Emit  `json:"emit,omitempty"`
}

// Suspend returns the stored form of a run, from which Resume continues over the same base. Take the changes and make
// them durable before: the stored form refers to values where they were saved, and changes that were not taken are
// lost. It fails while a command is in flight. Whatever can be derived is not stored.
//
// The run stays usable: if it cannot be stored, or more events come first, the driver goes on with it and suspends it
// again. Replies and events that are ready are stored with it, so nothing of them is lost or sent twice.
func (r *Run) Suspend() (json.RawMessage, error) {
	if n := r.InFlight(); n > 0 {
		return nil, fmt.Errorf("a run with %d commands in flight cannot be suspended", n)
	}
	r.Deletions = r.openDeletions()
	out := suspended{
		Memory: storedMemory{r.lightMemory(), storeMarks(r.marks)}, Stored: r.snap.Store(!r.goal.DryRun),
	}
	for i := range r.ready.Replies {
		out.Out = append(out.Out, heldOutput{Reply: &r.ready.Replies[i]})
	}
	for i := range r.ready.Events {
		out.Out = append(out.Out, heldOutput{Emit: &r.ready.Events[i]})
	}
	return json.Marshal(out)
}

// lightMemory is the run's memory without what is not needed of an entry that has ended: its plan and its values.
// Without that, a suspended run would grow with the size of all values.
//
// The digests stay: by them a later epoch recognises the same goal. The entries of the run itself are not changed.
func (r *Run) lightMemory() memory {
	m := r.memory
	m.Entries = make([]*entry, len(r.Entries))
	for i, e := range r.Entries {
		if e.Stage == stageDone {
			light := *e
			light.Plan, light.Ahead, light.Seed, light.Members = nil, nil, nil, nil
			if light.Reg.Bound == nil { // otherwise it may be reconciled again without what was bound
				light.Reg.Inputs = e.Reg.Inputs.Light()
			}
			light.Reg.Trigger = e.Reg.Trigger.Light()
			light.New.Inputs, light.New.Outputs = e.New.Inputs.Light(), e.New.Outputs.Light()
			light.New.Trigger = e.New.Trigger.Light()
			light.Reg.Extension, light.New.Extension = e.Reg.Extension.Light(), e.New.Extension.Light()
			e = &light
		}
		m.Entries[i] = e
	}
	return m
}

// Resume continues a run that was suspended. Base and pending are those that New was given. What Ready had not returned
// comes with the next Ready. derive and relink run at the end, since they read what was restored.
func Resume(goal Goal, base []State, pending []PendingOperation, data json.RawMessage) (*Run, error) {
	var s suspended
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("a suspended run cannot be read: %w", err)
	}
	r := &Run{snap: snapshot.Restore(base, pending, s.Stored), memory: s.Memory.memory}
	s.Memory.load(r)
	r.setGoal(goal) // as in New, which gets the same
	for _, c := range s.Out {
		switch {
		case c.Reply != nil:
			r.ready.Replies = append(r.ready.Replies, *c.Reply)
		case c.Emit != nil:
			r.ready.Events = append(r.ready.Events, *c.Emit)
		}
	}
	r.derive()
	r.relink()
	return r, nil
}

// relink restores the sharing that the stored form cannot express: an operation and the list of entries mean the same
// entry. The operation of an entry of an earlier epoch keeps an entry of its own.
//
// Only operations with a step can have such an entry: queries are in flight, and then Suspend fails.
func (r *Run) relink() {
	for _, n := range slices.Concat(r.Queue, r.Slots, r.Waiting) {
		op := r.Ops[n]
		if op.Ended != nil && op.Inquiry == aboutStep { // an earlier build has not stored it
			op.Inquiry = aboutEarlier
			if e := op.Ended.Evidence; e != nil && e.Look {
				op.Inquiry = aboutError
			}
		}
		if op.Entry == nil {
			continue
		}
		if e := op.Entry; e.Epoch == r.Epoch && e.Order < len(r.Entries) && r.Entries[e.Order].Seq == e.Seq {
			op.Entry = r.Entries[e.Order]
		}
	}
}
