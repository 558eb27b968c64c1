package deployments

import (
	"context"
	"io"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Accepted answers an UpdateRequest.
type Accepted struct {
	Update UpdateName `json:"update"`
	// Position in the stack's queue: 0 when it runs, 1 when it is next.
	Position int `json:"position"`
	// Behind is the update that runs, when Position is not 0.
	Behind *UpdateInfo `json:"behind,omitempty"`
}

// Service is what a client of deployctl can ask for. It is implemented on the service's side over Temporal and the
// state store, and by the client package over gRPC.
//
// Each method says which role its caller needs, on the stacks that the call names or, where it names none, on anything;
// internal/edge/grpcapi enforces it. Errors are *Error. Each method says with which codes of its own it fails; every
// method fails with
//   - CodeInvalid: a name or a value in the request is not possible.
//   - CodeUnauthorized: the caller has no valid token.
//   - CodeForbidden: the caller does not have the role.
//   - CodeNotFound: the stack, update or schedule does not exist, or the caller may not see it.
//   - CodeUnavailable: a part of the service cannot be reached.
//   - CodeMaintenance: it begins or changes something, and the service is in a mode that does not take that.
//   - CodeQuota: it begins, makes or uploads something beyond the quota of its organization.
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
	Profiles
	Auditing
	Modes
	Quotas
}

// Stacks manages stacks and their state.
type Stacks interface {
	// CreateStack makes an empty stack. Needs RoleDeployer. CodeExists: there is a stack of this name.
	CreateStack(ctx context.Context, s StackName, tags map[string]string) error
	// RecreateStack makes an empty stack that has the identity of one that is gone, and so knows again what that one has
	// made. Needs RoleAdmin. CodeForbidden: also when the caller is no admin of all of the identity's organization, or,
	// if the identity may have left it, of every organization. CodeExists: there is a stack of this name. CodeConflict:
	// a stack has this identity.
	RecreateStack(ctx context.Context, c Caller, s StackName, identity string) error
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
