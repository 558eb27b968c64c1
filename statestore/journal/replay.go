package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// mostRebuilds limits the entries of a journal that make a new base of a whole state. A client writes one or two.
const mostRebuilds = 10

// item is a resource of the base, or one that an operation has made.
type item struct {
	raw        json.RawMessage
	references int // of raw
	gone       bool
	// marks that its JSON gets at the end
	deleted, pendingReplacement bool
}

// Replay is a replay in progress: it turns a base into the state after the entries that were added. It keeps of the
// entries only what is in that state, so it takes as much memory as the state.
type Replay struct {
	rest  State // without resources and pending operations
	base  []*item
	made  []*item // by operations, in order
	byOp  map[int64]*item
	begun map[int64]json.RawMessage // pending operations without an end
	// kept are pending creates of the base: only a person, or a settlement, may drop them.
	kept     []json.RawMessage
	refresh  bool
	rebuilds int

	size Size // of the state, with the resources that are not gone
}

// NewReplay begins a replay.
func NewReplay(base State) *Replay {
	r := &Replay{rest: base, byOp: map[int64]*item{}, begun: map[int64]json.RawMessage{}}
	r.rest.Resources, r.rest.Pending = nil, nil
	r.rest.Extensions = make(map[string]json.RawMessage, len(base.Extensions))
	for ref, extension := range base.Extensions {
		r.extend(ref, extension)
	}
	r.setBase(base.Resources, base.Pending)
	return r
}

// Size returns what the state has so far.
func (r *Replay) Size() Size { return r.size }

// grow counts a text that becomes part of the state in place of another one; both may be nil.
func (r *Replay) grow(raw, instead json.RawMessage) {
	r.size.Bytes += len(raw) - len(instead)
	r.size.References += References(raw) - References(instead)
}

func (r *Replay) setBase(resources, pending []json.RawMessage) {
	for _, it := range r.base {
		r.set(it, nil)
	}
	for _, raw := range r.kept {
		r.grow(nil, raw)
	}
	r.base, r.kept = make([]*item, len(resources)), nil
	for i, raw := range resources {
		r.base[i] = r.item(raw)
	}
	for _, raw := range pending {
		var operation struct {
			Type apitype.OperationType `json:"type"`
		}
		if json.Unmarshal(raw, &operation) == nil && operation.Type == apitype.OperationTypeCreating {
			r.kept = append(r.kept, raw)
			r.grow(raw, nil)
		}
	}
}

// item returns a new resource of the state.
func (r *Replay) item(raw json.RawMessage) *item {
	it := &item{}
	r.set(it, raw)
	return it
}

// set gives a resource its JSON; nil: it is gone. One that is gone stays so.
func (r *Replay) set(it *item, raw json.RawMessage) {
	if it.gone {
		return
	}
	r.size.Bytes += len(raw) - len(it.raw)
	if it.raw == nil && raw != nil {
		r.size.Resources++
	}
	if it.raw != nil && raw == nil {
		r.size.Resources--
	}
	before := it.references
	it.raw, it.references, it.gone = raw, References(raw), raw == nil
	r.size.References += it.references - before
}

// old returns a resource of the base; nil when there is none.
func (r *Replay) old(index *int64) *item {
	if index == nil || *index < 0 || *index >= int64(len(r.base)) {
		return nil
	}
	return r.base[*index]
}

// new returns the resource that an operation has made; nil when there is none.
func (r *Replay) new(operation *int64) *item {
	if operation == nil {
		return nil
	}
	return r.byOp[*operation]
}

// named returns those of a resource of the base and one that an operation has made that are there.
func (r *Replay) named(index, operation *int64) []*item {
	return slices.DeleteFunc([]*item{r.old(index), r.new(operation)}, func(it *item) bool { return it == nil })
}

// Add adds the next entry, by the order of their sequence numbers. An entry that refers to something that is not there,
// because the journal has a gap, changes what it can. After an error the state is that before the entry.
func (r *Replay) Add(e Entry) error {
	switch e.Kind {
	case apitype.JournalEntryKindRebuiltBaseState, apitype.JournalEntryKindStateMigration:
		if r.rebuilds++; r.rebuilds > mostRebuilds {
			return fmt.Errorf("journal entry %d: it is the %dth that changes the whole base, and at most %d are possible",
				e.Sequence, r.rebuilds, mostRebuilds)
		}
	}
	if err := r.add(e); err != nil {
		return fmt.Errorf("journal entry %d: %w", e.Sequence, err)
	}
	r.rest.ByteStrings = r.rest.ByteStrings || e.ByteStrings
	return nil
}

