package deployments

import (
	"encoding/json"
	"time"

	"github.com/deployctl/deployctl/engine"
)

// Names of workflows, signals, updates and queries.
const (
	WorkflowStack     = "Stack"
	WorkflowUpdate    = "Update"
	WorkflowRun       = "Run"
	WorkflowScheduled = "Scheduled"

	// Of Stack.
	UpdateSubmit   = "submit"   // UpdateRequest → Accepted
	UpdateWithdraw = "withdraw" // Withdrawal → bool: it was waiting and now is not
	UpdateReserve  = "reserve"  // → int: the next version, for what is no update
	UpdateRecover  = "recover"  // → nothing, once no update that closed without settling has the stack
	SignalFinished = "settled"  // UpdateFinished, from an Update workflow
	QueryQueue     = "queue"    // → StackInfo with Version, Active and Queued

	// Of Update and Run.
	SignalCancel  = "cancel"  // engine.Cancelled
	SignalResolve = "resolve" // engine.Resolved

	// Of Run: a resolution that is refused when nothing waits for it.
	UpdateResolve = "resolve" // engine.Resolved → nothing

	// Of Update, spoken by its Run.
	SignalLost    = "lost"    // WorkerLost
	SignalReached = "reached" // Reached

	// Of Run, spoken by the program's host.
	SignalMessages = "messages" // Messages
	UpdatePoll     = "poll"     // Poll → Replies
	QueryProgress  = "progress" // → Progress
)

// Search attributes.
const (
	AttributeOrg       = "Org"
	AttributeProject   = "Project"
	AttributeStack     = "Stack"
	AttributeKind      = "Kind"
	AttributeResult    = "Result"
	AttributeInitiator = "Initiator"
	AttributeDrift     = "Drift"
)

// SearchAttributes are all of them, by which updates are found in Temporal's visibility; each is a keyword.
var SearchAttributes = []string{
	AttributeOrg, AttributeProject, AttributeStack, AttributeKind, AttributeResult, AttributeInitiator, AttributeDrift,
}

// StackInput starts or continues a Stack workflow.
type StackInput struct {
	Stack StackName `json:"stack"`
	// Carried over continue-as-new.
	Queue  []QueuedUpdate `json:"queue,omitempty"`
	Active *QueuedUpdate  `json:"active,omitempty"`
	// Accepted answers by request id, the latest last, so that the same id gets the same answer.
	AcceptedRequests []AcceptedRequest `json:"answers,omitempty"`
	// Version is the last one given out.
	Version int `json:"version,omitempty"`
	// Trouble says why the active update, which closed without settling, has not been recovered yet.
	Trouble string `json:"trouble,omitempty"`
}

// QueuedUpdate is an accepted request.
type QueuedUpdate struct {
	Update  UpdateName    `json:"update"`
	Request UpdateRequest `json:"request"`
	// Since is when it was accepted, and from when it is active on, when it started.
	Since time.Time `json:"since,omitzero"`
}

// Withdrawal takes a waiting update out of its stack's queue.
type Withdrawal struct {
	Update UpdateName `json:"update"`
}

// WorkerLost says that work could not be started on a worker, or was lost there.
type WorkerLost struct {
	Worker string `json:"worker"`
}

// Reached answers an Update that has lost an epoch.
type Reached struct {
	Lost  int `json:"lost"`  // the epoch that was asked about
	Steps int `json:"steps"` // how much the update has done so far
}

// AcceptedRequest remembers what a request id was answered.
type AcceptedRequest struct {
	RequestID string   `json:"requestID"`
	Accepted  Accepted `json:"accepted"`
}

// UpdateFinished tells a Stack workflow that its update has settled.
type UpdateFinished struct {
	Update UpdateName    `json:"update"`
	Result engine.Result `json:"result"`
}

// UpdateInput starts an Update workflow.
type UpdateInput struct {
	Update  UpdateName    `json:"update"`
	Request UpdateRequest `json:"request"`
	// Withdrawn says why the update ends before it starts: it was cancelled, or superseded by a later one.
	Withdrawn string `json:"withdrawn,omitempty"`
	// Since is when a withdrawn update was accepted.
	Since time.Time `json:"since,omitzero"`
	// Next is the version as which a withdrawn update goes on, if it does.
	Next string `json:"next,omitempty"`
}

