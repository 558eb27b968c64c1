package engine

import (
	"encoding/json"
	"fmt"
	"slices"
)

// suspended is the stored form of a Run: its memory, and how its snapshot differs from the base. Builds of one revision
// resume each other's runs, so the names of its fields and of those below stay; a field may be added if its zero value
// means what was true before.
type suspended struct {
	Memory  storedMemory       `json:"memory"`
	Base    []slot             `json:"base,omitempty"` // base states that were changed where they stand
	Gone    []run              `json:"gone,omitempty"` // base states that are gone or kept, run-length packed
	News    []slot             `json:"news,omitempty"`
	Pending []PendingOperation `json:"pending,omitempty"`
	Aliases []Delta            `json:"aliases,omitempty"`
	Out     []heldOutput       `json:"out,omitempty"`
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

// run is a stretch of base indexes.
type run struct{ First, Count int }

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
		Memory:  storedMemory{r.lightMemory(), storeMarks(r.marks)},
		Pending: r.snap.unfinished(), Aliases: r.snap.aliases,
	}
	for i := range r.snap.base {
		at := &r.snap.base[i]
		switch n := len(out.Gone); {
		case !at.Gone:
			if at.Changed {
				out.Base = append(out.Base, r.stored(*at))
			}
		case n > 0 && out.Gone[n-1].First+out.Gone[n-1].Count == i:
			out.Gone[n-1].Count++
		default:
			out.Gone = append(out.Gone, run{i, 1})
		}
	}
	for _, at := range r.snap.news {
		out.News = append(out.News, r.stored(at))
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
				light.Reg.Inputs = e.Reg.Inputs.light()
			}
			light.Reg.Trigger = e.Reg.Trigger.light()
			light.New.Inputs, light.New.Outputs = e.New.Inputs.light(), e.New.Outputs.light()
			light.New.Trigger = e.New.Trigger.light()
			light.Reg.Extension, light.New.Extension = e.Reg.Extension.light(), e.New.Extension.light()
			e = &light
		}
		m.Entries[i] = e
	}
	return m
}

// light is the bag without its inline value. It can be compared, but it can be decoded only if it has a Ref.
func (b Bag) light() Bag { return Bag{Digest: b.Digest, Ref: b.Ref} }

// stored refers to the bags of a saved state where the save put them. What a refresh made of a base state has no
// operation to be found under, and is carried as it is; so is what a preview made, which saves nothing.
//
// It works on its copy of the slot, whose bags it replaces; the snapshot keeps its values.
func (r *Run) stored(at slot) slot {
	if _, made := at.State.Key.Op(); !made || r.goal.DryRun {
		return at
	}
	for _, part := range Parts {
		if bag := at.State.Bag(part); bag.Inline != nil {
			bag.Inline, bag.Ref = nil, at.State.Key.Ref(part)
		}
	}
	return at
}

// Resume continues a run that was suspended. Base and pending are those that New was given. What Ready had not returned
// comes with the next Ready.
//
// The snapshot is rebuilt in an order of its own. What is gone leaves the base first, because a base state that was
// kept has the same key in the new list. The new list is rebuilt slot by slot, with those that are gone, so that
// positions are what they were. Renames come last, and their order is that in which they happened. derive and relink
// run at the end, since they read what was restored.
func Resume(goal Goal, base []State, pending []PendingOperation, data json.RawMessage) (*Run, error) {
	var s suspended
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("a suspended run cannot be read: %w", err)
	}
	r := &Run{snap: NewSnapshot(base, pending), memory: s.Memory.memory}
	s.Memory.load(r)
	r.setGoal(goal) // as in New, which gets the same
	for _, g := range s.Gone {
		for i := g.First; i < g.First+g.Count; i++ {
			r.snap.remove(BaseKey(i))
		}
	}
	for _, at := range s.Base {
		r.snap.set(at.State)
	}
	for _, at := range s.News {
		r.snap.put(at.State)
		if at.Gone {
			r.snap.remove(at.State.Key)
		}
	}
	r.snap.pending = slices.Clone(s.Pending)
	for _, d := range s.Aliases {
		r.snap.Apply(d)
	}
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
		if op.Entry == nil {
			continue
		}
		if e := op.Entry; e.Epoch == r.Epoch && e.Order < len(r.Entries) && r.Entries[e.Order].Seq == e.Seq {
			op.Entry = r.Entries[e.Order]
		}
	}
}
