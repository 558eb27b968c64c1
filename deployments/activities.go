package deployments

import "github.com/deployctl/deployctl/engine"

// Names of activities, as they stand in recorded histories and in Temporal's Web UI: a verb and an object.
// docs/temporal.md says what each does. Those of the first group run on any worker of a shared queue; those of the
// second on the private queue of the update's host, which has its plugins, assets and callbacks. Recovery by any build
// reads Save, Step and Settle in histories, so these keep the names that they have always had.
const (
	ActivityReadHead    = "ReadHead"    // StackName → Head
	ActivityClaimStack  = "ClaimStack"  // ClaimInput → Claimed
	ActivityReadHeaders = "ReadHeaders" // HeadersInput → Headers
	ActivitySave        = "Save"        // SaveInput → nothing
	// ActivityCommitUpdate ends an update whose Run has ended: CommitInput → UpdateInfo
	ActivityCommitUpdate = "CommitUpdate"
	// ActivityTerminateRun ends the Run of an update whose workflow is closed, and returns its host's queue: UpdateName →
	// string
	ActivityTerminateRun  = "TerminateRun"
	ActivityRecoverUpdate = "RecoverUpdate" // RecoverInput → Recovered
	ActivityAddToHistory  = "AddToHistory"  // Entry → nothing: stores an update that never began
	ActivitySpillPart     = "SpillPart"     // SpilledPart → nothing: stored until the update has committed
	// ActivityLoadSpilledPart returns what SpillPart has stored: SpilledPart without Data → []byte
	ActivityLoadSpilledPart = "LoadSpilledPart"
	// ActivityAwaitWorkflow ends once the update's workflow is closed or does not exist: UpdateName → nothing
	ActivityAwaitWorkflow = "AwaitWorkflow"
	ActivitySubmitUpdate  = "SubmitUpdate" // SubmitInput → Accepted
	ActivityAwaitUpdate   = "AwaitUpdate"  // UpdateName → UpdateInfo, once the update has ended
	ActivityReportDrift   = "ReportDrift"  // DriftReportInput → DriftSummary
	// ActivityRemoveStack removes the stack of a schedule that has destroyed it: ScheduledInput → nothing
	ActivityRemoveStack = "RemoveStack"

	ActivityRunProgram       = "RunProgram"       // ProgramInput → ProgramOutput
	ActivityPlanResources    = "PlanResources"    // PlanInput → PlanOutput
	ActivityPlanCascade      = "PlanCascade"      // CascadeInput → engine.CascadePlanned
	ActivityCompareProviders = "CompareProviders" // CompareInput → engine.ProviderDiffed
	ActivityRunHook          = "RunHook"          // HookInput → engine.HookFinished
	// ActivityAnalyzeStack asks the policy packs about the stack: AnalyzeStackInput → engine.StackAnalyzed
	ActivityAnalyzeStack     = "AnalyzeStack"
	ActivityStep             = "Step"             // StepInput → StepOutput
	ActivityRefreshResources = "RefreshResources" // RefreshInput → RefreshOutput
	ActivitySettle           = "Settle"           // SettleInput → engine.StepFinished
	// ActivityAskFormerWorker asks the worker that made a lost attempt, if it is not the host any more: SettleInput →
	// engine.StepFinished
	ActivityAskFormerWorker = "AskFormerWorker"
	ActivityEndSession      = "EndSession" // ReleaseInput → nothing
	ActivityPingWorker      = "PingWorker" // nothing → nothing, if the worker is alive
)

// Head is the content of head.json: the stack's identity, version and active update.
type Head struct {
	StackID string      `json:"stackID,omitempty"`
	Version int         `json:"version"`
	Active  *UpdateName `json:"active,omitempty"`
	// Running describes the active update, if it has begun.
	Running *UpdateInfo `json:"running,omitempty"`
	// Next is the next version: greater than every version that was given out.
	Next int `json:"next"`
	// Answered are the latest requests that were accepted.
	Answered []AnsweredRequest `json:"answers,omitempty"`
}

// ClaimInput asks a worker to host an update. The worker seals and stores the request, so that any worker can host the
// update later, claims the head with a new fence, and prepares the program's directory.
type ClaimInput struct {
	Update  UpdateName    `json:"update"`
	Request UpdateRequest `json:"request"`
	// Number counts the claims of this update from 1.
	Number int `json:"epoch"`
}

// Claimed says which worker hosts the update, and its base.
type Claimed struct {
	// Queue, if not empty, means that nothing was claimed: only workers that poll this queue may host the update.
	Queue string `json:"queue,omitempty"`

	Worker string      `json:"worker"` // private task queue
	Base   int         `json:"base"`   // stack version it starts from; 0 when there is none
	Goal   engine.Goal `json:"goal"`
	// HasProgram means that the update runs the program.
	HasProgram bool `json:"hasProgram,omitempty"`
	// Retries are the stack's own retry policies.
	Retries Retries `json:"retries,omitempty"`
}

