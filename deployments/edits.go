package deployments

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// ImportRequest asks for a deployment to become the state of a stack.
type ImportRequest struct {
	Stack      StackName
	Deployment apitype.UntypedDeployment
	Secrets    SecretsProvider
	// Forget: the stack's resources may all be forgotten, which needs RoleAdmin. They go on existing, and nothing
	// manages them any more.
	Forget bool
	// BaseVersion, if not nil, is the version that Deployment was made from. The request is rejected with CodeConflict
	// if the stack has changed since.
	BaseVersion *int
	Initiator   string // who asked
}

// RestoreRequest asks for the deployment of an earlier version to become the state of a stack.
type RestoreRequest struct {
	Stack     StackName
	Version   int
	Secrets   SecretsProvider
	Forget    bool   // all of the stack's resources may be forgotten
	Initiator string // who asked
}

// RecoverRequest asks for the active update of a stack to be ended in the place of its closed workflow.
type RecoverRequest struct {
	Stack   StackName
	Discard bool // if nothing can recover it, what it did is given up
}

// RenameRequest asks for a stack to have another name.
type RenameRequest struct {
	From, To  StackName
	Initiator string // who asked
}

// EditKind is what an EditRequest does to the resources that it names.
type EditKind string

// The kinds of edits. None of them calls a provider.
const (
	EditDelete    EditKind = "delete"    // the state forgets the resources; they go on existing
	EditProtect   EditKind = "protect"   // they must not be deleted
	EditUnprotect EditKind = "unprotect" // they may be deleted
	EditTaint     EditKind = "taint"     // the next up replaces them
	EditUntaint   EditKind = "untaint"   // the next up does not replace them
	EditRename    EditKind = "rename"    // one resource gets another name
	EditRepair    EditKind = "repair"    // the order is repaired, and references to what is missing are removed
	EditEncrypt   EditKind = "encrypt"   // secrets are encrypted with another provider
)

// EditKinds are all kinds of edits.
var EditKinds = []EditKind{EditDelete, EditProtect, EditUnprotect, EditTaint, EditUntaint, EditRename, EditRepair,
	EditEncrypt}

// EditRequest asks for a change of single resources in the state of a stack.
type EditRequest struct {
	Stack StackName
	Edit  EditKind
	// Resources are URNs. All means every resource of the stack instead.
	Resources []string
	All       bool
	// ID selects, of several copies with one URN, that with this id.
	ID string
	// Name is the new name of a resource that is renamed.
	Name string
	// Force deletes protected resources, too; Dependents also what depends on the resources.
	Force      bool
	Dependents bool
	// Forget: the stack's resources may all be deleted from its state, which needs RoleAdmin.
	Forget bool
	// DryRun returns what would change, and changes nothing.
	DryRun bool
	// BaseVersion, if not nil, is the version that the caller has seen. The request is rejected with CodeConflict if
	// the stack has changed since.
	BaseVersion *int
	Secrets     SecretsProvider
	// NewSecrets is the provider with which EditEncrypt encrypts secrets anew; Secrets is the one that they have.
	NewSecrets SecretsProvider
	Initiator  string // who asked
}

// Edited says what an edit has changed or, in a dry run, would change.
type Edited struct {
	// Version is the new version of the stack; that which it has if nothing was changed.
	Version int `json:"version"`
	// Changes has a line for each change.
	Changes []string `json:"changes"`
}

// MoveRequest asks for resources to be moved from the state of a stack to that of another.
type MoveRequest struct {
	From, To StackName
	// Resources are URNs. What is below a component moves with it, and the providers are copied.
	Resources []string
	// Parents moves their parents, too. Otherwise resources without their parents become children of To's root.
	Parents bool
	// Forget: all resources of From may be moved, which needs RoleAdmin.
	Forget bool
	// DryRun returns what would change, and changes nothing.
	DryRun bool
	// BaseVersion, if not nil, is the version of From that the caller has seen, as in an EditRequest.
	BaseVersion            *int
	FromSecrets, ToSecrets SecretsProvider
	Initiator              string // who asked
}

// Moved says what a move has changed or, in a dry run, would change.
type Moved struct {
	FromVersion int `json:"fromVersion"`
	ToVersion   int `json:"toVersion"`
	// Changes has a line for each change.
	Changes []string `json:"changes"`
}

// Validate reports, as CodeInvalid, the first field of the request that is not valid.
func (r EditRequest) Validate() error {
	if !slices.Contains(EditKinds, r.Edit) {
		return Errorf(CodeInvalid, "%s is not a kind of edit", quoted(string(r.Edit)))
	}
	named, whole := len(r.Resources) > 0, r.Edit == EditRepair || r.Edit == EditEncrypt
	switch {
	case whole && (named || r.All):
		return Errorf(CodeInvalid, "this edit is of the whole state: name no resource")
	case !whole && named == r.All:
		return Errorf(CodeInvalid, "name the resources, or ask for all of them")
	case r.Edit == EditRename && len(r.Resources) != 1:
		return Errorf(CodeInvalid, "one resource at a time can be renamed")
	case (r.Edit == EditRename) != (r.Name != ""):
		return Errorf(CodeInvalid, "a new name is needed to rename a resource, and for nothing else")
	}
	for _, err := range []error{
		r.Stack.Validate(), validateURNs(r.Resources), validateText("id", r.ID, MaxResourceIDLength),
		validateText("new name", r.Name, MaxTargetLength), validateBase(r.BaseVersion), r.Secrets.Validate(),
		r.NewSecrets.Validate(), ValidateInitiator(r.Initiator),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Validate reports, as CodeInvalid, the first field of the request that is not valid.
func (r MoveRequest) Validate() error {
	if len(r.Resources) == 0 {
		return Errorf(CodeInvalid, "name the resources to move")
	}
	for _, err := range []error{
		r.From.Validate(), r.To.Validate(), validateURNs(r.Resources), validateBase(r.BaseVersion),
		r.FromSecrets.Validate(), r.ToSecrets.Validate(), ValidateInitiator(r.Initiator),
	} {
		if err != nil {
			return err
		}
	}
	if r.From == r.To {
		return Errorf(CodeInvalid, "the resources are in %s already: name another stack to move them to", r.To)
	}
	return nil
}

// validateBase reports, as CodeInvalid, why a base version is not valid; nil means any version.
func validateBase(version *int) error {
	if version != nil && *version < 0 {
		return Errorf(CodeInvalid, "%d is not the version of a stack", *version)
	}
	return nil
}

func validateURNs(list []string) error {
	if len(list) > MaxTargets {
		return Errorf(CodeInvalid, "the request names %d resources; at most %d are allowed", len(list), MaxTargets)
	}
	for _, text := range list {
		if !urn.URN(text).IsValid() || len(text) > MaxTargetLength {
			return Errorf(CodeInvalid, "%s is not the URN of a resource", quoted(text))
		}
	}
	return nil
}
