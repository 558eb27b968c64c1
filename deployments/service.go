package deployments

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// OnBusy says what happens to a request while the stack has another update.
type OnBusy string

// Queue waits, fail rejects the request at once, supersede withdraws the waiting updates.
const (
	OnBusyQueue     OnBusy = "queue"
	OnBusyFail      OnBusy = "fail"
	OnBusySupersede OnBusy = "supersede"
)

// TagOnBusy is the tag of a stack with what happens to an update of the stock CLI, which has no other way to say so:
// OnBusyQueue, as without the tag, or OnBusyFail.
const TagOnBusy = "deployctl:on-busy"

// MaxParallel limits the steps of an update that run at the same time: Temporal allows a workflow 2,000 pending
// activities.
const MaxParallel = 500

// UpdateRequest asks for an update or a preview.
type UpdateRequest struct {
	Stack StackName `json:"stack"`
	// RequestID is made by the client; a repeated id is the same update.
	RequestID string      `json:"requestID"`
	Kind      engine.Kind `json:"kind"`
	DryRun    bool        `json:"dryRun,omitempty"`
	OnBusy    OnBusy      `json:"onBusy,omitempty"`
	// Bundle is the digest of the uploaded project manifest; empty when the update needs no program.
	Bundle string `json:"bundle,omitempty"`
	// PolicyPacks analyse an up or its preview. Their files are in the bundle.
	PolicyPacks []PolicyPack `json:"policyPacks,omitempty"`
	// BaseVersion, if not nil, is the stack version that was previewed and confirmed, 0 before its first update. The
	// request is rejected with CodeConflict if the stack has changed since or is being changed.
	BaseVersion *int `json:"baseVersion,omitempty"`

	// Config is the stack's configuration by key ("project:name"), as in its file.
	Config map[string]ConfigValue `json:"config,omitempty"`
	// Environment has the variables of the program and the plugins, as NAME=VALUE.
	Environment []string `json:"environment,omitempty"`
	// Secrets is the stack's secrets provider as its configuration file names it.
	Secrets SecretsProvider `json:"secrets"`

	Refresh           bool     `json:"refresh,omitempty"`
	Targets           []string `json:"targets,omitempty"`
	TargetDependents  bool     `json:"targetDependents,omitempty"`
	Excludes          []string `json:"excludes,omitempty"` // not together with Targets
	ExcludeDependents bool     `json:"excludeDependents,omitempty"`
	ExcludeProtected  bool     `json:"excludeProtected,omitempty"` // of a destroy: it keeps what is protected
	IgnoreProtect     bool     `json:"ignoreProtect,omitempty"`    // what is protected is deleted like anything else
	RunProgram        bool     `json:"runProgram,omitempty"`       // of a refresh or a destroy
	// ClearPendingCreates forgets creates of earlier updates whose outcome cannot be found out; of a refresh.
	ClearPendingCreates bool `json:"clearPendingCreates,omitempty"`
	// TrySettle tries how lost creates of the resources would be found; of a preview of a refresh.
	TrySettle bool     `json:"trySettle,omitempty"`
	Replace   []string `json:"replace,omitempty"`
	// Adopt are URNs, types and patterns of both: what is somebody else's in the place of such a resource that is to be
	// created is taken over; of an up.
	Adopt []string `json:"adopt,omitempty"`
	// Force reconciles what has not changed, too, where its provider converges; of an up.
	Force bool `json:"force,omitempty"`
	// Imports are the resources that an import takes into the stack: parents and providers before what refers to them.
	Imports []Import `json:"imports,omitempty"`
	// Variables are the names that resources have in the text that an import writes for the program, by URN; without
	// them it writes none.
	Variables map[string]string `json:"variables,omitempty"`
	// Plan limits the update to the steps of a saved plan.
	Plan            *engine.SavedPlan `json:"plan,omitempty"`
	ContinueOnError bool              `json:"continueOnError,omitempty"`
	Parallel        int               `json:"parallel,omitempty"`
	WaitOnUnknown   bool              `json:"waitOnUnknown,omitempty"`
	Message         string            `json:"message,omitempty"`
	Initiator       string            `json:"initiator,omitempty"` // a token's name or the local user's
	// Authority is what the caller may do, for as long as the caller may: the update does not begin without it, and
	// limits which other stacks its program can read. The service sets it, never a client. It is nil in requests of
	// older releases, which could read every stack.
	Authority *Authority `json:"authority,omitempty"`
	// Settle, if not nil, makes a refresh settle what earlier updates left pending, and nothing else.
	Settle *engine.Settling `json:"settle,omitempty"`
	// Scheduled gives the update a lower priority, because nobody waits for it.
	Scheduled bool `json:"scheduled,omitempty"`
	// Lease, if not nil, means that the client executes the update. Only the edge of the stock CLI sets it.
	Lease *Lease `json:"lease,omitempty"`
	// Submitted binds the request to a stack and a time. The service sets it, never a client; without it nothing begins.
	Submitted *Submission `json:"submitted,omitempty"`
}

