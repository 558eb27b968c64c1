package engine

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Event is something that happened. See Run.Handle. Events about the program carry its epoch, so those of a program
// that was lost are ignored; events that complete a command carry its Op.
type Event interface{ event() }

// RunStarted opens an epoch: a new start of the program over the state reached so far. Epochs count from 1. It must
// come before every message of its epoch, since a message of an epoch that has not begun is ignored.
type RunStarted struct {
	Epoch int `json:"epoch"`
}

// Registration is a resource that the program declares, after transforms and before Check. A nil Protect or
// RetainOnDelete means no; a nil DeleteBeforeReplace leaves the decision to the provider.
// Options that a resource inherits from its parent have been put into it by the host.
type Registration struct {
	Type   tokens.Type `json:"type"`
	Name   string      `json:"name"`
	Custom bool        `json:"custom,omitempty"`
	// a component whose children its provider registers
	Remote                  bool                 `json:"remote,omitempty"`
	Parent                  urn.URN              `json:"parent,omitempty"`
	Provider                string               `json:"provider,omitempty"` // URN::ID
	Inputs                  Bag                  `json:"inputs"`
	Dependencies            []urn.URN            `json:"dependencies,omitempty"`
	PropertyDependencies    []PropertyDependency `json:"propertyDependencies,omitempty"` // sorted by property
	Aliases                 []Alias              `json:"aliases,omitempty"`
	Protect                 *bool                `json:"protect,omitempty"`
	RetainOnDelete          *bool                `json:"retainOnDelete,omitempty"`
	DeleteBeforeReplace     *bool                `json:"deleteBeforeReplace,omitempty"`
	IgnoreChanges           []string             `json:"ignoreChanges,omitempty"`
	ReplaceOnChanges        []string             `json:"replaceOnChanges,omitempty"`
	HideDiff                []string             `json:"hideDiff,omitempty"`
	AdditionalSecretOutputs []string             `json:"additionalSecretOutputs,omitempty"`
	Timeouts                *Timeouts            `json:"timeouts,omitempty"`
	ImportID                string               `json:"importID,omitempty"`
	DeletedWith             urn.URN              `json:"deletedWith,omitempty"`
	ReplaceWith             []urn.URN            `json:"replaceWith,omitempty"`
	Hooks                   Hooks                `json:"hooks,omitempty"`
	Trigger                 Bag                  `json:"trigger"`
	TriggerValue            string               `json:"triggerValue,omitempty"` // see State
	Extension               Bag                  `json:"extension,omitzero"`     // see State
	SourcePosition          string               `json:"sourcePosition,omitempty"`
	// Digest covers everything above but SourcePosition; equal digests in two epochs are the same goal.
	Digest string `json:"digest"`
	// Bound are the inputs of the bindings of the resource, which add to its own; the core sets it.
	Bound []Bound `json:"bound,omitempty"`
}

// Alias is another name that a resource had: a URN, or the parts in which it differed.
// Parts that are empty are those of the registration itself; a URN overrides all parts.
type Alias struct {
	URN      urn.URN `json:"urn,omitempty"`
	Name     string  `json:"name,omitempty"`
	Type     string  `json:"type,omitempty"`
	Stack    string  `json:"stack,omitempty"`
	Project  string  `json:"project,omitempty"`
	Parent   urn.URN `json:"parent,omitempty"`
	NoParent bool    `json:"noParent,omitempty"`
}

// Registered says that the program asked for a resource. The answer is the Reply with the same epoch and sequence.
type Registered struct {
	Epoch int `json:"epoch"`
	Seq   int `json:"seq"`
	// At is when a component was registered, RFC 3339 in UTC; empty for other resources, whose steps have a time.
	At string `json:"at,omitempty"`
	Registration
	Ahead *Ahead `json:"ahead,omitempty"`
}

// OutputsRegistered attaches outputs to a component or to the stack. The answer is a Reply.
type OutputsRegistered struct {
	Epoch   int     `json:"epoch"`
	Seq     int     `json:"seq"`
	URN     urn.URN `json:"urn"`
	Outputs Bag     `json:"outputs"`
	Ahead   *Ahead  `json:"ahead,omitempty"`
}

// ReadRequested asks for an existing resource that this stack does not own. The answer is a Reply.
type ReadRequested struct {
	Epoch                   int         `json:"epoch"`
	Seq                     int         `json:"seq"`
	Type                    tokens.Type `json:"type"`
	Name                    string      `json:"name"`
	ID                      string      `json:"id"`
	Parent                  urn.URN     `json:"parent,omitempty"`
	Provider                string      `json:"provider,omitempty"`
	Inputs                  Bag         `json:"inputs"`
	Dependencies            []urn.URN   `json:"dependencies,omitempty"`
	AdditionalSecretOutputs []string    `json:"additionalSecretOutputs,omitempty"`
	SourcePosition          string      `json:"sourcePosition,omitempty"`
	Extension               Bag         `json:"extension,omitzero"` // see State
	Digest                  string      `json:"digest"`
}

