package statestore

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
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

// StoredDeployment is a deployment with what it runs. It is sealed, like everything of a stack.
type StoredDeployment struct {
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

// StoredSettings are the deployment settings of a stack, with secrets in plaintext, and what deployments that a push
// starts may do: as much as whoever made the settings.
type StoredSettings struct {
	deployments.DeploymentSettings
	Authority *deployments.Authority `json:"authority,omitempty"`
}

func recordKey(n deployments.DeploymentName) string {
	return stackKey(n.StackName, deploymentFolder, recordFolder, fmt.Sprintf("%08d", n.Number))
}

// AddDeployment stores a deployment under the next number, and removes those that are no longer kept.
func (s *Store) AddDeployment(ctx context.Context, d StoredDeployment) (StoredDeployment, error) {
	for {
		numbers, err := s.DeploymentNumbers(ctx, d.Name.StackName)
		if err != nil {
			return d, err
		}
		if d.Name.Number = 1; len(numbers) > 0 {
			d.Name.Number = numbers[len(numbers)-1] + 1
		}
		err = s.putIf(ctx, d.Name.StackName, recordKey(d.Name), d, bucket.Condition{Absent: true})
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
		if err := s.objects.Delete(ctx, recordKey(n)); err != nil && !errors.Is(err, bucket.ErrAbsent) {
			return bucket.Failed(err, "remove the deployment "+n.String())
		}
	}
	return nil
}

// DeploymentNumbers returns the numbers of a stack's deployments, in order.
func (s *Store) DeploymentNumbers(ctx context.Context, name deployments.StackName) ([]int, error) {
	prefix := stackKey(name, deploymentFolder, recordFolder, "")
	l, err := s.objects.List(ctx, bucket.Query{Prefix: prefix})
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
func (s *Store) Deployment(ctx context.Context, n deployments.DeploymentName) (StoredDeployment, error) {
	d, _, err := s.deployment(ctx, n)
	return d, err
}

func (s *Store) deployment(
	ctx context.Context, n deployments.DeploymentName,
) (d StoredDeployment, tag string, err error) {
	if err := n.Validate(); err != nil {
		return d, "", err
	}
	key := recordKey(n)
	plain, tag, err := s.getTagged(ctx, n.StackName, key)
	if errors.Is(err, bucket.ErrAbsent) {
		return d, "", deployments.NoDeployment(n.StackName, n.ID())
	}
	if err == nil && json.Unmarshal(plain, &d) != nil {
		err = bucket.Damaged(key, errors.New("it is not a deployment"))
	}
	d.Name = n // the stack may have been renamed
	return d, tag, err
}

// ChangeDeployment changes a deployment by compare-and-swap; CodeNotFound when there is none.
func (s *Store) ChangeDeployment(
	ctx context.Context, n deployments.DeploymentName, change func(*StoredDeployment) error,
) (StoredDeployment, error) {
	for {
		d, tag, err := s.deployment(ctx, n)
		if err != nil {
			return d, err
		}
		if err := change(&d); err != nil {
			return d, err
		}
		d.Modified = s.now().UTC()
		if err = s.putIf(ctx, n.StackName, recordKey(n), d, bucket.Condition{Tag: tag}); !errors.Is(err, bucket.ErrChanged) {
			return d, err
		}
	}
}

// putIf seals and writes an object under a condition; the error about one that does not hold wraps ErrChanged.
func (s *Store) putIf(ctx context.Context, name deployments.StackName, key string, v any, c bucket.Condition) error {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return err
	}
	return s.putOf(ctx, r, name, key, v, c)
}

// putOf is putIf of the stack that has these keys.
func (s *Store) putOf(
	ctx context.Context, r *stackKeys, name deployments.StackName, key string, v any, c bucket.Condition,
) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", key, err)
	}
	if _, err = s.objects.Put(ctx, key, r.box.Seal(plain, sealContext(name, key)), c); errors.Is(err, bucket.ErrChanged) {
		return err
	}
	return bucket.Failed(err, "write "+key)
}

func logPrefix(n deployments.DeploymentName) string {
	return stackKey(n.StackName, deploymentFolder, logFolder, fmt.Sprintf("%08d", n.Number), "")
}

// LogPart names lines of the log of a deployment: parts are read by step, attempt and number.
type LogPart struct {
	Name                  deployments.DeploymentName
	Step, Attempt, Number int
}

