// Package journal replays the journal that the stock CLI writes while it updates a stack: entries that each say what
// one step has changed, from which the state at any moment can be made. It works on the JSON of resources, so that
// fields that it does not know survive.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/rawjson"
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

// Checks judge what a resource, and a pending operation with its resource, is as JSON: why it cannot be in a state.
type Checks struct {
	Resource, Operation func(json.RawMessage) error
}

// Parse returns the entries of a JSON array, one at a time, so that a long array takes little memory. It reports, as
// CodeInvalid and at last, what no replay could use. So what a client writes is rejected when it writes it, and not
// when its update ends.
func Parse(data []byte, checks Checks) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if !json.Valid(data) || !rawjson.IsArray(data) {
			yield(Entry{}, deployments.Errorf(deployments.CodeInvalid, "these are not journal entries, which are a JSON array"))
			return
		}
		for raw := range rawjson.Elements(data) {
			var e Entry
			err := rawjson.Unmarshal(raw, &e)
			if err == nil {
				err = e.check(checks)
			}
			if err != nil {
				yield(e, deployments.Errorf(deployments.CodeInvalid, "journal entry %d: %w", e.Sequence, err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Operations are the kinds of pending operations, by Pulumi's names.
var Operations = []string{"creating", "updating", "deleting", "reading", "importing"}

// check reports what no replay could use: a resource that could not stand in a state, or one that is missing.
func (e Entry) check(checks Checks) error {
	if e.Sequence < 0 {
		return errors.New("this is not the number of a journal entry")
	}
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
		if err := checks.Operation(raw); err != nil {
			return err
		}
	}
	for _, raw := range resources {
		if isNull(raw) {
			return errors.New("a resource is missing")
		}
		if err := checks.Resource(raw); err != nil {
			return err
		}
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