// HeadersInput asks for a part of the base's headers, or of the update's own deltas after continue-as-new.
type HeadersInput struct {
	Update UpdateName `json:"update"`
	Base   int        `json:"base"`
	From   int        `json:"from"`
	Limit  int        `json:"limit"`
}

// Headers is a part of the base. Next is 0 after the last one.
type Headers struct {
	States  []engine.State            `json:"states"`
	Pending []engine.PendingOperation `json:"pending,omitempty"` // with the first part
	Next    int                       `json:"next,omitempty"`
	// Defaults are what engine.Goal.Defaults needs for these states; with the first part.
	Defaults []engine.DefaultProvider `json:"defaults,omitempty"`
}

// SaveInput makes deltas durable and events visible. Number counts the saves of an update from 1. Saving the same
// number again writes the same objects.
type SaveInput struct {
	Update UpdateName     `json:"update"`
	Base   int            `json:"base"`
	Number int            `json:"number"`
	Deltas []engine.Delta `json:"deltas,omitempty"`
	Events []engine.Emit  `json:"events,omitempty"`
}

// CommitInput commits an update: base and deltas become the next checkpoint, the head moves to it, and the event log
// ends. A repeated commit has no effect.
type CommitInput struct {
	Update   UpdateName    `json:"update"`
	Base     int           `json:"base"`
	Saves    int           `json:"saves"`          // number of the last save
	LastSave *SaveInput    `json:"rest,omitempty"` // set when it was not made yet
	Result   engine.Result `json:"result"`
	// Next is the version of the update that continues a migrated one.
	Next string `json:"next,omitempty"`
}

// Spilled names a suspended core, or the states of a stack, that are stored in parts.
type Spilled struct {
	Name  string `json:"name"`
	Parts int    `json:"parts"`
}

// SpilledPart is one part of what is spilled.
type SpilledPart struct {
	Update UpdateName `json:"update"`
	Name   string     `json:"name"`
	Part   int        `json:"part"`
	Data   []byte     `json:"data,omitempty"`
}

// RecoverInput ends an update whose workflow was closed before it committed: its saves, and the steps in its history
// that may have run, become the next checkpoint. A repeated recovery has no effect.
type RecoverInput struct {
	Update UpdateName    `json:"update"`
	Status engine.Status `json:"status"`
	Error  string        `json:"error"` // the update's error
	// Next is the version of the update that continues this one, if this one is to be migrated. RequestKnown means that
	// the Stack has the request, including a passphrase's key.
	Next         string `json:"next,omitempty"`
	RequestKnown bool   `json:"held,omitempty"`
	// Discard: if it cannot be recovered, the stack keeps the state from before it.
	Discard bool `json:"discard,omitempty"`
}

// Entry is an update that ended before it began.
type Entry struct {
	Info UpdateInfo `json:"info"`
	// StackID is the identity of the stack for which it was asked for.
	StackID string `json:"stackID"`
}

// Recovered describes a recovered update.
type Recovered struct {
	UpdateInfo
	// Request is the update's request, without what is never stored.
	Request UpdateRequest `json:"request"`
	// Settle is that of LeaseEnded.
	Settle *UpdateRequest `json:"settle,omitempty"`
}

// SubmitInput submits an update for a run of a schedule. A repeated request id is the same update.
type SubmitInput struct {
	ScheduledInput
	RequestID string `json:"requestID"`
	// DriftCheck asks for the drift check of a schedule that remediates, not for the remediation.
	DriftCheck bool `json:"look,omitempty"`
}

// DriftReportInput asks for the report of a drift check, made from the event log of its update.
type DriftReportInput struct {
	Check UpdateName `json:"look"`
	// Remediation is the update that has removed the drift, if there is one.
	Remediation *UpdateName `json:"remedy,omitempty"`
}

// DriftSummary sums up a drift check.
type DriftSummary struct {
	Drifted int `json:"drifted"` // resources
	// Details lists the drifted resources in Markdown, shortened for display.
	Details string `json:"details,omitempty"`
}

// ProgramInput runs the program once: one epoch.
type ProgramInput struct {
	Update UpdateName  `json:"update"`
	Base   int         `json:"base"`
	Goal   engine.Goal `json:"goal"`
	Epoch  int         `json:"epoch"`
}

// ProgramOutput says how an epoch ended. The Run has all messages of the program, and its exit.
type ProgramOutput struct {
	// Lost means that the program or its host died without an exit: another epoch may start.
	Lost bool `json:"lost,omitempty"`
	// OutOfSight means that its host has ended it, because Temporal did not accept the host's heartbeats any more.
	OutOfSight bool   `json:"outOfSight,omitempty"`
	Error      string `json:"error,omitempty"`
}

