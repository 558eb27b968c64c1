package deployments

import (
	"encoding/json"

	"github.com/deployctl/deployctl/engine"
)

// Names of workflows, signals, updates and queries.
const (
	WorkflowStack  = "Stack"
	WorkflowUpdate = "Update"
	WorkflowRun    = "Run"

	// Of Stack.
	UpdateSubmit   = "submit"  // UpdateRequest → Accepted
	SignalFinished = "settled" // UpdateFinished, from an Update workflow

	// Of Update and Run.
	SignalCancel  = "cancel"  // engine.Cancelled
	SignalResolve = "resolve" // engine.Resolved

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

// StackInput starts or continues a Stack workflow.
type StackInput struct {
	Stack StackName `json:"stack"`
	// Carried over continue-as-new.
	Queue  []QueuedUpdate `json:"queue,omitempty"`
	Active *QueuedUpdate  `json:"active,omitempty"`
	// Accepted answers by request id, the latest last, so that the same id gets the same answer.
	Answers []Answer `json:"answers,omitempty"`
	// Version is the last one given out.
	Version int `json:"version,omitempty"`
}

// QueuedUpdate is an accepted request.
type QueuedUpdate struct {
	Update  UpdateName    `json:"update"`
	Request UpdateRequest `json:"request"`
}

// Answer remembers what a request id was answered.
type Answer struct {
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
}

// RunInput starts or continues a Run workflow.
type RunInput struct {
	Update  UpdateName    `json:"update"`
	Request UpdateRequest `json:"request"`
	// Worker is the private task queue on which everything of this update runs.
	Worker string `json:"worker"`
	// Base is the stack version the update started from; 0 when there is none.
	Base int `json:"base"`
	// Suspended is the core, put away by continue-as-new; nil at the start.
	Suspended json.RawMessage `json:"suspended,omitempty"`
	// Unacknowledged replies, the cursor of the first of them, and the last event batch and delta written.
	Replies   []engine.Reply `json:"replies,omitempty"`
	Cursor    int            `json:"cursor,omitempty"`
	LastDelta int            `json:"lastDelta,omitempty"`
	LastEvent int            `json:"lastEvent,omitempty"`
}

// Message is one thing that the program's host tells the Run. Exactly one field is set.
type Message struct {
	Started           *engine.RunStarted        `json:"started,omitempty"`
	Registered        *engine.Registered        `json:"registered,omitempty"`
	OutputsRegistered *engine.OutputsRegistered `json:"outputsRegistered,omitempty"`
	ReadRequested     *engine.ReadRequested     `json:"readRequested,omitempty"`
	Exited            *engine.ProgramExited     `json:"exited,omitempty"`
	// Worker announces that the update lives on another worker from now on.
	Worker string `json:"worker,omitempty"`
}

// Messages is one signal: everything that waited, in order. (Epoch, First) makes repeats recognisable.
type Messages struct {
	Epoch int       `json:"epoch"`
	First int       `json:"first"` // number of the first message in this epoch, from 1
	Items []Message `json:"items"`
}

// Poll asks for replies after the cursor; all up to it are acknowledged.
type Poll struct {
	Epoch  int `json:"epoch"`
	Cursor int `json:"cursor"`
}

// Replies answers a Poll.
type Replies struct {
	Replies []engine.Reply `json:"replies"`
	Cursor  int            `json:"cursor"` // to poll with next
	// Done: there will be no more.
	Done bool `json:"done,omitempty"`
}
