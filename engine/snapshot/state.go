package snapshot

import (
	"encoding/json"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Bag refers to an immutable set of property values. The core hands bags on and compares digests; it never decodes one.
type Bag struct {
	// Digest is a keyed digest of the canonical plain form; empty only for an empty bag.
	Digest string `json:"d,omitempty"`
	// Inline is the value itself, when it is small. Its encoding belongs to the activities.
	Inline json.RawMessage `json:"v,omitempty"`
	// Ref says where the value is stored, when it is not inline.
	Ref Ref `json:"r,omitempty"`
}

// Same reports whether both bags hold equal values.
func (b Bag) Same(o Bag) bool { return b.Digest == o.Digest }

// Empty reports whether the bag holds no property at all.
func (b Bag) Empty() bool { return b.Digest == "" }

// Light is the bag without its inline value. It can be compared, but it can be decoded only if it has a Ref.
func (b Bag) Light() Bag { return Bag{Digest: b.Digest, Ref: b.Ref} }

// PropertyDependency lists the URNs that one input property was computed from, in order of first mention.
type PropertyDependency struct {
	Property string    `json:"property"`
	URNs     []urn.URN `json:"urns"`
}

// Timeouts are a resource's customTimeouts in seconds; zero means unset.
type Timeouts struct {
	Create float64 `json:"create,omitempty"`
	Update float64 `json:"update,omitempty"`
	Delete float64 `json:"delete,omitempty"`
	Read   float64 `json:"read,omitempty"`
}

// State is the header of a stored resource: every field of it but its bags' contents. Tests hold that each field is set
// from the registration, compared, stored, read back and shown, or say why not. Source: the deployment format version 3
// (apitype.ResourceV3).
//
// Fields that the core itself sets or goes by:
//
//   - Key identifies the state within an update. It is not part of the stored format.
//   - Delete: a replacement exists, and this copy waits for its deletion.
//   - PendingReplacement: the resource was deleted, and its replacement has not been created yet.
//   - External: the resource was read; the stack does not own it and never deletes it.
//   - Taint: a person asks for a replacement. The next up makes it.
//   - InitErrors: the resource exists but did not initialise. The next up updates it.
//   - RefreshBeforeUpdate: its provider wants it to be read before it is compared with a goal.
//   - ImportID: the id under which it was adopted, while the program still says so.
//   - Aliases: former names under which copies or children are still stored.
//   - ViewOf: the resource of which this state describes a part; see views.go.
type State struct {
	Key                     Key                  `json:"key"`
	URN                     urn.URN              `json:"urn"`
	Type                    tokens.Type          `json:"type"`
	Custom                  bool                 `json:"custom,omitempty"`
	Delete                  bool                 `json:"delete,omitempty"`
	ID                      string               `json:"id,omitempty"`
	Parent                  urn.URN              `json:"parent,omitempty"`
	Protect                 bool                 `json:"protect,omitempty"`
	Taint                   bool                 `json:"taint,omitempty"`
	External                bool                 `json:"external,omitempty"`
	Dependencies            []urn.URN            `json:"dependencies,omitempty"`
	PropertyDependencies    []PropertyDependency `json:"propertyDependencies,omitempty"`
	InitErrors              []string             `json:"initErrors,omitempty"`
	Provider                string               `json:"provider,omitempty"` // URN::ID, empty for components
	PendingReplacement      bool                 `json:"pendingReplacement,omitempty"`
	AdditionalSecretOutputs []string             `json:"additionalSecretOutputs,omitempty"`
	Aliases                 []urn.URN            `json:"aliases,omitempty"`
	Timeouts                *Timeouts            `json:"timeouts,omitempty"`
	ImportID                string               `json:"importID,omitempty"`
	RetainOnDelete          bool                 `json:"retainOnDelete,omitempty"`
	DeletedWith             urn.URN              `json:"deletedWith,omitempty"`
	ReplaceWith             []urn.URN            `json:"replaceWith,omitempty"`
	IgnoreChanges           []string             `json:"ignoreChanges,omitempty"`
	HideDiff                []string             `json:"hideDiff,omitempty"`
	ReplaceOnChanges        []string             `json:"replaceOnChanges,omitempty"`
	RefreshBeforeUpdate     bool                 `json:"refreshBeforeUpdate,omitempty"`
	Created                 string               `json:"created,omitempty"`  // RFC 3339, UTC
	Modified                string               `json:"modified,omitempty"` // RFC 3339, UTC
	SourcePosition          string               `json:"sourcePosition,omitempty"`
	Hooks                   Hooks                `json:"hooks,omitempty"`
	ViewOf                  urn.URN              `json:"viewOf,omitempty"`
	// Snippet is the id of the snippet that has registered it: a program of its own that the state keeps (`pulumi do`).
	Snippet string `json:"snippet,omitempty"`

	Inputs  Bag `json:"inputs"`
	Outputs Bag `json:"outputs"`
	// Trigger is the replacementTrigger as a bag with one property, "value".
	Trigger Bag `json:"trigger"`
	// TriggerValue is a keyed digest of the replacementTrigger without secretness: what decides whether it has changed.
	// Empty for null, which never triggers; UnknownTrigger while it is not known.
	TriggerValue string `json:"triggerValue,omitempty"`
	// Extension is the extension of its provider's package that the resource belongs to. Its Digest is the extensionRef
	// of the deployment format, the SHA-256 of its content.
	Extension Bag `json:"extension,omitzero"`
	// Rest refers to fields that only pass through (stack traces), as stored in the base.
	Rest Ref `json:"rest,omitempty"`
}

// IsView reports whether a state is a view.
func (s *State) IsView() bool { return s.ViewOf != "" }

// NeedsProvider reports whether a stored resource lacks the provider that manages it. Old and hand-made states have
// such resources. Provider resources need none, nor do the resources of the package "pulumi", which the engine itself
// implements.
func (s *State) NeedsProvider() (pkg string, needs bool) {
	pkg = PackageOf(s.Type)
	return pkg, s.Custom && s.Provider == "" && !IsProvider(s.Type) && pkg != "" && pkg != "pulumi"
}

// AdoptedID returns the id under which the resource was imported, which its provider may have replaced by another one.
func (s *State) AdoptedID() string {
	if s.ImportID != "" {
		return s.ImportID
	}
	return s.ID
}

// UnknownTrigger is the TriggerValue of a trigger that a preview does not know. It counts as changed.
const UnknownTrigger = "?"

// PendingOperation is a mutating call that was begun and whose outcome is not known. State is what the call was to make
// or, for a delete, what is stored. Op is the operation of the update that began it. In the snapshot of a later update
// it is a negative number instead, which no operation of that update has.
type PendingOperation struct {
	Op    int    `json:"op"`
	Kind  string `json:"kind"` // creating, updating, deleting, reading, importing
	State State  `json:"state"`
	// Seed is what made the physical name; a later attempt of the same create asks for the same name.
	Seed []byte `json:"seed,omitempty"`
	// Since is the version of the update that began the create; see Step.
	Since int `json:"since,omitempty"`
	// Done: a create whose answer is known although it could not be recorded; State holds what was created.
	Done bool `json:"done,omitempty"`
	// Reason is the error with which the answer of a create was lost; empty while none was, or none is known.
	Reason string `json:"reason,omitempty"`
}

// RepeatedBy reports that another operation is the same create, begun again.
func (p PendingOperation) RepeatedBy(by PendingOperation) bool {
	return p.Kind == by.Kind && p.State.URN == by.State.URN && len(p.Seed) > 0 && slices.Equal(p.Seed, by.Seed)
}
