package deployments

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// OnBusy says what happens to an update when the stack has another one running.
type OnBusy string

// Queue waits, fail refuses at once, supersede takes the place of those that still wait.
const (
	OnBusyQueue     OnBusy = "queue"
	OnBusyFail      OnBusy = "fail"
	OnBusySupersede OnBusy = "supersede"
)

// MaxParallel is how many steps an update makes at a time, at most: Temporal lets a workflow have 2,000 activities
// under way.
const MaxParallel = 500

// UpdateRequest asks for an update or a preview.
type UpdateRequest struct {
	Stack StackName `json:"stack"`
	// RequestID is made by the client; the same id submitted twice is one update.
	RequestID string      `json:"requestID"`
	Kind      engine.Kind `json:"kind"`
	DryRun    bool        `json:"dryRun,omitempty"`
	OnBusy    OnBusy      `json:"onBusy,omitempty"`
	// Bundle is the digest of the uploaded project manifest; empty when the update needs no program.
	Bundle string `json:"bundle,omitempty"`
	// BaseVersion, if not nil, is the stack version that was previewed and confirmed, 0 before its first update; the
	// update is refused with CodeConflict when the stack has moved on, or is just being changed.
	BaseVersion *int `json:"baseVersion,omitempty"`

	// Config is the stack's configuration, key by key ("project:name"), as its file has it.
	Config map[string]ConfigValue `json:"config,omitempty"`
	// Environment is what the program and the plugins get, as NAME=VALUE.
	Environment []string `json:"environment,omitempty"`
	// Secrets is the stack's secrets provider as its configuration file names it.
	Secrets SecretsProvider `json:"secrets"`

	Refresh          bool     `json:"refresh,omitempty"`
	Targets          []string `json:"targets,omitempty"`
	TargetDependents bool     `json:"targetDependents,omitempty"`
	Replace          []string `json:"replace,omitempty"`
	ContinueOnError  bool     `json:"continueOnError,omitempty"`
	Parallel         int      `json:"parallel,omitempty"`
	WaitOnUnknown    bool     `json:"waitOnUnknown,omitempty"`
	Message          string   `json:"message,omitempty"`
	Initiator        string   `json:"initiator,omitempty"` // who asked: a token's name or the local user's
	// Authority is what whoever asked may do, as long as they may: without it the update does not begin, and its
	// program reads nothing of other stacks. The service sets it, never a client; nil in requests of a time before it
	// was kept, which could read everything.
	Authority *Authority `json:"authority,omitempty"`
	// Scheduled: nobody waits for it, so whatever somebody waits for goes first.
	Scheduled bool `json:"scheduled,omitempty"`
}

// MayRead reports whether the update's program may have a role's sight of another stack.
func (r UpdateRequest) MayRead(role Role, s StackName) bool {
	return r.Authority == nil || r.Authority.May(role, s)
}

// Previewed gives BaseVersion: ok is false when nothing was previewed.
func (r UpdateRequest) Previewed() (version int, ok bool) {
	if r.BaseVersion == nil {
		return 0, false
	}
	return *r.BaseVersion, true
}

// ConfigValue is one configuration value. Objects and lists are JSON text. A secret's Value is plain here (payloads
// are sealed); it is never stored plain.
type ConfigValue struct {
	Value  string `json:"value"`
	Secret bool   `json:"secret,omitempty"`
	Object bool   `json:"object,omitempty"`
}

// The secrets providers.
const (
	SecretsService    = "service"
	SecretsPassphrase = "passphrase"
)

// SecretsProvider says how a stack's secrets are encrypted in its checkpoints.
type SecretsProvider struct {
	// Type is "service" (the service's own key for this stack) or "passphrase".
	Type string `json:"type"`
	// Salt is the passphrase provider's encryption salt, "v1:SALT:CHECK".
	Salt string `json:"salt,omitempty"`
	// Key is the passphrase provider's data key, unwrapped by the client; 32 bytes. Stored only within the
	// update's request, sealed with the service's key: whoever takes a lost update over needs it.
	Key []byte `json:"key,omitempty"`
}

// Accepted answers an UpdateRequest.
type Accepted struct {
	Update UpdateName `json:"update"`
	// Position in the stack's queue: 0 when it runs, 1 when it is next.
	Position int `json:"position"`
	// BehindOf tells who runs, since when, when Position is not 0.
	Behind *UpdateInfo `json:"behind,omitempty"`
}