// PutDeploymentLog writes lines. Writing the same part again replaces it.
func (s *Store) PutDeploymentLog(ctx context.Context, p LogPart, lines []apitype.DeploymentLogLine) error {
	key := logPrefix(p.Name) + fmt.Sprintf("%02d-%06d-%06d", p.Step, p.Attempt, p.Number)
	return s.putJSON(ctx, p.Name.StackName, key, lines)
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
	l, err := s.objects.List(ctx, q)
	if err != nil {
		return nil, "", bucket.Failed(err, "list "+prefix)
	}
	next = after
	for read := 0; len(l.Keys) > 0 && read < logBytes; l.Keys = l.Keys[1:] {
		var part []apitype.DeploymentLogLine
		if err := s.getJSON(ctx, n.StackName, l.Keys[0], &part); err != nil {
			return nil, "", err
		}
		for _, line := range part {
			read += len(line.Line)
		}
		lines, next = append(lines, part...), l.Keys[0][len(prefix):]
	}
	return lines, next, nil
}

func settingsKey(name deployments.StackName) string {
	return stackKey(name, deploymentFolder, settingsObject)
}

// DeploymentSettings returns a stack's settings; the zero value when it has none.
func (s *Store) DeploymentSettings(ctx context.Context, name deployments.StackName) (StoredSettings, error) {
	var settings StoredSettings
	err := s.getJSON(ctx, name, settingsKey(name), &settings)
	if errors.Is(err, bucket.ErrAbsent) {
		err = nil
	}
	return settings, err
}

// ChangeDeploymentSettings changes a stack's settings by compare-and-swap.
func (s *Store) ChangeDeploymentSettings(
	ctx context.Context, name deployments.StackName, change func(*StoredSettings) error,
) error {
	for {
		var settings StoredSettings
		plain, tag, err := s.getTagged(ctx, name, settingsKey(name))
		if err == nil {
			err = json.Unmarshal(plain, &settings)
		}
		if err != nil && !errors.Is(err, bucket.ErrAbsent) {
			return err
		}
		if err := change(&settings); err != nil {
			return err
		}
		condition := bucket.Condition{Tag: tag, Absent: tag == ""}
		if err := s.putIf(ctx, name, settingsKey(name), settings, condition); !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

// RemoveDeploymentSettings removes a stack's settings, if there are any.
func (s *Store) RemoveDeploymentSettings(ctx context.Context, name deployments.StackName) error {
	if _, err := s.stackKeysOf(ctx, name); err != nil {
		return err
	}
	if err := s.sealed.DeleteAll(ctx, stackKey(name, deploymentFolder, hostKeyFolder, "")); err != nil {
		return err
	}
	err := s.objects.Delete(ctx, settingsKey(name))
	if errors.Is(err, bucket.ErrAbsent) {
		return nil
	}
	return bucket.Failed(err, "remove the deployment settings of "+name.String())
}

// settingContext is the context with which a secret of the settings is sealed when it is shown. What one is for is a
// part of it: else whoever may change the settings could put the text of a secret where its value comes to light.
func settingContext(purpose string) string { return "deployment-setting " + purpose }

// HideSetting returns the text that stands for a secret, which is for a purpose, in what is shown. Only this service
// can read it.
func (s *Store) HideSetting(
	ctx context.Context, name deployments.StackName, purpose, plain string,
) (string, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(r.box.Seal([]byte(plain), settingContext(purpose))), nil
}

// OpenSetting returns the secret, which is for a purpose, for which a text of HideSetting stands.
func (s *Store) OpenSetting(
	ctx context.Context, name deployments.StackName, purpose, text string,
) (string, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return "", err
	}
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		sealed, err = r.box.Open(sealed, settingContext(purpose))
	}
	if err != nil {
		return "", deployments.Errorf(deployments.CodeInvalid, "a secret of the deployment settings was encrypted for "+
			"another stack, repository or setting, or by another service: set it again")
	}
	return string(sealed), nil
}

// hostKeyFolder has the keys that SSH servers of a stack's repositories had at first.
const hostKeyFolder = "hostkeys"

func hostKeyKey(name deployments.StackName, url string) string {
	return stackKey(name, deploymentFolder, hostKeyFolder, sha256Hex([]byte(url)))
}

// GitHostKey returns the key that the SSH server of a repository had at first; empty when none is known.
func (s *Store) GitHostKey(ctx context.Context, name deployments.StackName, url string) (key string, err error) {
	if err = s.getJSON(ctx, name, hostKeyKey(name, url), &key); errors.Is(err, bucket.ErrAbsent) {
		err = nil
	}
	return key, err
}

// PutGitHostKey stores the key that the SSH server of a repository has, if none is known yet.
func (s *Store) PutGitHostKey(ctx context.Context, name deployments.StackName, url, key string) error {
	err := s.putIf(ctx, name, hostKeyKey(name, url), key, bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return nil
	}
	return err
}
