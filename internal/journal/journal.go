// Package journal replays the journal that the stock CLI writes while it updates a stack: entries that each say what
// one step has changed, from which the state at any moment can be made. It works on the JSON of resources, so that
// fields that it does not know survive.
package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Version is the newest version of the journal that this package replays.
const Version = apitype.LatestJournalVersion

// State is a state of a stack: the parts of a deployment that a journal can change.
type State struct {
	Secrets    *apitype.SecretsProvidersV1
	Resources  []json.RawMessage
	Pending    []json.RawMessage
	Snippets   json.RawMessage
	Extensions map[string]json.RawMessage
	// ByteStrings means that a value may contain text that is not UTF-8, which nobody can see in a ciphertext.
	ByteStrings bool
}

// Entry is apitype.JournalEntry with the JSON of resources.
type Entry struct {
	Kind        apitype.JournalEntryKind `json:"kind"`
	Sequence    int64                    `json:"sequenceID"`
	Operation   int64                    `json:"operationID"`
	RemoveOld   *int64                   `json:"removeOld"`
	RemoveNew   *int64                   `json:"removeNew"`
	ReplaceOld  *int64                   `json:"pendingReplacementOld"`
	ReplaceNew  *int64                   `json:"pendingReplacementNew"`
	DeleteOld   *int64                   `json:"deleteOld"`
	DeleteNew   *int64                   `json:"deleteNew"`
	State       json.RawMessage          `json:"state"`
	Pending     json.RawMessage          `json:"operation"`
	IsRefresh   bool                     `json:"isRefresh"`
	ByteStrings bool                     `json:"requiresByteString"`

	Secrets      *apitype.SecretsProvidersV1 `json:"secretsProvider"`
	Snippets     json.RawMessage             `json:"snippets"`
	Snapshot     *snapshot                   `json:"newSnapshot"`
	ExtensionRef string                      `json:"extensionRef"`
	Extension    json.RawMessage             `json:"extension"`

	Layout      []apitype.JournalLayoutItem `json:"layout"`
	States      []json.RawMessage           `json:"states"`
	BasePatches []struct {
		Index int64           `json:"index"`
		State json.RawMessage `json:"state"`
	} `json:"baseStatePatches"`
	NewPatches []struct {
		Operation int64           `json:"operationID"`
		State     json.RawMessage `json:"state"`
	} `json:"newStatePatches"`
}

// snapshot is apitype.DeploymentV3 with the JSON of resources.
type snapshot struct {
	Secrets    *apitype.SecretsProvidersV1 `json:"secrets_providers"`
	Resources  []json.RawMessage           `json:"resources"`
	Pending    []json.RawMessage           `json:"pending_operations"`
	Snippets   json.RawMessage             `json:"snippets"`
	Extensions map[string]json.RawMessage  `json:"extensions"`
}

// Parse reads entries, and reports as CodeInvalid what of them no replay could use. So what a client writes is rejected
// when it writes it, and not when its update ends.
func Parse(data []byte) ([]Entry, error) {
	var entries []Entry
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "these are not journal entries: %w", err)
	}
	for _, e := range entries {
		if err := e.check(); err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "journal entry %d: %w", e.Sequence, err)
		}
	}
	return entries, nil
}

// Operations are the kinds of pending operations, by Pulumi's names.
var Operations = []string{"creating", "updating", "deleting", "reading", "importing"}

