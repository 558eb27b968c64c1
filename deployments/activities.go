package deployments

import "github.com/deployctl/deployctl/engine"

// Names of activities. Those of the first group run on any worker's shared queue; those of the second on the private
// queue of the worker that hosts the update, because plugins, assets and callbacks live there.
const (
	ActivityHead    = "Head"    // StackName → Head
	ActivityClaim   = "Claim"   // ClaimInput → Claimed
	ActivityHeaders = "Headers" // HeadersInput → Headers
	ActivitySave    = "Save"    // SaveInput → nothing
	ActivityCommit  = "Settled" // SettledInput → UpdateInfo
	// UpdateName → string: nothing moves the closed update any more; the task queue of its host
	ActivityStop        = "Stop"
	ActivityRecover     = "Recover"  // RecoverInput → Recovered
	ActivityEnter       = "Enter"    // UpdateInfo → nothing: an update that never began is part of its stack's history
	ActivitySpill       = "PutAside" // AsidePart → nothing: kept until the update has settled
	ActivityLoadSpilled = "TakeUp"   // AsidePart without Data → []byte
	ActivityEnded       = "Ended"    // UpdateName → nothing, once the update's workflow is closed or not known
	ActivitySubmit      = "Submit"   // SubmitInput → Accepted
	ActivityAwaitUpdate = "Follow"   // UpdateName → UpdateInfo, once the update has ended
	ActivityDriftReport = "Compile"  // CompileInput → Found

	ActivityProgram = "Program" // ProgramInput → ProgramOutput
	ActivityPlan    = "Plan"    // PlanInput → PlanOutput
	ActivityCascade = "Cascade" // CascadeInput → engine.CascadePlanned
	ActivityCompare = "Compare" // CompareInput → engine.ProviderDiffed
	ActivityStep    = "Step"    // StepInput → StepOutput
	ActivitySettle  = "Settle"  // SettleInput → engine.StepFinished
	ActivityRelease = "Release" // ReleaseInput → nothing
	ActivityPing    = "Ping"    // nothing → nothing, if the worker is alive
)

// Head is what head.json says: where the stack stands, and which update moves it.
type Head struct {
	Version int         `json:"version"`
	Active  *UpdateName `json:"active,omitempty"`
	// Running describes the active update, if that has begun.
	Running *UpdateInfo `json:"running,omitempty"`
	// Next is the next version to give out: greater than every version ever given out.
	Next int `json:"next"`
	// AcceptedRequests are what the latest requests were answered.
	AcceptedRequests []AcceptedRequest `json:"answers,omitempty"`
}

// ClaimInput asks a worker to host an update. The worker stores the request, sealed, so that any worker can host the
// update later, fences the head for it, and prepares the program's directory.
type ClaimInput struct {
	Update  UpdateName    `json:"update"`
	Request UpdateRequest `json:"request"`
	// Number counts the claims of this update from 1.
	Number int `json:"epoch"`
}

