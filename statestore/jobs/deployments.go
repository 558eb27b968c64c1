package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// The deployments of a stack have these objects:
//
//	deployments/records/NUMBER             what was asked for, and how far it is
//	deployments/logs/NUMBER/STEP-TRY-PART  lines of its log, in the order of the keys
//	deployments/settings                   the stack's settings
//	deployments/deliveries/DIGEST          a message of a git server that was taken
//	deployments/deliveries/recent/DIGEST   one that says its age, so that it need not be remembered for ever
const (
	deploymentFolder = "deployments"
	recordFolder     = "records"
	logFolder        = "logs"
	settingsObject   = "settings"
)

// keptDeployments is how many deployments of a stack are kept, with their logs.
const keptDeployments = 500

// Deployment is a deployment with what it runs. It is sealed, like everything of a stack.
type Deployment struct {
	deployments.Deployment
	// Settings are those that count for it, with secrets in plaintext; without them once it has ended.
	Settings  deployments.DeploymentSettings `json:"settings"`
	Authority *deployments.Authority         `json:"authority,omitempty"`
	// Cancelled is that somebody has asked for its end.
	Cancelled bool `json:"cancelled,omitempty"`
	// Begun is when it had its turn: all before it had ended. Run is the workflow run that executes it from then on, or
	// that has ended it.
	Begun time.Time `json:"begun,omitzero"`
	Run   string    `json:"run,omitempty"`
	// Removes is the identity of the stack, once it is to be removed because it was destroyed.
	Removes string `json:"removes,omitempty"`
}

func recordKey(n deployments.DeploymentName) string {
	return stackobjects.Key(n.StackName, deploymentFolder, recordFolder, fmt.Sprintf("%08d", n.Number))
}

// AddDeployment stores a deployment under the next number, and removes those that are no longer kept.
func (s *Store) AddDeployment(ctx context.Context, d Deployment) (Deployment, error) {
	for {
		numbers, err := s.DeploymentNumbers(ctx, d.Name.StackName)
		if err != nil {
			return d, err
		}
		if d.Name.Number = 1; len(numbers) > 0 {
			d.Name.Number = numbers[len(numbers)-1] + 1
		}
		err = s.stacks.PutIf(ctx, d.Name.StackName, recordKey(d.Name), d, bucket.Condition{Absent: true})
		if errors.Is(err, bucket.ErrChanged) {
			continue // another one has got the number
		}
		if err != nil {
			return d, err
		}
		return d, s.forgetDeployments(ctx, d.Name.StackName, numbers)
	}
}

// forgetDeployments removes the oldest deployments that have ended, beyond those that are kept.
func (s *Store) forgetDeployments(ctx context.Context, name deployments.StackName, numbers []int) error {
	for _, number := range numbers[:max(0, len(numbers)-keptDeployments)] {
		n := deployments.DeploymentName{StackName: name, Number: number}
		d, err := s.Deployment(ctx, n)
		if err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return err
		}
		if err == nil && !d.Ended() {
			continue
		}
		if err := s.sealed.DeleteAll(ctx, logPrefix(n)); err != nil {
			return err
		}
		if err := s.sealed.Objects.Delete(ctx, recordKey(n)); err != nil && !errors.Is(err, bucket.ErrAbsent) {
			return bucket.Failed(err, "remove the deployment "+n.String())
		}
	}
	return nil
}

// DeploymentNumbers returns the numbers of a stack's deployments, in order.
func (s *Store) DeploymentNumbers(ctx context.Context, name deployments.StackName) ([]int, error) {
	prefix := stackobjects.Key(name, deploymentFolder, recordFolder, "")
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: prefix})
	if err != nil {
		return nil, bucket.Failed(err, "list "+prefix)
	}
	var numbers []int
	for _, key := range l.Keys {
		if n, err := strconv.Atoi(key[len(prefix):]); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}

// Deployment returns a deployment; CodeNotFound when there is none.
func (s *Store) Deployment(ctx context.Context, n deployments.DeploymentName) (Deployment, error) {
	d, _, err := s.deployment(ctx, n)
	return d, err
}

func (s *Store) deployment(
	ctx context.Context, n deployments.DeploymentName,
) (d Deployment, tag string, err error) {
	if err := n.Validate(); err != nil {
		return d, "", err
	}
	tag, err = s.stacks.GetJSON(ctx, n.StackName, recordKey(n), &d)
	if errors.Is(err, bucket.ErrAbsent) {
		return d, "", deployments.NoDeployment(n.StackName, n.ID())
	}
	d.Name = n // the stack may have been renamed
	return d, tag, err
}

// ChangeDeployment changes a deployment by compare-and-swap; CodeNotFound when there is none.
func (s *Store) ChangeDeployment(
	ctx context.Context, n deployments.DeploymentName, change func(*Deployment) error,
) (Deployment, error) {
	for {
		d, tag, err := s.deployment(ctx, n)
		if err != nil {
			return d, err
		}
		if err := change(&d); err != nil {
			return d, err
		}
		d.Modified = s.sealed.Now().UTC()
		err = s.stacks.PutIf(ctx, n.StackName, recordKey(n), d, bucket.Condition{Tag: tag})
		if !errors.Is(err, bucket.ErrChanged) {
			return d, err
		}
	}
}

func logPrefix(n deployments.DeploymentName) string {
	return stackobjects.Key(n.StackName, deploymentFolder, logFolder, fmt.Sprintf("%08d", n.Number), "")
}

// LogPart names lines of the log of a deployment: parts are read by step, attempt and number.
type LogPart struct {
	Name                  deployments.DeploymentName
	Step, Attempt, Number int
}

// PutDeploymentLog writes lines. Writing the same part again replaces it.
func (s *Store) PutDeploymentLog(ctx context.Context, p LogPart, lines []apitype.DeploymentLogLine) error {
	key := logPrefix(p.Name) + fmt.Sprintf("%02d-%06d-%06d", p.Step, p.Attempt, p.Number)
	return s.stacks.PutJSON(ctx, p.Name.StackName, key, lines)
}

// logParts and logBytes limit what is read of a log at once.
const logParts, logBytes = 50, 1 << 20

// DeploymentLog returns the lines after a position, and the position after them.
func (s *Store) DeploymentLog(
	ctx context.Context, n deployments.DeploymentName, after string,
) (lines []apitype.DeploymentLogLine, next string, err error) {
	prefix := logPrefix(n)
	q := bucket.Query{Prefix: prefix, Limit: logParts}
	if after != "" {
		if !bucket.SafeSegment.MatchString(after) {
			return nil, "", deployments.Errorf(deployments.CodeInvalid, "this is not a position in the log of a deployment")
		}
		q.After = prefix + after
	}
	l, err := s.sealed.Objects.List(ctx, q)
	if err != nil {
		return nil, "", bucket.Failed(err, "list "+prefix)
	}
	next = after
	for read := 0; len(l.Keys) > 0 && read < logBytes; l.Keys = l.Keys[1:] {
		var part []apitype.DeploymentLogLine
		if _, err := s.stacks.GetJSON(ctx, n.StackName, l.Keys[0], &part); err != nil {
			return nil, "", err
		}
		for _, line := range part {
			read += len(line.Line)
		}
		lines, next = append(lines, part...), l.Keys[0][len(prefix):]
	}
	return lines, next, nil
}
