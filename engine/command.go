package engine

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Ready is what a Run wants done. Act on the fields in this order.
type Ready struct {
	// Changes go to the update's log in order; a preview has none. They need not be durable before Start: the driver's
	// own history holds the events that led to them, and is the write-ahead log. They must be durable before Suspend,
	// and before the update commits.
	Changes []Delta
	// Start each command once, in order, and pass its completion to Handle as the event of the same Op. A command must
	// be recorded in the driver's history before it has an effect.
	Start []Command
	// Replies answer the program. They, and Events, may be lost with the worker: the next epoch asks again.
	Replies []Reply
	// Events are for people, in order. Save them with Changes: an event may refer to a value that Changes hold.
	Events []Emit
}

// Empty reports that there is nothing to do.
func (r Ready) Empty() bool { return len(r.Changes)+len(r.Start)+len(r.Replies)+len(r.Events) == 0 }

// Command is something that may start now.
type Command interface{ command() }

// Provider says with which configured provider a call is made.
type Provider struct {
	// Ref is URN::ID. The package is the last part of the URN's type.
	Ref    string `json:"ref"`
	Inputs Bag    `json:"inputs"`
	// Extension, if not empty, is what the provider's process must have been extended by before the call; see State.
	Extension Bag `json:"extension,omitzero"`
}

// Plan asks for Check and Diff of one resource, and in a preview for its previewed outputs. The driver gathers plans
// into vectors. Answered by Planned.
//
// Old is nil for a resource that the stack does not have, which is planned only in a preview. The result of a Plan
// changes nothing by itself, so a plan may be made again if its worker is lost.
type Plan struct {
	Op       int          `json:"op"`
	URN      urn.URN      `json:"urn"`
	Goal     Registration `json:"goal"`
	Old      *State       `json:"old,omitempty"`
	Provider *Provider    `json:"provider,omitempty"` // nil when the resource is itself a provider
	Seed     []byte       `json:"seed"`
	// Recreate means that the core has decided to replace: check without the olds, do not diff.
	Recreate bool `json:"recreate,omitempty"`
	// Preview asks for the outputs that the planned create or update would have.
	Preview bool `json:"preview,omitempty"`
	// Analyze asks the policy packs about the checked inputs. A component is planned only for that: it has no Check and
	// no Diff. Aliases are all former names that the resource may have.
	Analyze bool      `json:"analyze,omitempty"`
	Aliases []urn.URN `json:"aliases,omitempty"`
	// Views are those of Old; only in a preview.
	Views []State `json:"views,omitempty"`
	// Look, if not nil, asks to look for the resource, which the stack does not have.
	Look *Look `json:"look,omitempty"`
	// Answer is the reply that the program gets if the plan shows no change, but for its Stables, which are the plan's.
	// The host that makes the plan may send it to the program at once, and then sets Planned.Answered.
	Answer *Reply `json:"answer,omitempty"`
}

// Cascade asks which of the candidates must be replaced when Root is deleted before it is replaced: those whose Diff
// says so when the properties that come from a member are unknown, and those that are deletedWith a member. Candidates
// are in dependency order. Answered by CascadePlanned.
type Cascade struct {
	Op         int                 `json:"op"`
	Root       State               `json:"root"`
	Candidates []State             `json:"candidates"`
	Providers  map[string]Provider `json:"providers"` // by reference
}

// Compare asks whether the new provider can go on managing what the old one made. Answered by ProviderDiffed. Only the
// new provider is asked; the old one is given by its inputs and need not be running.
type Compare struct {
	Op  int      `json:"op"`
	Old Provider `json:"old"`
	New Provider `json:"new"`
}

// AnalyzeStack asks the policy packs about what the stack holds. Answered by StackAnalyzed. It changes nothing, so it
// may be made again if its worker is lost. Outside a preview the states refer to values where they were saved: the
// changes that came before must be durable when it starts.
type AnalyzeStack struct {
	Op      int     `json:"op"`
	States  []State `json:"states"`
	Preview bool    `json:"preview,omitempty"`
	// DeleteBeforeReplace has the option of the resources that the program registers with it: no state keeps it.
	DeleteBeforeReplace map[urn.URN]bool `json:"deleteBeforeReplace,omitempty"`
}

// StepKind names a step as the display and the stored operations do.
type StepKind string

