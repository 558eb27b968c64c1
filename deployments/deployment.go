package deployments

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// DeploymentName names one deployment of a stack: ORG/PROJECT/STACK/NUMBER.
type DeploymentName struct {
	StackName
	Number int `json:"number"` // from 1
}

// String gives ORG/PROJECT/STACK/NUMBER.
func (n DeploymentName) String() string { return n.StackName.String() + "/" + strconv.Itoa(n.Number) }

// Validate reports the first part of the name that cannot be used, as CodeInvalid.
func (n DeploymentName) Validate() error {
	if err := n.StackName.Validate(); err != nil {
		return err
	}
	if n.Number < 1 {
		return Errorf(CodeInvalid, "%d is not the number of a deployment", n.Number)
	}
	return nil
}

// deploymentID begins the id of a deployment. The stock CLI takes an id of digits alone for a number.
const deploymentID = "deployment-"

// ID is what clients call the deployment of a stack.
func (n DeploymentName) ID() string { return deploymentID + strconv.Itoa(n.Number) }

// DeploymentOf returns the deployment of a stack that has an id, or a number.
func DeploymentOf(s StackName, id string) (DeploymentName, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(id, deploymentID))
	n := DeploymentName{s, number}
	if err != nil || n.Validate() != nil {
		return n, NoDeployment(s, id)
	}
	return n, nil
}

// NoDeployment returns the error about a deployment that does not exist.
func NoDeployment(s StackName, id string) error {
	return Errorf(CodeNotFound, "%s has no deployment %s; `pulumi deployment list` shows those it has", s, quoted(id))
}

// DeploymentWorkflowID names the workflow of a deployment.
func DeploymentWorkflowID(n DeploymentName) string { return "deployment/" + n.String() }

// DeploymentStatus is the state of a deployment, or of one of its steps.
type DeploymentStatus string

// The statuses. A deployment that was cancelled before its turn is skipped, one that was cancelled later has failed.
const (
	DeploymentNotStarted DeploymentStatus = "not-started" // no worker has it yet
	DeploymentAccepted   DeploymentStatus = "accepted"    // it waits for its turn
	DeploymentRunning    DeploymentStatus = "running"
	DeploymentFailed     DeploymentStatus = "failed"
	DeploymentSucceeded  DeploymentStatus = "succeeded"
	DeploymentSkipped    DeploymentStatus = "skipped"
)

// Deployment is an operation on a stack whose program the service gets from a git repository.
type Deployment struct {
	Name      DeploymentName          `json:"name"`
	Operation apitype.PulumiOperation `json:"operation"`
	Status    DeploymentStatus        `json:"status"`
	Error     string                  `json:"error,omitempty"`
	Created   time.Time               `json:"created"`
	Modified  time.Time               `json:"modified"`
	// RequestedBy is who asked for it, Initiator by what: the stock CLI, or a push.
	RequestedBy string           `json:"requestedBy,omitempty"`
	Initiator   string           `json:"initiator,omitempty"`
	Inherits    bool             `json:"inherits,omitempty"` // it has the stack's settings
	Source      string           `json:"source,omitempty"`   // where the program is from, without credentials
	Commit      string           `json:"commit,omitempty"`   // once it is known
	Steps       []DeploymentStep `json:"steps,omitempty"`
	// Updates are the versions of the updates that it has submitted.
	Updates []string `json:"updates,omitempty"`
}

// Ended reports whether the deployment does nothing any more, but for removing the stack that it has destroyed. If that
// is refused, one that has succeeded has failed.
func (d Deployment) Ended() bool {
	return d.Status == DeploymentFailed || d.Status == DeploymentSucceeded || d.Status == DeploymentSkipped
}

// DeploymentStep is a part of a deployment.
type DeploymentStep struct {
	Name    string           `json:"name"`
	Status  DeploymentStatus `json:"status"`
	Started time.Time        `json:"started,omitzero"`
	Changed time.Time        `json:"changed,omitzero"`
}

// DeploymentRequest asks for a deployment.
type DeploymentRequest struct {
	Stack     StackName               `json:"stack"`
	Operation apitype.PulumiOperation `json:"operation"`
	// Inherits adds the stack's stored settings; those of the request count before them.
	Inherits bool               `json:"inherits,omitempty"`
	Settings DeploymentSettings `json:"settings"`
	// RequestedBy and Initiator are those of Deployment.
	RequestedBy string `json:"requestedBy,omitempty"`
	Initiator   string `json:"initiator,omitempty"`
	// Authority limits the deployment to what its requester may do at the time; see UpdateRequest.
	Authority *Authority `json:"authority,omitempty"`
}

// DeploymentPage selects deployments of a stack.
type DeploymentPage struct {
	Page
	Ascending bool
}

// DeploymentLogs are lines of the log of a deployment, and where to go on; Next is empty at the end.
type DeploymentLogs struct {
	Lines []apitype.DeploymentLogLine
	Next  string
}