// ProgramExited closes an epoch.
//
// It must come after all messages of the epoch: the core takes what was not registered before it for undeclared. Its
// epoch is 0 if the program could not be started at all.
type ProgramExited struct {
	Epoch int `json:"epoch"`
	// Error is empty when the program ended well. Otherwise the update fails and nothing is deleted.
	Error string `json:"error,omitempty"`
	// Bailed means that the error has been reported to the user already.
	Bailed bool `json:"bailed,omitempty"`
}

// ProgramWaits says that the program has registered everything, and waits until its hooks are not needed any more. The
// answer is a Reply; the program then exits.
type ProgramWaits struct {
	Epoch int `json:"epoch"`
	Seq   int `json:"seq"`
}

// HookFinished is the result of a Hook.
type HookFinished struct {
	Op    int       `json:"op"`
	Point HookPoint `json:"point"`
	Nth   int       `json:"nth"`
	// Error is why the hook failed, Warning the same of a hook whose errors are ignored.
	Error   string `json:"error,omitempty"`
	Warning string `json:"warning,omitempty"`
	// Retry: an error hook wants the step to be repeated.
	Retry bool `json:"retry,omitempty"`
}

// ChangeKind is what a plan decided for a resource that exists.
type ChangeKind string

// The results of a provider's Diff, after the resource's options have been applied to it.
const (
	ChangeNone    ChangeKind = "none"
	ChangeUpdate  ChangeKind = "update"
	ChangeReplace ChangeKind = "replace"
)

// PropertyDiff is one entry of a detailed diff. Kind is add, add-replace, delete, delete-replace, update or
// update-replace.
type PropertyDiff struct {
	Path      string `json:"path"`
	Kind      string `json:"kind"`
	InputDiff bool   `json:"inputDiff,omitempty"`
}

// CheckFailure is an invalid input property, as its provider reports it.
type CheckFailure struct {
	Property string `json:"property,omitempty"`
	Reason   string `json:"reason"`
}

// Diff is how a resource's goal differs from its stored state.
//
// It is the zero Diff if there was nothing to compare with: no stored state, or a plan with Recreate. ReplaceKeys,
// ChangedKeys and Detailed are for the display; what is done follows from Change and DeleteBeforeReplace.
type Diff struct {
	Change              ChangeKind     `json:"change,omitempty"`
	DeleteBeforeReplace bool           `json:"deleteBeforeReplace,omitempty"`
	ReplaceKeys         []string       `json:"replaceKeys,omitempty"`
	ChangedKeys         []string       `json:"changedKeys,omitempty"`
	StableKeys          []string       `json:"stableKeys,omitempty"`
	Detailed            []PropertyDiff `json:"detailed,omitempty"` // sorted by path
}

// Planned is the result of a Plan.
type Planned struct {
	Op int `json:"op"`
	// Error is set when the provider could not answer (not started, not configured, call failed).
	Error    string         `json:"error,omitempty"`
	Failures []CheckFailure `json:"failures,omitempty"`
	// Inputs are the checked inputs; of a replacement, those checked without the olds.
	Inputs Bag  `json:"inputs"`
	Diff   Diff `json:"diff"`
	// Outputs are those of an unchanged resource of which more is secret now than is stored; nil if nothing more is.
	Outputs *Bag `json:"outputs,omitempty"`
	// Preview holds the outputs that a previewed create or update would have, with unknowns; only in a preview.
	Preview   Bag    `json:"preview"`
	PreviewID string `json:"previewID,omitempty"`
	// Views are the steps of views that the previewed step would publish.
	Views []ViewStep `json:"views,omitempty"`
	// Answered means that the program has got Plan.Answer: no Reply follows.
	Answered bool `json:"answered,omitempty"`
	// Found is what exists already; only of a Plan with Look.
	Found *Found `json:"found,omitempty"`
	// Analysis is what the policy packs found out; only of a Plan with Analyze. Inputs are the remediated ones.
	Analysis *Analysis `json:"analysis,omitempty"`
}

// StackAnalyzed is the result of an AnalyzeStack.
type StackAnalyzed struct {
	Op int `json:"op"`
	// Error is set when a policy pack could not answer.
	Error    string    `json:"error,omitempty"`
	Analysis *Analysis `json:"analysis,omitempty"`
}

// Dependent is a member of a delete-before-replace cascade: a stored resource that must be replaced as well.
// Its state stands behind the root of the cascade, and was among the candidates.
type Dependent struct {
	Key  Key      `json:"key"`
	Keys []string `json:"keys,omitempty"` // the properties that force it
}