// Claimed says who hosts the update and from what it starts.
type Claimed struct {
	// Queue, if not empty, says that nothing was claimed: only workers that poll this queue may host the update.
	Queue string `json:"queue,omitempty"`

	Worker string      `json:"worker"` // private task queue
	Base   int         `json:"base"`   // stack version it starts from; 0 when there is none
	Goal   engine.Goal `json:"goal"`
	// HasProgram: the update starts the program.
	HasProgram bool `json:"hasProgram,omitempty"`
	// Retries are the stack's own policies.
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

// SaveInput makes deltas durable and events visible. Number counts the saves of an update from 1; saving the same
// number twice writes the same objects.
type SaveInput struct {
	Update UpdateName     `json:"update"`
	Base   int            `json:"base"`
	Number int            `json:"number"`
	Deltas []engine.Delta `json:"deltas,omitempty"`
	Events []engine.Emit  `json:"events,omitempty"`
}

// CommitInput ends an update: base and deltas are compacted into the next checkpoint, the head moves, the event log
// closes. Doing it twice is doing it once.
type CommitInput struct {
	Update   UpdateName    `json:"update"`
	Base     int           `json:"base"`
	Saves    int           `json:"saves"`          // number of the last save
	LastSave *SaveInput    `json:"rest,omitempty"` // that save, when it was not made yet
	Result   engine.Result `json:"result"`
	// Next is the version as which the update goes on, if it was moved.
	Next string `json:"next,omitempty"`
}

// Spilled is a suspended core that is stored in parts.
type Spilled struct {
	Name  string `json:"name"`
	Parts int    `json:"parts"`
}

// SpilledPart is one of its parts.
type SpilledPart struct {
	Update UpdateName `json:"update"`
	Name   string     `json:"name"`
	Part   int        `json:"part"`
	Data   []byte     `json:"data,omitempty"`
}

// RecoverInput ends an update whose workflow was closed before it settled: what it saved and what its history tells of
// steps that may have run becomes the next checkpoint. Doing it twice is doing it once.
type RecoverInput struct {
	Update UpdateName    `json:"update"`
	Status engine.Status `json:"status"`
	Error  string        `json:"error"` // what to tell of it
	// Next is the version as which it goes on, should it be one that was moved. Held: its stack knows what was asked
	// for, passphrase and all.
	Next         string `json:"next,omitempty"`
	RequestKnown bool   `json:"held,omitempty"`
}

// Recovered is an update that was recovered.
type Recovered struct {
	UpdateInfo
	// Request is what was asked for, without what is never stored.
	Request UpdateRequest `json:"request"`
}

// SubmitInput submits an update for a run of a schedule. The same request id submitted twice is one update.
type SubmitInput struct {
	ScheduledInput
	RequestID string `json:"requestID"`
	// DriftCheck asks for the look for drift of a schedule that remediates, not for the update that puts it right.
	DriftCheck bool `json:"look,omitempty"`
}

// DriftReportInput makes the report of a look for drift of what its update has logged.
type DriftReportInput struct {
	Check UpdateName `json:"look"`
	// Remediation is the update that has put it right, if one has.
	Remediation *UpdateName `json:"remedy,omitempty"`
}

// DriftSummary sums up a look for drift.
type DriftSummary struct {
	Drifted int `json:"drifted"` // resources
	// Details are what drifted, in Markdown, as much as people see at a glance.
	Details string `json:"details,omitempty"`
}

// ProgramInput runs the program once: one epoch.
type ProgramInput struct {
	Update UpdateName  `json:"update"`
	Base   int         `json:"base"`
	Goal   engine.Goal `json:"goal"`
	Epoch  int         `json:"epoch"`
}

// ProgramOutput says how an epoch ended. The Run has been told everything that the program said, and its verdict.
type ProgramOutput struct {
	// Lost means that the program or its host died without a verdict: another epoch may start.
	Lost  bool   `json:"lost,omitempty"`
	Error string `json:"error,omitempty"`
}

// PlanInput is a vector of plans, of at most some dozens.
type PlanInput struct {
	Update UpdateName    `json:"update"`
	Base   int           `json:"base"`
	Plans  []engine.Plan `json:"plans"`
}

// PlanOutput has the results in the order of the plans.
type PlanOutput struct {
	Plans []engine.Planned `json:"plans"`
	// Messages are what the program asked on when a plan answered it.
	Messages *Messages `json:"messages,omitempty"`
}

// StepOutput is how a step ended.
type StepOutput struct {
	engine.StepFinished
	// Messages are what the program asked on when the step answered it.
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

// StepInput is one call that may change the world.
type StepInput struct {
	Update UpdateName  `json:"update"`
	Base   int         `json:"base"`
	Step   engine.Step `json:"step"`
	// Round counts how often the core has issued this step, from 1: a settled, absent step is issued again.
	Round int `json:"round"`
}

// SettleInput asks what became of a step.
type SettleInput struct {
	Update UpdateName    `json:"update"`
	Base   int           `json:"base"`
	Settle engine.Settle `json:"settle"`
	// Round is that of the attempt whose outcome is unknown; 0 when the attempt was an earlier update's.
	Round int `json:"round,omitempty"`
}

// ReleaseInput ends the update's plugin processes on its worker and forgets its session there.
type ReleaseInput struct {
	Update UpdateName `json:"update"`
}

// Types of application errors that activities return, besides the codes of Error, and that workflows look at.
const (
	// ErrorNotDone and ErrorThrottled: the provider was asked, and the call had no effect; the server retries it.
	// NextRetryDelay may say when.
	ErrorNotDone   = "NotDone"
	ErrorThrottled = "Throttled"
	// ErrorPostponed: the attempt ended before it asked the provider for anything; the server begins another.
	ErrorPostponed = "Postponed"
	// ErrorUnknownOutcome, not retryable: the call may or may not have had its effect.
	ErrorUnknownOutcome = "UnknownOutcome"
	// ErrorNotStarted, not retryable: the activity reached a worker that does not host the update (any more), and
	// nothing was done.
	ErrorNotStarted = "NotStarted"
	// ErrorReset, not retryable: the activity is of a run that a reset made, which does nothing.
	ErrorReset = "Reset"
	// ErrorStepFailed, not retryable: a Step has failed, or has failed after an effect. Its StepOutput is a detail.
	ErrorStepFailed = "StepFailed"
	// ErrorEnded is the error of an Update or a Run that has ended as failed. Its result is a detail; of one that was
	// cancelled, it is a detail of Temporal's own error for that.
	ErrorEnded = "Failed"
)

// ResetText says what becomes of an update of which a workflow is reset.
const ResetText = "a workflow of the update was reset in Temporal, which would do again what was done: the update is " +
	"ended instead"