// RemoteDeployments run programs from git repositories. All errors are *Error.
type RemoteDeployments interface {
	// CreateDeployment asks for a deployment, which waits for those of the stack before it. CodeInvalid: also when it
	// has no source, or a setting that the service does not have.
	CreateDeployment(ctx context.Context, r DeploymentRequest) (Deployment, error)
	// Deployment describes a deployment.
	Deployment(ctx context.Context, n DeploymentName) (Deployment, error)
	// ListDeployments describes a page of a stack's deployments, and says how many there are.
	ListDeployments(ctx context.Context, s StackName, p DeploymentPage) ([]Deployment, int, error)
	// DeploymentLogs returns what follows a position in the log of a deployment; empty is the beginning.
	DeploymentLogs(ctx context.Context, n DeploymentName, after string) (DeploymentLogs, error)
	// CancelDeployment ends a deployment, with its update. CodeConflict: it has ended.
	CancelDeployment(ctx context.Context, n DeploymentName) error
	// DeploymentSettings returns the settings of a stack, without their secrets; the zero value when it has none.
	DeploymentSettings(ctx context.Context, s StackName) (DeploymentSettings, error)
	// PatchDeploymentSettings applies a merge patch in JSON, in which null removes a value. The caller's authority is
	// that of deployments that a push starts.
	PatchDeploymentSettings(ctx context.Context, s StackName, patch json.RawMessage, by *Authority) error
	// RemoveDeploymentSettings removes the settings of a stack.
	RemoveDeploymentSettings(ctx context.Context, s StackName) error
}

// Names of the workflow of a deployment and its activities, as they stand in recorded histories.
const (
	WorkflowDeployment = "Deployment" // DeploymentInput → DeploymentOutput

	ActivityAwaitTurn            = "AwaitTurn"            // DeploymentName → DeploymentTurn
	ActivityPrepareDeployment    = "PrepareDeployment"    // DeploymentName → PreparedDeployment
	ActivitySubmitDeployment     = "SubmitDeployment"     // SubmitDeploymentInput → UpdateName
	ActivityFollowDeployment     = "FollowDeployment"     // FollowDeploymentInput → UpdateInfo
	ActivityEndDeployment        = "EndDeployment"        // EndDeploymentInput → EndedDeployment
	ActivityRemoveDestroyedStack = "RemoveDestroyedStack" // DeploymentName → nothing
)

// DeploymentInput starts a Deployment workflow.
type DeploymentInput struct {
	Name DeploymentName `json:"name"`
}

// DeploymentOutput is the result of a Deployment workflow.
type DeploymentOutput struct {
	Status  DeploymentStatus `json:"status"`
	Error   string           `json:"error,omitempty"`
	Updates []UpdateName     `json:"updates,omitempty"`
}

// DeploymentTurn says that a deployment has its turn, or why it is skipped.
type DeploymentTurn struct {
	Skipped string `json:"skipped,omitempty"`
}

// PreparedDeployment is what a deployment is to do.
type PreparedDeployment struct {
	// Request is that of its first update.
	Request UpdateRequest `json:"request"`
	// Drift is that the update looks for drift; Remediate that another one removes what it finds.
	Drift     bool `json:"drift,omitempty"`
	Remediate bool `json:"remediate,omitempty"`
}

// SubmitDeploymentInput submits an update of a deployment. A repeated request id is the same update.
type SubmitDeploymentInput struct {
	Name    DeploymentName `json:"name"`
	Request UpdateRequest  `json:"request"`
}

// FollowDeploymentInput waits for the end of an update of a deployment; with Cancel, it is cancelled.
type FollowDeploymentInput struct {
	Name   DeploymentName `json:"name"`
	Update UpdateName     `json:"update"`
	Cancel bool           `json:"cancel,omitempty"`
}

// EndDeploymentInput ends a deployment.
type EndDeploymentInput struct {
	Name DeploymentName `json:"name"`
	DeploymentOutput
}

// EndedDeployment says what is left to do after the end of a deployment.
type EndedDeployment struct {
	// RemovesStack is that the stack, which the deployment has destroyed, is to be removed.
	RemovesStack bool `json:"removesStack,omitempty"`
}

// DeploymentRequestID is the id of the request of a deployment's nth update, from 0. The stack's identity keeps it
// apart from those of an earlier stack of the same name.
func DeploymentRequestID(n DeploymentName, stackID string, nth int) string {
	return fmt.Sprintf("deployment-%d-%d-%s", n.Number, nth, stackID)
}

// By says who or what has started the deployment: a push is not the user in whose name it deploys.
func (d Deployment) By() string {
	if d.Initiator == "" || d.Initiator == InitiatorCLI {
		return d.RequestedBy
	}
	by := d.Initiator + " for " + d.RequestedBy
	return strings.ToValidUTF8(by[:min(len(by), MaxInitiatorLength)], "")
}

// InitiatorCLI is the initiator of a deployment that a user has asked for.
const InitiatorCLI = "cli"