// Submission says for what, and when, the service has submitted a request. Requests lie sealed in Temporal, where
// others may copy them: a copy is good neither for another stack of the name nor for another time.
type Submission struct {
	// StackID is the identity of the stack; a stack that is created later under its name has another one.
	StackID string    `json:"stackID"`
	At      time.Time `json:"at"`
	// Run is the workflow run that executes a preview, in its stored request.
	Run string `json:"run,omitempty"`
}

const (
	// RequestWindow is how long after its submission a stack takes a request, and how far clocks may differ: about as
	// long as the service waits for Temporal. A client that waits longer has its request submitted again.
	RequestWindow = 10 * time.Minute
	// PreviewWindow is how long a preview may wait for a worker. It is shorter than requests of previews are kept.
	PreviewWindow = 12 * time.Hour
)

// PolicyPack is a policy pack of a request.
type PolicyPack struct {
	// Dir is its directory in the bundle, where PulumiPolicy.yaml is.
	Dir string `json:"dir"`
	// Config is the JSON text of its configuration, by policy; empty: none.
	Config string `json:"config,omitempty"`
}

// MayRead reports whether the update's program may read another stack as a holder of the role.
func (r UpdateRequest) MayRead(role Role, s StackName) bool {
	return r.Authority == nil || r.Authority.May(role, s)
}

// Previewed returns BaseVersion; ok is false when nothing was previewed.
func (r UpdateRequest) Previewed() (version int, ok bool) {
	if r.BaseVersion == nil {
		return 0, false
	}
	return *r.BaseVersion, true
}

// ConfigValue is one configuration value. Objects and lists are JSON text. Value holds a secret in plaintext: payloads
// are sealed, and plaintext is never stored.
type ConfigValue struct {
	Value  string `json:"value"`
	Secret bool   `json:"secret,omitempty"`
	Object bool   `json:"object,omitempty"`
}

