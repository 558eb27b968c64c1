package deployments

import (
	"encoding/json"
	"time"

	"github.com/deployctl/deployctl/engine"
)

// Names of workflows, signals, updates and queries, as they stand in recorded histories.
const (
	WorkflowStack     = "Stack"
	WorkflowUpdate    = "Update"
	WorkflowRun       = "Run"
	WorkflowScheduled = "Scheduled"

	// Of Stack.
	UpdateSubmit   = "submit"   // UpdateRequest → Accepted
	UpdateWithdraw = "withdraw" // Withdrawal → bool: false when the update did not wait
	UpdateReserve  = "reserve"  // → int: the next version, for an import or a rename
	UpdateRecover  = "recover"  // Recovery → nothing, once no closed update without a commit has the stack
	SignalFinished = "finished" // UpdateFinished, from an Update workflow
	QueryQueue     = "queue"    // → StackInfo with Version, Active and Queued

	// Of Update and Run.
	SignalCancel  = "cancel"  // engine.Cancelled
	SignalResolve = "resolve" // engine.Resolved

	// Of Run: a resolution, rejected when nothing waits for it.
	UpdateResolve = "resolve" // engine.Resolved → nothing

	// Of Update, sent by its Run.
	SignalLost    = "worker-lost"  // WorkerLost
	SignalReached = "changes-made" // Reached

	// Of Run, sent by the program's host.
	SignalMessages = "messages" // Messages
	UpdatePoll     = "poll"     // Poll → Replies
	QueryProgress  = "progress" // → Progress

	// Of Lease.
	QueryLease = "lease" // → ClientLease
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

// SearchAttributes are the attributes by which updates are found in Temporal's visibility; each is a keyword.
var SearchAttributes = []string{
	AttributeOrg, AttributeProject, AttributeStack, AttributeKind, AttributeResult, AttributeInitiator, AttributeDrift,
}

// StackInput starts or continues a Stack workflow.
type StackInput struct {
	Stack StackName `json:"stack"`
	// The following fields are carried over continue-as-new.

	// Continues is the workflow run that continued as new with this input, which is good for no other run; empty at the
	// start. Since is when the first of these runs started.
	Continues string    `json:"continues,omitempty"`
	Since     time.Time `json:"since,omitzero"`
	// StackID is the identity of the stack, as the head has said last.
	StackID string         `json:"stackID,omitempty"`
	Queue   []QueuedUpdate `json:"queue,omitempty"`
	Active  *QueuedUpdate  `json:"active,omitempty"`
	// Answered are the latest requests, newest last: a repeated request id gets the same answer.
	Answered []AnsweredRequest `json:"answers,omitempty"`
	// Version is the last version that was given out.
	Version int `json:"version,omitempty"`
	// Trouble says why the active update, which closed without a commit, has not been recovered yet.
	Trouble string `json:"trouble,omitempty"`
}

// QueuedUpdate is an accepted request.
type QueuedUpdate struct {
	Update  UpdateName    `json:"update"`
	Request UpdateRequest `json:"request"`
	// Since is when it was accepted, or, for the active update, when it started.
	Since time.Time `json:"since,omitzero"`
}

// Withdrawal takes a waiting update out of its stack's queue.
type Withdrawal struct {
	Update UpdateName `json:"update"`
}

// WorkerLost reports that an activity could not start on a worker, or was lost there.
type WorkerLost struct {
	Worker string `json:"worker"`
}

// Reached answers an Update that has lost an epoch.
type Reached struct {
	Lost  int `json:"lost"`  // the epoch that was lost
	Steps int `json:"steps"` // how many changes the update has made
}

// AnsweredRequest is the answer that a request id got.
type AnsweredRequest struct {
	RequestID string `json:"requestID"`
	// At is when the request was submitted last; in a head, when its update claimed the stack.
	At time.Time `json:"at,omitzero"`
	// Accepted names no update when the request was rejected: only a later submission of it may be accepted.
	Accepted Accepted `json:"accepted"`
}

// Rejected reports whether the request was rejected.
func (a AnsweredRequest) Rejected() bool { return a.Accepted.Update == UpdateName{} }

// Recovery asks a stack to recover its active update, if its workflow was closed.
type Recovery struct {
	// Discard is the update that is given up if nothing can recover it; the zero name: none.
	Discard UpdateName `json:"discard,omitzero"`
}

// UpdateFinished reports to a Stack workflow that its update has committed.
type UpdateFinished struct {
	Update UpdateName    `json:"update"`
	Result engine.Result `json:"result"`
	// Settle is to run before everything that waits; nil when nothing is to be settled.
	Settle *UpdateRequest `json:"settle,omitempty"`
}

// UpdateInput starts an Update workflow.
type UpdateInput struct {
	Update  UpdateName    `json:"update"`
	Request UpdateRequest `json:"request"`
	// Withdrawn says why the update ends before it starts: it was cancelled, or superseded by a later one.
	Withdrawn string `json:"withdrawn,omitempty"`
	// Since is when a withdrawn update was accepted.
	Since time.Time `json:"since,omitzero"`
	// Next is the version of the update that replaces a withdrawn one, if any.
	Next string `json:"next,omitempty"`
}

// ScheduledInput starts a run of a schedule.
type ScheduledInput struct {
	Schedule Schedule `json:"schedule"`
	// StackID is the identity of the stack of the schedule: a new stack may have the same name.
	StackID string `json:"stackID"`
	// ID distinguishes the schedule from earlier ones of the same name.
	ID string `json:"id,omitempty"`
}

// ScheduledOutput is the result of a run of a schedule; a detail of the error if it failed.
type ScheduledOutput struct {
	Updates []UpdateName `json:"updates,omitempty"`
	Drifted int          `json:"drifted,omitempty"` // resources
}

// RunOutput is the result of a Run, and what the commit needs.
type RunOutput struct {
	Result engine.Result `json:"result"`
	Saves  int           `json:"saves"` // number of the last save
	// LastSave is that save, when it is small and was not made: the commit makes it.
	LastSave *SaveInput `json:"rest,omitempty"`
}

// RunInput starts or continues a Run workflow.
type RunInput struct {
	Update UpdateName  `json:"update"`
	Goal   engine.Goal `json:"goal"`
	// Worker is the private task queue of the update's host.
	Worker string `json:"worker"`
	// Base is the stack version from which the update starts; 0 when there is none.
	Base int `json:"base"`
	// Retries are the stack's own retry policies.
	Retries Retries `json:"retries,omitempty"`
	// Names is the revision of the workflows that gave activities and signals the names by which the Update calls them;
	// 0 stands for the first.
	Names int `json:"names,omitempty"`
	// Trace is that of the update's request.
	Trace string `json:"trace,omitempty"`
	// Suspended is the core, suspended by continue-as-new; nil at the start.
	Suspended json.RawMessage `json:"suspended,omitempty"`
	// Spilled names the stored core, if it is too large for an input.
	Spilled *Spilled `json:"aside,omitempty"`
	// Epoch and Received are those of the last message that was delivered; Early are messages before their turn.
	Epoch    int        `json:"epoch,omitempty"`
	Received int        `json:"received,omitempty"`
	Early    []Messages `json:"held,omitempty"`
	// Undelivered is what arrived while the core was suspended.
	Undelivered Undelivered `json:"late,omitzero"`
	// Replies are not acknowledged yet; Cursor counts those of this epoch that are. Ended: the epoch's program has
	// exited.
	Replies []engine.Reply `json:"replies,omitempty"`
	Cursor  int            `json:"cursor,omitempty"`
	Ended   bool           `json:"ended,omitempty"`
	// Saves is the number of the last save.
	Saves int `json:"saves,omitempty"`
	// Rounds counts, by operation, the rounds of steps that were lost; other steps are in their first round.
	Rounds map[int]int `json:"rounds,omitempty"`
	// ForceContinue, if not 0, makes the Run continue as new after that many events of the core whenever nothing is in
	// flight; for tests.
	ForceContinue int `json:"forceContinue,omitempty"`
}

// Undelivered is what a Run has received and not delivered to the core, of each kind in order.
type Undelivered struct {
	Cancels     []engine.Cancelled `json:"cancels,omitempty"`
	Resolutions []engine.Resolved  `json:"answers,omitempty"`
	Messages    []Messages         `json:"messages,omitempty"`
}

// Message is one message of the program's host to the Run. Exactly one field is set.
type Message struct {
	Started           *engine.RunStarted        `json:"started,omitempty"`
	Registered        *engine.Registered        `json:"registered,omitempty"`
	OutputsRegistered *engine.OutputsRegistered `json:"outputsRegistered,omitempty"`
	ReadRequested     *engine.ReadRequested     `json:"readRequested,omitempty"`
	Waits             *engine.ProgramWaits      `json:"waits,omitempty"`
	Exited            *engine.ProgramExited     `json:"exited,omitempty"`
	// Refused is a request of the program that the host has rejected: the update fails, whatever the program does then.
	Refused *engine.Refused `json:"refused,omitempty"`
	// Worker announces the worker on which the update runs from now on.
	Worker string `json:"worker,omitempty"`
	// Lost is an epoch that was lost; the Run answers with Reached.
	Lost int `json:"lost,omitempty"`
}

// Messages is one signal: the queued messages, in order. (Epoch, First) identifies repeats.
type Messages struct {
	Epoch int       `json:"epoch"`
	First int       `json:"first"` // number of the first message in this epoch, from 1
	Items []Message `json:"items"`
}

// Poll asks for the replies after the cursor, and acknowledges those up to it. It may carry messages, as a signal does.
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