// UpdateInfo describes an update, past or present.
type UpdateInfo struct {
	Update UpdateName  `json:"update"`
	Kind   engine.Kind `json:"kind"`
	DryRun bool        `json:"dryRun,omitempty"`
	// queued, running, succeeded, failed, cancelled, moved; damaged in a history
	Status    string         `json:"status"`
	Message   string         `json:"message,omitempty"`
	Initiator string         `json:"initiator,omitempty"`
	Started   time.Time      `json:"started"`
	Ended     time.Time      `json:"ended"`
	Changes   map[string]int `json:"changes,omitempty"`
	Resources int            `json:"resources,omitempty"`
	Error     string         `json:"error,omitempty"`
	// Code classes Error, where its reader can do something else about it than about any other update that failed.
	Code Code `json:"code,omitempty"`
	// Next is the version of the update as which one that was moved goes on.
	Next string `json:"next,omitempty"`
	// Kept: the state that it left is kept and can be restored. Only a stack's history says so.
	Kept bool `json:"kept,omitempty"`
	// Waiting are URNs whose creates wait for Resolve. Only the active update of what Stack returns says so.
	Waiting []string `json:"waiting,omitempty"`
}

// StatusMigrated is that of an update that goes on as another, because no worker has its build any more.
const StatusMigrated engine.Status = "moved"

// What a history calls versions that no update made; nobody can ask for an update of these kinds.
const (
	KindRestore engine.Kind = "restore"
	KindRename  engine.Kind = "rename"
)