// check reports what no replay could use: a resource that could not stand in a state, or one that is missing.
func (e Entry) check() error {
	if e.Kind < 0 || e.Kind > apitype.JournalEntryKindStateMigration {
		return fmt.Errorf("its kind %d is not known", e.Kind)
	}
	resources, pending := slices.Clone(e.States), []json.RawMessage{e.Pending}
	if !isNull(e.State) {
		resources = append(resources, e.State)
	}
	if e.Snapshot != nil {
		resources, pending = append(resources, e.Snapshot.Resources...), append(pending, e.Snapshot.Pending...)
	}
	for _, p := range e.BasePatches {
		resources = append(resources, p.State)
	}
	for _, p := range e.NewPatches {
		resources = append(resources, p.State)
	}
	for _, raw := range pending {
		if isNull(raw) {
			continue
		}
		var operation struct {
			Resource json.RawMessage `json:"resource"`
			Type     string          `json:"type"`
		}
		if err := json.Unmarshal(raw, &operation); err != nil || !slices.Contains(Operations, operation.Type) {
			return fmt.Errorf("its operation is not one")
		}
		resources = append(resources, operation.Resource)
	}
	for _, raw := range resources {
		if err := checkResource(raw); err != nil {
			return err
		}
	}
	return nil
}

func checkResource(raw json.RawMessage) error {
	if isNull(raw) {
		return fmt.Errorf("a resource is missing")
	}
	var r struct {
		references
		Custom bool `json:"custom"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("a resource cannot be read: %w", err)
	}
	if err := token.CheckResource(r.URN, r.Type, r.Custom, r.Provider); err != nil {
		return fmt.Errorf("a resource (%.300q) cannot be in a state: %w", r.URN, err)
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// Replay returns the state that the entries make of a base. Their order does not matter, and neither do repeated ones.
// An entry that refers to something that is not there, because the journal has a gap, changes what it can.
func Replay(base State, entries []Entry) (State, error) {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	entries = slices.CompactFunc(entries, func(a, b Entry) bool { return a.Sequence == b.Sequence })
	r := newReplay(base)
	for _, e := range entries {
		if err := r.add(e); err != nil {
			return State{}, fmt.Errorf("journal entry %d: %w", e.Sequence, err)
		}
	}
	return r.state()
}

// item is a resource of the base, or one that an operation has made.
type item struct {
	raw  json.RawMessage
	gone bool
	// marks that its JSON gets at the end
	deleted, pendingReplacement bool
}

// replay is a replay in progress.
type replay struct {
	rest  State // without resources and pending operations
	base  []*item
	made  []*item // by operations, in order
	byOp  map[int64]*item
	begun map[int64]Entry // operations without an end
	// kept are pending creates of the base: only a person, or a settlement, may drop them.
	kept    []json.RawMessage
	refresh bool
}

func newReplay(base State) *replay {
	r := &replay{rest: base, byOp: map[int64]*item{}, begun: map[int64]Entry{}}
	r.rest.Extensions = maps.Clone(base.Extensions)
	if r.rest.Extensions == nil {
		r.rest.Extensions = map[string]json.RawMessage{}
	}
	r.setBase(base.Resources, base.Pending)
	return r
}

func (r *replay) setBase(resources, pending []json.RawMessage) {
	r.base, r.kept = make([]*item, len(resources)), nil
	for i, raw := range resources {
		r.base[i] = &item{raw: raw}
	}
	for _, raw := range pending {
		var operation struct {
			Type apitype.OperationType `json:"type"`
		}
		if json.Unmarshal(raw, &operation) == nil && operation.Type == apitype.OperationTypeCreating {
			r.kept = append(r.kept, raw)
		}
	}
}

// old returns a resource of the base; an empty one when there is none.
func (r *replay) old(index *int64) *item {
	if index == nil || *index < 0 || *index >= int64(len(r.base)) {
		return &item{}
	}
	return r.base[*index]
}

// new returns the resource that an operation has made; an empty one when there is none.
func (r *replay) new(operation *int64) *item {
	if operation != nil && r.byOp[*operation] != nil {
		return r.byOp[*operation]
	}
	return &item{}
}

func (r *replay) add(e Entry) error {
	r.rest.ByteStrings = r.rest.ByteStrings || e.ByteStrings
	switch e.Kind {
	case apitype.JournalEntryKindBegin:
		r.begun[e.Operation] = e
	case apitype.JournalEntryKindFailure:
		delete(r.begun, e.Operation)
	case apitype.JournalEntryKindSuccess:
		r.succeeded(e)
	case apitype.JournalEntryKindRefreshSuccess:
		delete(r.begun, e.Operation)
		r.refresh = true
		r.replace(e)
	case apitype.JournalEntryKindOutputs:
		if !isNull(e.State) {
			r.replace(e)
		}
	case apitype.JournalEntryKindWrite:
		if e.Snapshot != nil {
			r.rest.Secrets, r.rest.Snippets = e.Snapshot.Secrets, e.Snapshot.Snippets
			maps.Copy(r.rest.Extensions, e.Snapshot.Extensions)
			r.setBase(e.Snapshot.Resources, e.Snapshot.Pending)
		}
	case apitype.JournalEntryKindSecretsManager:
		r.rest.Secrets = e.Secrets
	case apitype.JournalEntryKindSnippets:
		r.rest.Snippets = e.Snippets
	case apitype.JournalEntryKindExtensionParameterize:
		r.rest.Extensions[e.ExtensionRef] = e.Extension
	case apitype.JournalEntryKindRebuiltBaseState:
		return r.rebuild()
	case apitype.JournalEntryKindStateMigration:
		r.migrate(e)
	}
	return nil
}

// succeeded adds the result of an operation.
func (r *replay) succeeded(e Entry) {
	delete(r.begun, e.Operation)
	if !isNull(e.State) {
		made := &item{raw: e.State}
		r.made, r.byOp[e.Operation] = append(r.made, made), made
	}
	r.old(e.RemoveOld).gone = true
	r.new(e.RemoveNew).gone = true
	r.old(e.DeleteOld).deleted = true
	r.new(e.DeleteNew).deleted = true
	r.old(e.ReplaceOld).pendingReplacement = true
	r.new(e.ReplaceNew).pendingReplacement = true
	r.refresh = r.refresh || e.IsRefresh
}

// replace replaces a resource in its place, or drops it if the entry has no state. The marks of one of the base end
// with that.
func (r *replay) replace(e Entry) {
	for _, it := range []*item{r.old(e.RemoveOld), r.new(e.RemoveNew)} {
		if isNull(e.State) {
			it.gone = true
		} else {
			*it = item{raw: e.State, gone: it.gone}
		}
	}
}

// rebuild makes what was replayed so far the base.
func (r *replay) rebuild() error {
	state, err := r.state()
	if err != nil {
		return err
	}
	rebuilt := newReplay(state)
	rebuilt.refresh = r.refresh
	*r = *rebuilt
	return nil
}

// migrate makes the base that a state migration has produced.
func (r *replay) migrate(e Entry) {
	for _, p := range e.BasePatches {
		*r.old(&p.Index) = item{raw: p.State, gone: r.old(&p.Index).gone}
	}
	for _, p := range e.NewPatches {
		r.new(&p.Operation).raw = p.State
	}
	var base []*item
	for _, place := range e.Layout {
		switch {
		case place.BaseIndex != nil:
			base = append(base, r.old(place.BaseIndex))
		case place.StateIndex != nil && *place.StateIndex >= 0 && *place.StateIndex < int64(len(e.States)):
			base = append(base, &item{raw: e.States[*place.StateIndex]})
		}
	}
	r.base = slices.DeleteFunc(base, func(it *item) bool { return it.raw == nil })
}

// state returns the state after what was replayed: what operations made, then what is left of the base.
func (r *replay) state() (State, error) {
	out := r.rest
	out.Resources, out.Pending = nil, nil
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
		if pending := r.begun[operation].Pending; !isNull(pending) {
			out.Pending = append(out.Pending, pending)
		}
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
		return nil, fmt.Errorf("a resource is missing")
	}
	if it.deleted {
		fields["delete"] = json.RawMessage("true")
	}
	if it.pendingReplacement {
		fields["pendingReplacement"] = json.RawMessage("true")
	}
	return json.Marshal(fields)
}
