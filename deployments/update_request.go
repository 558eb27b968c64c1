package deployments

import (
	"time"

	"github.com/deployctl/deployctl/engine"
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
	TrySettle bool `json:"trySettle,omitempty"`
	// Survey tells, as diagnostics that ParseFinding reads, what exists of the stack and is not in its state; and, of an
	// up, why something was not found that would be created. Of a preview of an up or of a refresh.
	Survey  bool     `json:"survey,omitempty"`
	Replace []string `json:"replace,omitempty"`
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
	// Profile is what the update has of the profile that its configuration names. The worker sets it in the stored request
	// when the update begins, never a client.
	Profile *PinnedProfile `json:"profile,omitempty"`
	// Trace is the place of the call that has submitted the request in its trace, as a traceparent; empty if that is not
	// exported. The service sets it, never a client.
	Trace string `json:"trace,omitempty"`
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

// HasProgram reports whether the update runs the program or, of an import, registers resources in its place.
func (r UpdateRequest) HasProgram() bool {
	return r.Kind == engine.KindUp || r.Kind == engine.KindImport || r.RunProgram
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
