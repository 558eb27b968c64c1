package deployments

import (
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// The statuses of updates. An update that has ended has a status of the core.
const (
	StatusQueued    = "queued"
	StatusRunning   = "running"
	StatusSucceeded = string(engine.StatusSucceeded)
	StatusFailed    = string(engine.StatusFailed)
	StatusCancelled = string(engine.StatusCancelled)
	StatusDamaged   = "damaged" // its description in the history cannot be read
)

// UpdateInfo describes an update, past or present.
type UpdateInfo struct {
	Update UpdateName  `json:"update"`
	Kind   engine.Kind `json:"kind"`
	DryRun bool        `json:"dryRun,omitempty"`
	// queued, running, succeeded, failed, cancelled, moved (migrated); damaged in a history
	Status    string         `json:"status"`
	Message   string         `json:"message,omitempty"`
	Initiator string         `json:"initiator,omitempty"`
	Started   time.Time      `json:"started"`
	Ended     time.Time      `json:"ended,omitzero"`
	Changes   map[string]int `json:"changes,omitempty"`
	Resources int            `json:"resources,omitempty"`
	Error     string         `json:"error,omitempty"`
	// Committed means that it made the version of the stack that it names.
	Committed bool `json:"committed,omitempty"`
	// Unbegun means that it never began, and so has changed nothing: it was withdrawn while it waited, or the client that
	// would have executed it was refused. It has a version; its stack's history leaves it out.
	Unbegun bool `json:"unbegun,omitempty"`
	// Code classifies Error, for errors after which its reader can do something special.
	Code Code `json:"code,omitempty"`
	// Next is the version of the update that continues a migrated one.
	Next string `json:"next,omitempty"`
	// Kept means that the state of this version is kept and can be restored. Only a stack's history sets it.
	Kept bool `json:"kept,omitempty"`
	// Waiting are URNs whose creates wait for Resolve. Only Stack sets it, on the active update.
	Waiting []string `json:"waiting,omitempty"`
	// Cancelling means that somebody has asked for its end. Only Stack sets it, on the active update.
	Cancelling bool `json:"cancelling,omitempty"`
	// Lease, if not nil, is that of a client which executes the update itself, as the stock CLI does. Only Stack and
	// Watch set it, on the active update.
	Lease *ClientLease `json:"lease,omitempty"`
	// Profile is the version of the profile that the update uses; nil if its stack names none, or it has not begun.
	Profile *ProfileVersion `json:"profile,omitempty"`
	// Trace is that of the update's request.
	Trace string `json:"trace,omitempty"`
}

// ClientLease tells of the client of an update that executes it itself. Its times are zero if they are not known.
type ClientLease struct {
	Heard time.Time `json:"heard,omitzero"` // its last word
	Ends  time.Time `json:"ends,omitzero"`  // when the stack is free without another
}

// Command returns the name of the command that asks for such an update.
func (u UpdateInfo) Command() string {
	if u.DryRun {
		return "preview"
	}
	return string(u.Kind)
}

// Took returns how long an update took; 0 if it has not ended, or one of its times is not known.
func (u UpdateInfo) Took() time.Duration {
	if u.Started.IsZero() || u.Ended.Before(u.Started) {
		return 0
	}
	return u.Ended.Sub(u.Started)
}

// EndedUpdate returns the update that the result of an activity says has ended; false when it says nothing like that.
func EndedUpdate(result any) (UpdateInfo, bool) {
	switch r := result.(type) {
	case UpdateInfo:
		return r, !r.Ended.IsZero()
	case Recovered:
		return r.UpdateInfo, !r.Ended.IsZero()
	case LeaseEnded:
		return r.UpdateInfo, !r.Ended.IsZero()
	}
	return UpdateInfo{}, false
}

// Holds says who has the stack, and since when, of an update that others wait for.
func (u UpdateInfo) Holds() string {
	text := fmt.Sprintf("update %s (%s)", u.Update.Version, u.Kind)
	if u.Initiator != "" {
		text += " of " + u.Initiator
	}
	return text + " has it since " + u.Started.UTC().Format("2006-01-02 15:04:05 MST")
}

// StatusMigrated is the status of an update that another one continues because no worker has its build any more.
const StatusMigrated engine.Status = "moved"

// Kinds of versions in a history that no update made; no request has them.
const (
	KindRestore engine.Kind = "restore"
	KindRename  engine.Kind = "rename"
	KindEdit    engine.Kind = "edit"
)

// StackInfo describes a stack.
type StackInfo struct {
	Stack     StackName         `json:"stack"`
	Version   int               `json:"version"` // 0: never updated
	Updated   time.Time         `json:"updated"`
	Resources int               `json:"resources"`
	Pending   int               `json:"pending,omitempty"` // operations of an unknown outcome in its state
	Active    *UpdateInfo       `json:"active,omitempty"`
	Queued    []UpdateInfo      `json:"queued,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
	// Identity is what the names and marks of its resources are derived from: its first name, for most. Stacks of
	// earlier releases have none.
	Identity string `json:"identity,omitempty"`
	// Damaged says what of the stack cannot be read, and what to do. Only lists have such stacks.
	Damaged string `json:"damaged,omitempty"`
}

// WatchEvent is one item of an update's event log. Exactly one field is set, besides Stream.
type WatchEvent struct {
	// Event is one of Pulumi's engine events, with secrets redacted.
	Event *apitype.EngineEvent `json:"event,omitempty"`
	// Stream names the part of the log that Event belongs to. Events of one stream have the same order for every
	// watcher; different streams are interleaved as they were written.
	Stream string `json:"-"`
	// Progress is the state of running steps: attempts, last error, next retry, waits for a person.
	Progress *Progress `json:"progress,omitempty"`
	// End closes the log.
	End *UpdateInfo `json:"end,omitempty"`
}

// serviceStream ends the name of a stream whose events the service itself sends.
const serviceStream = "/service"

// ServiceStream returns the stream of the service's own messages to the watchers of an update's version. They are in no
// log, so that a watcher that comes back does not get them again.
func ServiceStream(version string) string { return version + serviceStream }

// Logged reports whether the event is in the update's log, and so is part of the position from which a watcher that
// comes back continues.
func (e WatchEvent) Logged() bool {
	return e.Event != nil && !strings.HasSuffix(e.Stream, serviceStream)
}

// Progress is the state of a running update.
type Progress struct {
	Position int            `json:"position"` // in the queue; 0 when it runs
	Behind   *UpdateInfo    `json:"behind,omitempty"`
	Running  []RunningStep  `json:"running,omitempty"`
	Done     map[string]int `json:"done,omitempty"` // finished steps by kind
	Waiting  []string       `json:"waiting,omitempty"`
	// Phase is what the host of the program is doing. A Progress with a Phase has nothing else; one without does not
	// change the phase.
	Phase *Phase `json:"phase,omitempty"`
	// Cancelling means that somebody has asked for the update's end.
	Cancelling bool `json:"cancelling,omitempty"`
}

// Phase is something slow that happens before the program registers resources, such as installing its packages.
type Phase struct {
	Text  string    `json:"text"` // empty: no phase
	Since time.Time `json:"since,omitzero"`
}

// RunningStep is a step in flight.
type RunningStep struct {
	Op        int       `json:"op,omitempty"` // number of the operation in its update
	URN       string    `json:"urn"`
	Step      string    `json:"step"`
	Attempt   int       `json:"attempt"`         // from 1; 0 while the step waits for a slot
	Ahead     bool      `json:"ahead,omitempty"` // issued ahead of its turn; clients see Attempt 0
	Started   time.Time `json:"started"`
	LastError string    `json:"lastError,omitempty"`
	NextRetry time.Time `json:"nextRetry,omitzero"`
}