// The kinds of steps. The first group calls a provider and is issued as a Step; the second is done by the core itself
// and only shows in events.
const (
	StepCreate            StepKind = "create"
	StepCreateReplacement StepKind = "create-replacement"
	StepUpdate            StepKind = "update"
	StepDelete            StepKind = "delete"
	StepDeleteReplaced    StepKind = "delete-replaced"
	StepRead              StepKind = "read"
	StepReadReplacement   StepKind = "read-replacement"
	StepRefresh           StepKind = "refresh"
	StepImport            StepKind = "import"
	StepImportReplacement StepKind = "import-replacement"

	StepSame                 StepKind = "same"
	StepReplace              StepKind = "replace"
	StepReadDiscard          StepKind = "discard"
	StepDiscardReplaced      StepKind = "discard-replaced"
	StepRemovePendingReplace StepKind = "remove-pending-replace"
)

// Step asks for one call that may change the world, or for a read. Answered by StepFinished.
//
// Old is the stored state that the step continues or replaces; a plain create has none. New is what the state becomes,
// but for what the step itself finds; a delete and a refresh have none. References in Old have their present names.
//
// A Step that is issued again has the same Op and the same Seed, also on another worker: the driver numbers the rounds.
type Step struct {
	Op       int         `json:"op"`
	Kind     StepKind    `json:"kind"`
	URN      urn.URN     `json:"urn"`
	Type     tokens.Type `json:"type"`
	Old      *State      `json:"old,omitempty"`
	New      *State      `json:"new,omitempty"`
	Provider *Provider   `json:"provider,omitempty"` // nil when the resource is itself a provider
	Seed     []byte      `json:"seed,omitempty"`
	// Since is the version of the update that began the create: what an attempt before it has noted is of another create
	// with the same seed. 0: the seed is of this create alone.
	Since int `json:"since,omitempty"`
	// Views are those of Old, which an update, a delete or a refresh hands to the provider.
	Views []State `json:"views,omitempty"`
	// Check means that New.Inputs are the program's and must be checked first: a resource without an old state needs
	// no decision between Check and Create.
	Check bool `json:"check,omitempty"`
	// Look, if not nil, asks to look for the resource before it is created, in the first round.
	Look *Look `json:"look,omitempty"`
	// Found: an import of what was found in the place of New. It is read with the inputs that a create would have.
	Found bool `json:"found,omitempty"`
	// Adopt means that a person found the resource: it is read under the id of New instead of being created.
	Adopt bool `json:"adopt,omitempty"`
	// IgnoreChanges apply to an import, whose inputs are compared with the world.
	IgnoreChanges []string `json:"ignoreChanges,omitempty"`
	Preview       bool     `json:"preview,omitempty"`
	// Timeout in seconds from customTimeouts; zero means none.
	Timeout float64 `json:"timeout,omitempty"`
	// Answer is the reply that the program gets when the step is done, but for its ID and Object, which are the step's.
	// The host that executes the step may send it to the program at once, and then sets StepFinished.Answered.
	Answer *Reply `json:"answer,omitempty"`
	// Again: the resource is reconciled a second time, so others may have been made from the outputs that it had.
	Again bool `json:"again,omitempty"`
	// Await: the core waits for what exists and is not ready, so StepFinished.Awaited may say that. Without it, as from an
	// earlier build, what is not ready has not initialised.
	Await bool `json:"await,omitempty"`
	// Retries counts the repetitions that error hooks have asked for.
	Retries int `json:"retries,omitempty"`
}

// Hook asks to run a function of the program before or after a step, or after it failed. Answered by HookFinished with
// the same Op, Point and Nth.
//
// It runs in the program's process, at least once: if its worker is lost, it waits until the program has started again
// and has registered the hook, and runs again. Old and New are those of the step; after the step, New has what it
// found.
type Hook struct {
	Op    int         `json:"op"`
	Point HookPoint   `json:"point"`
	Nth   int         `json:"nth"` // among the hooks of the point
	Name  string      `json:"name"`
	Kind  StepKind    `json:"kind"` // of the step
	URN   urn.URN     `json:"urn"`
	Type  tokens.Type `json:"type"`
	Old   *State      `json:"old,omitempty"`
	New   *State      `json:"new,omitempty"`
	// Errors are those of the step's attempts, the latest first; only an error hook has them.
	Errors  []string `json:"errors,omitempty"`
	Preview bool     `json:"preview,omitempty"`
}