func (r *Replay) add(e Entry) error {
	switch e.Kind {
	case apitype.JournalEntryKindBegin:
		r.begin(e.Operation, e.Pending)
	case apitype.JournalEntryKindFailure:
		r.begin(e.Operation, nil)
	case apitype.JournalEntryKindSuccess:
		r.succeeded(e)
	case apitype.JournalEntryKindRefreshSuccess:
		r.begin(e.Operation, nil)
		r.refresh = true
		r.replace(e)
	case apitype.JournalEntryKindOutputs:
		if !isNull(e.State) {
			r.replace(e)
		}
	case apitype.JournalEntryKindWrite:
		if e.Snapshot != nil {
			r.rest.Secrets, r.rest.Snippets = e.Snapshot.Secrets, e.Snapshot.Snippets
			for ref, extension := range e.Snapshot.Extensions {
				r.extend(ref, extension)
			}
			r.setBase(e.Snapshot.Resources, e.Snapshot.Pending)
		}
	case apitype.JournalEntryKindSecretsManager:
		r.rest.Secrets = e.Secrets
	case apitype.JournalEntryKindSnippets:
		r.rest.Snippets = e.Snippets
	case apitype.JournalEntryKindExtensionParameterize:
		r.extend(e.ExtensionRef, e.Extension)
	case apitype.JournalEntryKindRebuiltBaseState:
		return r.rebuild()
	case apitype.JournalEntryKindStateMigration:
		r.migrate(e)
	}
	return nil
}

// begin makes an operation pending; nil: no more.
func (r *Replay) begin(operation int64, pending json.RawMessage) {
	if isNull(pending) {
		pending = nil
	}
	r.grow(pending, r.begun[operation])
	if pending == nil {
		delete(r.begun, operation)
		return
	}
	r.begun[operation] = pending
}

func (r *Replay) extend(ref string, extension json.RawMessage) {
	r.size.Bytes += len(extension) - len(r.rest.Extensions[ref])
	r.rest.Extensions[ref] = extension
}

// succeeded adds the result of an operation.
func (r *Replay) succeeded(e Entry) {
	r.begin(e.Operation, nil)
	if !isNull(e.State) {
		made := r.item(e.State)
		r.made, r.byOp[e.Operation] = append(r.made, made), made
	}
	for _, it := range r.named(e.RemoveOld, e.RemoveNew) {
		r.set(it, nil)
	}
	for _, it := range r.named(e.DeleteOld, e.DeleteNew) {
		it.deleted = true
	}
	for _, it := range r.named(e.ReplaceOld, e.ReplaceNew) {
		it.pendingReplacement = true
	}
	r.refresh = r.refresh || e.IsRefresh
}

// replace replaces a resource in its place, or drops it if the entry has no state. The marks of one of the base end
// with that.
func (r *Replay) replace(e Entry) {
	for _, it := range r.named(e.RemoveOld, e.RemoveNew) {
		if isNull(e.State) {
			r.set(it, nil)
			continue
		}
		r.set(it, e.State)
		it.deleted, it.pendingReplacement = false, false
	}
}

// rebuild makes what was replayed so far the base.
func (r *Replay) rebuild() error {
	state, err := r.State()
	if err != nil {
		return err
	}
	rebuilt := NewReplay(state)
	rebuilt.refresh, rebuilt.rebuilds = r.refresh, r.rebuilds
	*r = *rebuilt
	return nil
}

// migrate makes the base that a state migration has produced. A resource has one place at most.
func (r *Replay) migrate(e Entry) {
	for _, p := range e.BasePatches {
		if it := r.old(&p.Index); it != nil {
			r.set(it, p.State)
			it.deleted, it.pendingReplacement = false, false
		}
	}
	for _, p := range e.NewPatches {
		if it := r.new(&p.Operation); it != nil {
			r.set(it, p.State)
		}
	}
	var base []*item
	placed := map[*item]bool{}
	added := make([]*item, len(e.States))
	for _, place := range e.Layout {
		var it *item
		switch {
		case place.BaseIndex != nil:
			it = r.old(place.BaseIndex)
		case place.StateIndex != nil && *place.StateIndex >= 0 && *place.StateIndex < int64(len(e.States)):
			if added[*place.StateIndex] == nil {
				added[*place.StateIndex] = r.item(e.States[*place.StateIndex])
			}
			it = added[*place.StateIndex]
		}
		if it != nil && !placed[it] {
			base, placed[it] = append(base, it), true
		}
	}
	for _, it := range r.base {
		if !placed[it] {
			r.set(it, nil)
		}
	}
	r.base = base
}

// State returns the state after what was replayed: what operations made, then what is left of the base.
func (r *Replay) State() (State, error) {
	out := r.rest
	for _, it := range slices.Concat(r.made, r.base) {
		if it.gone {
			continue
		}
		raw, err := it.marked()
		if err != nil {
			return State{}, err
		}
		out.Resources = append(out.Resources, raw)
	}
	for _, operation := range slices.Sorted(maps.Keys(r.begun)) {
		out.Pending = append(out.Pending, r.begun[operation])
	}
	out.Pending = append(out.Pending, r.kept...)
	return tidy(out, r.refresh)
}

// marked returns the JSON of a resource with its marks.
func (it *item) marked() (json.RawMessage, error) {
	if !it.deleted && !it.pendingReplacement {
		return it.raw, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(it.raw, &fields); err != nil {
		return nil, err
	}
	if fields == nil {
		return nil, errors.New("a resource is missing")
	}
	if it.deleted {
		fields["delete"] = json.RawMessage("true")
	}
	if it.pendingReplacement {
		fields["pendingReplacement"] = json.RawMessage("true")
	}
	return json.Marshal(fields)
}