// ScheduledInput starts a run of a schedule.
type ScheduledInput struct {
	Schedule Schedule `json:"schedule"`
	// StackID is the identity of the stack that the schedule was made for: another one may get its name.
	StackID string `json:"stackID"`
	// ID tells the schedule from those that had its name before.
	ID string `json:"id,omitempty"`
}

// ScheduledOutput is what a run of a schedule came to; a failed one's error has it as a detail.
type ScheduledOutput struct {
	Updates []UpdateName `json:"updates,omitempty"`
	Drifted int          `json:"drifted,omitempty"` // resources
}

// RunOutput is what a Run came to, and the number of its last save, which Settled needs.
type RunOutput struct {
	Result engine.Result `json:"result"`
	Saves  int           `json:"saves"` // number of the last save
	// LastSave is that save, when it is small and was not made: settling makes it.
	LastSave *SaveInput `json:"rest,omitempty"`
}

// RunInput starts or continues a Run workflow.
type RunInput struct {
	Update UpdateName  `json:"update"`
	Goal   engine.Goal `json:"goal"`
	// Worker is the private task queue on which everything of this update runs.
	Worker string `json:"worker"`
	// Base is the stack version the update started from; 0 when there is none.
	Base int `json:"base"`
	// Retries are the stack's own policies.
	Retries Retries `json:"retries,omitempty"`
	// Suspended is the core, put away by continue-as-new; nil at the start.
	Suspended json.RawMessage `json:"suspended,omitempty"`
	// Spilled is where it was put instead, when it is too large for an input.
	Spilled *Spilled `json:"aside,omitempty"`
	// Epoch is that of the last message taken, Received its number, and Held are those that came before their turn.
	Epoch    int        `json:"epoch,omitempty"`
	Received int        `json:"received,omitempty"`
	Early    []Messages `json:"held,omitempty"`
	// Undelivered is what arrived while the core was put away.
	Undelivered Undelivered `json:"late,omitzero"`
	// Replies are not acknowledged yet; Cursor counts those of this epoch that are. Ended: the epoch's program exited.
	Replies []engine.Reply `json:"replies,omitempty"`
	Cursor  int            `json:"cursor,omitempty"`
	Ended   bool           `json:"ended,omitempty"`
	// Saves is the number of the last save.
	Saves int `json:"saves,omitempty"`
	// Rounds counts the issues of steps that were lost, by operation; all others are in their first.
	Rounds map[int]int `json:"rounds,omitempty"`
	// ForceContinue, if not zero, makes the Run continue as new at every quiet moment after so many events of the
	// core; for tests.
	ForceContinue int `json:"forceContinue,omitempty"`
}

// Undelivered is what a Run was sent and has not heard, of each kind in order.
type Undelivered struct {
	Cancels     []engine.Cancelled `json:"cancels,omitempty"`
	Resolutions []engine.Resolved  `json:"answers,omitempty"`
	Messages    []Messages         `json:"messages,omitempty"`
}

// Message is one thing that the program's host tells the Run. Exactly one field is set.
type Message struct {
	Started           *engine.RunStarted        `json:"started,omitempty"`
	Registered        *engine.Registered        `json:"registered,omitempty"`
	OutputsRegistered *engine.OutputsRegistered `json:"outputsRegistered,omitempty"`
	ReadRequested     *engine.ReadRequested     `json:"readRequested,omitempty"`
	Exited            *engine.ProgramExited     `json:"exited,omitempty"`
	// Refused is what the host has refused the program: the update fails whatever the program makes of it.
	Refused *engine.Refused `json:"refused,omitempty"`
	// Worker announces that the update lives on another worker from now on.
	Worker string `json:"worker,omitempty"`
	// Lost is an epoch that was lost: the Run answers with Reached.
	Lost int `json:"lost,omitempty"`
}

// Messages is one signal: everything that waited, in order. (Epoch, First) makes repeats recognisable.
type Messages struct {
	Epoch int       `json:"epoch"`
	First int       `json:"first"` // number of the first message in this epoch, from 1
	Items []Message `json:"items"`
}

// Poll asks for replies after the cursor; all up to it are acknowledged. It may carry messages, as a signal does.
type Poll struct {
	Epoch    int       `json:"epoch"`
	Cursor   int       `json:"cursor"`
	Messages *Messages `json:"messages,omitempty"`
}

// Replies answers a Poll.
type Replies struct {
	Replies []engine.Reply `json:"replies"`
	Cursor  int            `json:"cursor"` // to poll with next
	// Done: there will be no more.
	Done bool `json:"done,omitempty"`
}