// CascadePlanned is the result of a Cascade, in dependency order (dependencies first).
type CascadePlanned struct {
	Op      int         `json:"op"`
	Error   string      `json:"error,omitempty"`
	Members []Dependent `json:"members,omitempty"`
}

// ProviderDiffed is the result of a Compare: whether the new provider can go on managing what the old one made.
type ProviderDiffed struct {
	Op      int    `json:"op"`
	Error   string `json:"error,omitempty"`
	Replace bool   `json:"replace,omitempty"`
}

// Outcome is what is known about a call.
type Outcome string

// The outcomes of a Step.
const (
	// OutcomeDone: answered; the effect is there.
	OutcomeDone Outcome = "done"
	// OutcomePartial: the resource exists but its initialisation failed; InitErrors say why.
	OutcomePartial Outcome = "partial"
	// OutcomeFailed: answered with an error; there was no effect, as far as Evidence tells.
	OutcomeFailed Outcome = "failed"
	// OutcomeUnknown: the answer was lost; there may have been an effect.
	OutcomeUnknown Outcome = "unknown"
	// OutcomeAbsent: settling found, by the rule of the type, that there was no effect. Only of a Settle.
	OutcomeAbsent Outcome = "absent"
	// OutcomeUndecidable: settling could not find out whether there was an effect. Only of a Settle.
	OutcomeUndecidable Outcome = "undecidable"
	// OutcomeCancelled: the call was cancelled before it was sent.
	OutcomeCancelled Outcome = "cancelled"
)

// StepFinished is the result of a Step or of a Settle.
//
// After done and partial of anything but a delete, Outputs are all outputs of the resource, not a difference. After
// every other outcome no state is stored, and Error or Failures say why.
type StepFinished struct {
	Op       int            `json:"op"`
	Outcome  Outcome        `json:"outcome"`
	Error    string         `json:"error,omitempty"`
	Failures []CheckFailure `json:"failures,omitempty"`
	ID       string         `json:"id,omitempty"` // an empty ID after a read means that the resource is gone
	// Inputs are set when the step checked them (Step.Check), read them, or imported them.
	Inputs  *Bag `json:"inputs,omitempty"`
	Outputs Bag  `json:"outputs"`
	// Foreign: what was found belongs to another owner. Only of a Settle.
	Foreign             bool     `json:"foreign,omitempty"`
	InitErrors          []string `json:"initErrors,omitempty"`
	RefreshBeforeUpdate bool     `json:"refreshBeforeUpdate,omitempty"`
	// At is when the effect happened, RFC 3339 in UTC with seconds' fraction.
	At string `json:"at,omitempty"`
	// Diff is what a refresh or an import found between state and world.
	Diff *Diff `json:"diff,omitempty"`
	// Answered means that the program has got Step.Answer: no Reply follows.
	Answered bool `json:"answered,omitempty"`
	// Views are the steps of views that the provider has published meanwhile, in their order.
	Views []ViewStep `json:"views,omitempty"`
	// Found is what exists already, of a Step with Look: nothing was created.
	Found *Found `json:"found,omitempty"`
	// Evidence is what the error of a failed step tells; nil if its provider was not asked.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Awaited: the resource exists and is not ready, for the reasons in InitErrors. Only of a Step with Await, done.
	Awaited *Awaited `json:"awaited,omitempty"`
	// Moved are the outputs that are no inputs and that an update changed, sorted; only of a Step with Again.
	Moved []string `json:"moved,omitempty"`
	// Attempt says of which attempt this is the result, from 1 on, so that no result counts for a later one. 0: a worker
	// of an earlier build does not say it. The core does not need it: its caller has checked it.
	Attempt int `json:"attempt,omitempty"`
}

// Cancelled asks the run to end: running steps finish, nothing new starts. Forced also cancels running steps. It may
// come in any phase and more than once.
type Cancelled struct {
	Forced bool `json:"forced,omitempty"`
}

// Resolved is a person's answer about an undecidable create.
//
// It is ignored unless a create of the URN waits for a person. What the person says about an id is confirmed by a read.
type Resolved struct {
	URN urn.URN `json:"urn"`
	// ID of the resource that was created; empty means that there is none.
	ID string `json:"id,omitempty"`
}

// PauseEnded says that a Pause is over.
type PauseEnded struct {
	Op int `json:"op"`
}

func (RunStarted) event()        {}
func (PauseEnded) event()        {}
func (Registered) event()        {}
func (OutputsRegistered) event() {}
func (ReadRequested) event()     {}
func (ProgramExited) event()     {}
func (Planned) event()           {}
func (CascadePlanned) event()    {}
func (ProviderDiffed) event()    {}
func (StepFinished) event()      {}
func (StackAnalyzed) event()     {}
func (HookFinished) event()      {}
func (ProgramWaits) event()      {}
func (Cancelled) event()         {}
func (Resolved) event()          {}