// StackInfo describes a stack.
type StackInfo struct {
	Stack     StackName         `json:"stack"`
	Version   int               `json:"version"` // 0: never updated
	Updated   time.Time         `json:"updated"`
	Resources int               `json:"resources"`
	Active    *UpdateInfo       `json:"active,omitempty"`
	Queued    []UpdateInfo      `json:"queued,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
	// Damaged says what of the stack cannot be read, and what to do about it. Only a list has such stacks.
	Damaged string `json:"damaged,omitempty"`
}

// WatchEvent is one item of an update's event log. Exactly one field is set, beside Stream.
type WatchEvent struct {
	// Event is an engine event as the field's displays know it; secrets are blinded.
	Event *apitype.EngineEvent `json:"event,omitempty"`
	// Stream is what of the log an Event belongs to, when it is watched. Within a stream they come in the same order to
	// everyone who watches, among streams as they are written.
	Stream string `json:"-"`
	// Progress is the state of running steps: attempts, last error, next retry, waits for a person.
	Progress *Progress `json:"progress,omitempty"`
	// End closes the log.
	End *UpdateInfo `json:"end,omitempty"`
}

// Progress is a picture of an update at work.
type Progress struct {
	Position int            `json:"position"` // in the queue; 0 when it runs
	Behind   *UpdateInfo    `json:"behind,omitempty"`
	Running  []RunningStep  `json:"running,omitempty"`
	Done     map[string]int `json:"done,omitempty"` // finished steps by kind
	Waiting  []string       `json:"waiting,omitempty"`
	// Phase is what the host of the program is doing. A Progress that has one tells of nothing else; one that has none
	// leaves it as it was told last.
	Phase *Phase `json:"phase,omitempty"`
}

// Phase is something that takes a while before the program registers resources, like installing its packages.
type Phase struct {
	Text  string    `json:"text"` // empty: it is over, and there is no other
	Since time.Time `json:"since,omitzero"`
}

// RunningStep is a step in flight.
type RunningStep struct {
	Op        int       `json:"op,omitempty"` // number of the operation in its update
	URN       string    `json:"urn"`
	Step      string    `json:"step"`
	Attempt   int       `json:"attempt"`         // from 1; 0 while the step waits for its turn
	Ahead     bool      `json:"ahead,omitempty"` // it was issued before its turn; to a client that is Attempt 0
	Started   time.Time `json:"started"`
	LastError string    `json:"lastError,omitempty"`
	NextRetry time.Time `json:"nextRetry,omitzero"`
}

// Service is what a client of deployctl can ask for. Errors are *Error.
// It is implemented on the service's side over Temporal and the state store, and by the client package over gRPC.
type Service interface {
	// Submit asks for an update. It returns as soon as the stack's queue has accepted it.
	Submit(ctx context.Context, r UpdateRequest) (Accepted, error)
	// Watch sends an update's events from the first one on until its End, or until fn or ctx stops it.
	Watch(ctx context.Context, u UpdateName, fn func(WatchEvent) error) error
	// Cancel asks a running or waiting update to end; forced also cancels its running steps.
	Cancel(ctx context.Context, u UpdateName, forced bool) error
	// Resolve answers an undecidable create: id is empty when there is no resource.
	Resolve(ctx context.Context, u UpdateName, urn, id string) error

	Stacks
	Bundles
	Tokens
	Members
	Schedules
	Auditing
}

// Stacks manages stacks and their state.
type Stacks interface {
	CreateStack(ctx context.Context, s StackName, tags map[string]string) error
	ListStacks(ctx context.Context, organization, project string) ([]StackInfo, error)
	Stack(ctx context.Context, s StackName) (StackInfo, error)
	RemoveStack(ctx context.Context, s StackName, force bool) error
	RenameStack(ctx context.Context, r RenameRequest) error
	TagStack(ctx context.Context, s StackName, tags map[string]string) error
	// Export gives a stored deployment; version 0 is the latest. Secrets are ciphertexts, or plain when showSecrets.
	Export(ctx context.Context, s StackName, version int, secrets SecretsProvider,
		showSecrets bool) (apitype.UntypedDeployment, error)
	// Import replaces the stack's deployment after checking its invariants, and returns the new version.
	// CodeUnconfirmed: the new deployment has none of the stack's resources, and the request does not say that they are
	// to be forgotten.
	Import(ctx context.Context, r ImportRequest) (int, error)
	// Restore makes the deployment of an earlier version the stack's next one, and returns that. CodeUnconfirmed as for
	// Import.
	Restore(ctx context.Context, r RestoreRequest) (int, error)
	// Recover ends the update that has the stack in the place of its workflow, which somebody has closed, and tells
	// what came of it; the zero UpdateInfo when no update has the stack. CodeConflict: the update is running.
	Recover(ctx context.Context, s StackName) (UpdateInfo, error)
	History(ctx context.Context, s StackName, limit int) ([]UpdateInfo, error)
	// Encrypt and Decrypt serve the service's own secrets provider: texts are a stack's configuration values.
	Encrypt(ctx context.Context, s StackName, plain []string) ([]string, error)
	Decrypt(ctx context.Context, s StackName, sealed []string) ([]string, error)
}

// ImportRequest asks for a deployment to become the state of a stack.
type ImportRequest struct {
	Stack      StackName
	Deployment apitype.UntypedDeployment
	Secrets    SecretsProvider
	// Forget: the stack's resources may all be forgotten, which needs RoleAdmin. They go on existing, and nothing
	// manages them any more.
	Forget    bool
	Initiator string // who asked
}

// RestoreRequest asks for the deployment of an earlier version to become the state of a stack.
type RestoreRequest struct {
	Stack     StackName
	Version   int
	Secrets   SecretsProvider
	Forget    bool   // all of the stack's resources may be forgotten
	Initiator string // who asked
}

// RenameRequest asks for a stack to have another name.
type RenameRequest struct {
	From, To  StackName
	Initiator string // who asked
}

// Bundles takes project files, by digest.
type Bundles interface {
	// Missing answers which of the manifest's files the service does not have yet.
	Missing(ctx context.Context, s StackName, m Manifest) ([]string, error)
	// PutFile stores one file's content under its digest ("sha256:HEX"); it refuses content that does not match.
	PutFile(ctx context.Context, s StackName, digest string, content []byte) error
	// PutManifest stores the manifest, once all its files are there, and returns the bundle's digest.
	PutManifest(ctx context.Context, s StackName, m Manifest) (string, error)
}

// Tokens manages access tokens, which are hashed at rest.
type Tokens interface {
	// CreateToken makes a token and returns its text. Name, Member, Grant and Expires say what it is.
	CreateToken(ctx context.Context, t Token) (string, error)
	ListTokens(ctx context.Context) ([]Token, error)
	RemoveToken(ctx context.Context, name string) error
}

// Members manages who has tokens. A member's tokens may do what the member may at the time.
type Members interface {
	// GrantMember makes a member, or gives one a grant in the place of the one that they have in its organization.
	GrantMember(ctx context.Context, name string, g Grant) error
	ListMembers(ctx context.Context) ([]Member, error)
	// RemoveMember takes what a member may do in an organization; an empty organization means everywhere. A member
	// without grants is gone, and their tokens are worthless.
	RemoveMember(ctx context.Context, name, organization string) error
}

// Auditing reads the audit log.
type Auditing interface {
	// Audit sends the entries that the query selects, the oldest first.
	Audit(ctx context.Context, q AuditQuery, fn func(AuditEntry) error) error
}