// PlanInput is a group of plans, at most some dozens.
type PlanInput struct {
	Update UpdateName    `json:"update"`
	Base   int           `json:"base"`
	Plans  []engine.Plan `json:"plans"`
}

// PlanOutput has the results in the order of the plans.
type PlanOutput struct {
	Plans []engine.Planned `json:"plans"`
	// Messages are requests that the program sent after a plan had replied to it.
	Messages *Messages `json:"messages,omitempty"`
}

// StepOutput is how a step ended.
type StepOutput struct {
	engine.StepFinished
	// Messages are requests that the program sent after the step had replied to it.
	Messages *Messages `json:"messages,omitempty"`
}

// CascadeInput plans a delete-before-replace cascade.
type CascadeInput struct {
	Update  UpdateName     `json:"update"`
	Base    int            `json:"base"`
	Cascade engine.Cascade `json:"cascade"`
}

// CompareInput compares two providers.
type CompareInput struct {
	Update  UpdateName     `json:"update"`
	Base    int            `json:"base"`
	Compare engine.Compare `json:"compare"`
}

// HookInput runs a function of the program.
type HookInput struct {
	Update UpdateName  `json:"update"`
	Base   int         `json:"base"`
	Hook   engine.Hook `json:"hook"`
}

// AnalyzeStackInput asks the policy packs about the stack. States that are too large for the input are spilled: as the
// JSON text of Command.States.
type AnalyzeStackInput struct {
	Update  UpdateName          `json:"update"`
	Base    int                 `json:"base"`
	Command engine.AnalyzeStack `json:"command"`
	Spilled *Spilled            `json:"spilled,omitempty"`
}

// StepInput is one call that may change a real resource.
type StepInput struct {
	Update UpdateName  `json:"update"`
	Base   int         `json:"base"`
	Step   engine.Step `json:"step"`
	// Round counts how often the core has issued this step, from 1; a step that settling found absent is issued again.
	Round int `json:"round"`
}

// Attempt returns what engine.StepFinished.Attempt is in the result.
func (in StepInput) Attempt() int { return in.Round + 1 }

// RefreshInput is a group of refreshes.
type RefreshInput struct {
	Update UpdateName    `json:"update"`
	Base   int           `json:"base"`
	Steps  []engine.Step `json:"steps"`
}

// RefreshOutput has the results of the refreshes that succeeded, and the operations of those that were not begun, which
// are to be gathered into groups again. The others are to be repeated, each as a step.
type RefreshOutput struct {
	Done     []engine.StepFinished `json:"done"`
	NotBegun []int                 `json:"notBegun,omitempty"`
}

// SettleInput asks for the outcome of a step whose answer was lost.
type SettleInput struct {
	Update UpdateName    `json:"update"`
	Base   int           `json:"base"`
	Settle engine.Settle `json:"settle"`
	// Round is that of the attempt with the unknown outcome; 0 when it was made by an earlier update.
	Round int `json:"round,omitempty"`
	// Worker is the private task queue of the worker that made the attempt; empty when it has ended.
	Worker string `json:"worker,omitempty"`
}

// Attempt returns what engine.StepFinished.Attempt is in the result. An attempt that ended with an error was in the
// round that follows the last lost one.
func (in SettleInput) Attempt() int {
	if in.Settle.After != nil {
		return in.Round + 2
	}
	return in.Round + 1
}

// ReleaseInput ends the update's session on its host, with its plugin processes.
type ReleaseInput struct {
	Update UpdateName `json:"update"`
}

// Types of application errors, besides the codes of Error, on which workflows act.
const (
	// ErrorNotDone and ErrorThrottled: the call had no effect; the server retries the activity, after NextRetryDelay if
	// set.
	ErrorNotDone   = "NotDone"
	ErrorThrottled = "Throttled"
	// ErrorPostponed: the attempt ended before it called the provider; the server retries it.
	ErrorPostponed = "Postponed"
	// ErrorUnknownOutcome, not retryable: it is unknown whether the call had its effect.
	ErrorUnknownOutcome = "UnknownOutcome"
	// ErrorNotStarted, not retryable: the worker does not host the update (any more), and nothing was done.
	ErrorNotStarted = "NotStarted"
	// ErrorReset, not retryable: a reset made the activity's workflow run, in which nothing is done.
	ErrorReset = "Reset"
	// ErrorStepFailed, not retryable: the step failed, perhaps after an effect. Its StepOutput is a detail.
	ErrorStepFailed = "StepFailed"
	// ErrorEnded is the error of a failed Update or Run; its result is a detail.
	ErrorEnded = "Failed"
)

// ResetText is the error of an update one of whose workflows was reset.
const ResetText = "a workflow of the update was reset in Temporal, which would do again what was done: the update is " +
	"ended instead"