// Settle asks whether an attempt of the step, whose outcome is unknown, had its effect. Answered by StepFinished of the
// same Op, with done, partial, absent or undecidable.
//
// The attempt may still be running: the worker that settles must wait until it can have no effect any more. The answer
// "absent" must be certain, because the step may be made again; only if Again is set and a repeated create would find
// the resource, nothing needs to be looked for.
type Settle struct {
	Step Step `json:"step"`
	// Again: if it is absent, this update makes it again. Otherwise it must really be found out whether it is there.
	Again bool `json:"again,omitempty"`
	// After: the step was answered, with an error that tells this; it fails if it is absent.
	After *Evidence `json:"after,omitempty"`
}

// ResultKind tells the program how its registration went.
type ResultKind string

// The results of a registration.
const (
	ResultSuccess ResultKind = "success"
	ResultFail    ResultKind = "fail"
	ResultSkip    ResultKind = "skip"
)

// Reply answers a registration, a read or registered outputs.
//
// Epoch and Seq say which message of the program it answers. Result is "skip" if something that the resource depends on
// failed, or if targets leave the resource out; only the latter has an Object. Stables are the properties that keep
// their values whatever the step does.
type Reply struct {
	Epoch   int        `json:"epoch"`
	Seq     int        `json:"seq"`
	URN     urn.URN    `json:"urn,omitempty"`
	ID      string     `json:"id,omitempty"`
	Object  Bag        `json:"object"`
	Stables []string   `json:"stables,omitempty"`
	Result  ResultKind `json:"result"`
	// Unknown: in a preview, the resource's outputs are not known; properties missing from Object are unknown.
	Unknown bool `json:"unknown,omitempty"`
	// Inputs are those of the state, in an import: what the provider has read.
	Inputs *Bag `json:"inputs,omitempty"`
	// Error refuses the call; it has been reported as a diagnostic.
	Error string `json:"error,omitempty"`
}

// EmitKind names an event for people.
type EmitKind string

// What is emitted. The first three are about a step, the fourth about anything.
const (
	EmitPre        EmitKind = "pre"
	EmitOutputs    EmitKind = "outputs"
	EmitFailed     EmitKind = "failed"
	EmitDiagnostic EmitKind = "diagnostic"
	// EmitRemediation and EmitViolation are what policy packs have found out.
	EmitRemediation EmitKind = "remediation"
	EmitViolation   EmitKind = "violation"
)

// Emit is an event for people. The bags of Old and New may be references; the writer of the event log resolves them and
// redacts secrets.
//
// Op identifies a step: its pre and its end have the same number. Diagnostics have a Severity and a Message, and a URN
// if they are about one resource. Old is nil for what is new, New for what goes.
type Emit struct {
	Kind EmitKind    `json:"kind"`
	Op   int         `json:"op,omitempty"`
	Step StepKind    `json:"step,omitempty"`
	URN  urn.URN     `json:"urn,omitempty"`
	Type tokens.Type `json:"type,omitempty"`
	Old  *State      `json:"old,omitempty"`
	New  *State      `json:"new,omitempty"`
	// Unchanged: New equals Old, and was left out by Compact.
	Unchanged bool   `json:"unchanged,omitempty"`
	Diff      *Diff  `json:"diff,omitempty"`
	Severity  string `json:"severity,omitempty"` // info, warning, error
	Message   string `json:"message,omitempty"`

	Remediation *Remediation `json:"remediation,omitempty"`
	Violation   *Violation   `json:"violation,omitempty"`
}

// Abandon asks to cancel a pause, which is not answered then; or after a forced cancel a running step, or what policy
// packs analyse.
//
// The command still has to be answered: a step by StepFinished, cancelled if its call was not sent, unknown if it may
// have been, or with its real outcome if that came first; an analysis by Planned or StackAnalyzed, with an error.
type Abandon struct {
	Op int `json:"op"`
}

// Pause asks to wait, and nothing else: the resource is not ready, and is looked at after that. Answered by PauseEnded.
type Pause struct {
	Op      int         `json:"op"`
	URN     urn.URN     `json:"urn"`
	Type    tokens.Type `json:"type"`
	Seconds float64     `json:"seconds"`
	For     string      `json:"for"` // what is awaited, in words
}

func (Plan) command()         {}
func (Pause) command()        {}
func (AnalyzeStack) command() {}
func (Cascade) command()      {}
func (Compare) command()      {}
func (Step) command()         {}
func (Hook) command()         {}
func (Settle) command()       {}
func (Abandon) command()      {}