// The secrets providers.
const (
	SecretsService    = "service"
	SecretsPassphrase = "passphrase"
	SecretsCloud      = "cloud"
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

// DefaultParallel is how many steps run at a time if the request does not say.
const DefaultParallel = 16

// SecretsProvider says how a stack's secrets are encrypted in its checkpoints.
type SecretsProvider struct {
	// Type is "service" (the service's own key for this stack), "passphrase", or "cloud" (a key of a key management
	// service).
	Type string `json:"type"`
	// Salt is the passphrase provider's encryption salt, "v1:SALT:CHECK".
	Salt string `json:"salt,omitempty"`
	// URL names the key of the cloud provider, such as awskms://alias/NAME?region=R. EncryptedKey is the stack's data
	// key, encrypted with that one, in base64.
	URL          string `json:"url,omitempty"`
	EncryptedKey string `json:"encryptedKey,omitempty"`
	// Key is the data key of the passphrase or the cloud provider, unwrapped by the client; 32 bytes. It is stored only
	// within the update's sealed request: the next host of the update needs it.
	Key []byte `json:"key,omitempty"`
}

// NeedsClient reports whether only a client can find the data key: by a passphrase, or by a key of a key management
// service that it may use.
func (p SecretsProvider) NeedsClient() bool {
	return p.Type == SecretsPassphrase || p.Type == SecretsCloud
}

// Accepted answers an UpdateRequest.
type Accepted struct {
	Update UpdateName `json:"update"`
	// Position in the stack's queue: 0 when it runs, 1 when it is next.
	Position int `json:"position"`
	// Behind is the update that runs, when Position is not 0.
	Behind *UpdateInfo `json:"behind,omitempty"`
}

// HasProgram reports whether the update runs the program or, of an import, registers resources in its place.
func (r UpdateRequest) HasProgram() bool {
	return r.Kind == engine.KindUp || r.Kind == engine.KindImport || r.RunProgram
}

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

// Service is what a client of deployctl can ask for. It is implemented on the service's side over Temporal and the
// state store, and by the client package over gRPC.
//
// Each method says which role its caller needs, on the stacks that the call names or, where it names none, on anything;
// internal/edge/grpcapi enforces it. Errors are *Error. Each method says with which codes of its own it fails; every method
// fails with
//   - CodeInvalid: a name or a value in the request is not possible.
//   - CodeUnauthorized: the caller has no valid token.
//   - CodeForbidden: the caller does not have the role.
//   - CodeNotFound: the stack, update or schedule does not exist, or the caller may not see it.
//   - CodeUnavailable: a part of the service cannot be reached.
//   - CodeMaintenance: it begins or changes something, and the service is in a mode that does not take that.
//   - CodeFormat: what is stored is damaged, or was written by a newer version.
//   - CodeCancelled: ctx ended the call.
//   - CodeInternal: a defect.
type Service interface {
	// Submit asks for an update. It returns as soon as the stack's queue has accepted it; the same RequestID is
	// accepted once. Needs RoleDeployer. CodeConflict: the stack is busy and the request does not wait, its queue is
	// full, or it is not at BaseVersion any more. CodeNoWorker: no worker takes the request up; submitted again, it
	// continues to wait.
	Submit(ctx context.Context, r UpdateRequest) (Accepted, error)
	// Watch sends an update's events from the first one on until its End, or until fn or ctx stops it. Needs
	// RoleViewer. An error of fn is returned as it is. CodeNotFound: also when the update's log is no longer kept.
	Watch(ctx context.Context, u UpdateName, fn func(WatchEvent) error) error
	// Cancel asks a running or waiting update to end; forced also cancels its running steps. Needs RoleDeployer.
	// CodeNotFound: also when the update has ended. CodeNoWorker: no worker takes the request up.
	Cancel(ctx context.Context, u UpdateName, forced bool) error
	// Resolve answers an undecidable create: id is empty when there is no resource. Needs RoleDeployer. CodeNotFound:
	// also when the update is not running. CodeConflict: the update does not wait for an answer about that resource.
	// CodeNoWorker: no worker takes the request up.
	Resolve(ctx context.Context, u UpdateName, urn, id string) error
	// Ongoing lists the updates and previews that run or wait, of the stacks of an organization that the caller may
	// see; an empty name means all. Those of a stack are in the order in which they run; Error says what one waits for.
	// A preview of the stock CLI is not listed: the service has no part in it. Needs RoleViewer. Fails as every method
	// does.
	Ongoing(ctx context.Context, organization string) ([]UpdateInfo, error)

	Stacks
	Bundles
	Tokens
	Members
	Teams
	Trusts
	Schedules
	Webhooks
	Auditing
	Modes
}

// Stacks manages stacks and their state.
type Stacks interface {
	// CreateStack makes an empty stack. Needs RoleDeployer. CodeExists: there is a stack of this name.
	CreateStack(ctx context.Context, s StackName, tags map[string]string) error
	// ListStacks describes the stacks that the caller may see, of a project or an organization; empty names mean all.
	// Needs RoleViewer. Fails as every method does.
	ListStacks(ctx context.Context, organization, project string) ([]StackInfo, error)
	// Statuses describes stacks that the caller may see, by name: the result of their last update, drift, schedules,
	// and what needs a person. While Temporal does not answer, the page is incomplete. Needs RoleViewer. Fails as every
	// method does.
	Statuses(ctx context.Context, c Caller, q StatusQuery) (StatusPage, error)
	// Stack describes a stack, with its active update and its queue. Needs RoleViewer. Fails as every method does.
	Stack(ctx context.Context, s StackName) (StackInfo, error)
	// RemoveStack removes a stack with its history and its schedules. Needs RoleDeployer, or RoleAdmin with force.
	// CodeConflict: an update is running, or the stack has resources and force is false.
	RemoveStack(ctx context.Context, s StackName, force bool) error
	// RenameStack gives a stack another name, project or organization, with its history. Needs RoleDeployer on both
	// names. CodeExists: there is a stack of the new name. CodeConflict: an update is running, the stack has schedules,
	// or another renaming of it was interrupted. CodeInvalid: also when it has that name already.
	RenameStack(ctx context.Context, r RenameRequest) error
	// TagStack replaces a stack's tags. Needs RoleDeployer. Fails as every method does.
	TagStack(ctx context.Context, s StackName, tags map[string]string) error
	// ChangeTags sets tags of a stack, removes some, and keeps its others. Needs RoleDeployer. CodeInvalid: also when
	// the stack would have too many.
	ChangeTags(ctx context.Context, s StackName, set map[string]string, removed []string) error
	// Export returns a stored deployment; version 0 is the latest. Secrets are ciphertexts, or plaintext with
	// showSecrets. Needs RoleViewer, or RoleDeployer with showSecrets. CodeNotFound: also when the version is no longer
	// kept. CodeInvalid: also when the secrets cannot be decrypted with that provider.
	Export(ctx context.Context, s StackName, version int, secrets SecretsProvider,
		showSecrets bool) (apitype.UntypedDeployment, error)
	// ExportRaw writes a tar archive of the objects that the stack's state and its active update are made of, whatever
	// they have in them; index.json, its last file, names those that are damaged. Secrets are ciphertexts. Needs
	// RoleAdmin. Fails as every method does. A part of the archive may have been written then.
	ExportRaw(ctx context.Context, s StackName, to io.Writer) error
	// Import replaces the stack's deployment after checking its invariants, and returns the new version. Needs
	// RoleDeployer, or RoleAdmin with Forget. CodeInvalid: also when the deployment is of another stack, breaks an
	// invariant, or has secrets that cannot be decrypted. CodeUnconfirmed: it has none of the stack's resources, and
	// Forget is false. CodeConflict: an update is running. CodeNoWorker: no worker takes the request up.
	Import(ctx context.Context, r ImportRequest) (int, error)
	// Restore makes the deployment of an earlier version the stack's next one, and returns that. Needs RoleDeployer, or
	// RoleAdmin with Forget. CodeNotFound: also when the version has no state, or it is no longer kept. CodeInvalid:
	// also when it cannot be the stack's state now. CodeUnconfirmed, CodeConflict and CodeNoWorker: as for Import.
	Restore(ctx context.Context, r RestoreRequest) (int, error)
	// EditState changes single resources of the stack's state, as a new version. Needs RoleDeployer, or RoleAdmin with
	// Forget. CodeInvalid: also when the state would break an invariant, or others depend on what is to be deleted.
	// CodeNotFound: also when the state has no such resource. CodeExists: it has one of the new name. CodeUnconfirmed:
	// none of the stack's resources would be left, and Forget is false. CodeConflict: an update is running, or the
	// stack is not at BaseVersion any more. CodeNoWorker: no worker takes the request up.
	EditState(ctx context.Context, r EditRequest) (Edited, error)
	// MoveState moves resources from the state of a stack to that of another, both as new versions. The caller needs the
	// role on both stacks. Needs RoleDeployer, or RoleAdmin with Forget. It fails as EditState does. CodeExists: To has
	// such a resource already.
	MoveState(ctx context.Context, r MoveRequest) (Moved, error)
	// Recover finishes the active update in the place of its workflow, which somebody has closed, and describes how it
	// ended; it returns the zero UpdateInfo when no update is active. Needs RoleDeployer, or RoleAdmin with Discard.
	// CodeConflict: the update is running, or the stack is being removed or renamed. CodeNoWorker: no worker takes the
	// request up.
	Recover(ctx context.Context, r RecoverRequest) (UpdateInfo, error)
	// History lists a stack's updates, the latest first; limit 0 means all. Needs RoleViewer. Fails as every method
	// does.
	History(ctx context.Context, s StackName, limit int) ([]UpdateInfo, error)
	// Encrypt encrypts configuration values with the service's own key of the stack. Needs RoleDeployer. Fails as every
	// method does.
	Encrypt(ctx context.Context, s StackName, plain []string) ([]string, error)
	// Decrypt returns what Encrypt encrypted. Needs RoleDeployer. CodeInvalid: also when a text was not encrypted for
	// this stack.
	Decrypt(ctx context.Context, s StackName, sealed []string) ([]string, error)
}

// Bundles takes project files, by digest.
type Bundles interface {
	// Missing returns which of the manifest's files the service does not have yet. Needs RoleDeployer. Fails as every
	// method does.
	Missing(ctx context.Context, s StackName, m Manifest) ([]string, error)
	// PutFile stores one file's content under its digest ("sha256:HEX"). Needs RoleDeployer. CodeInvalid: also when the
	// content has another digest.
	PutFile(ctx context.Context, s StackName, digest string, content []byte) error
	// PutManifest stores the manifest, once all its files are there, and returns the bundle's digest. Needs
	// RoleDeployer. CodeInvalid: also when a file is missing.
	PutManifest(ctx context.Context, s StackName, m Manifest) (string, error)
}
