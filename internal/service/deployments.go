package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/deployctl/deployctl/workflows"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

var _ deployments.RemoteDeployments = (*Service)(nil)

// CreateDeployment records a deployment and starts its workflow.
func (s *Service) CreateDeployment(
	ctx context.Context, r deployments.DeploymentRequest,
) (deployments.Deployment, error) {
	if _, err := s.Head(ctx, r.Stack); err != nil {
		return deployments.Deployment{}, err
	}
	var stored jobs.Settings
	if r.Inherits {
		var err error
		if stored, err = s.store.Jobs.DeploymentSettings(ctx, r.Stack); err != nil {
			return deployments.Deployment{}, err
		}
	}
	return s.createDeployment(ctx, r, stored)
}

// createDeployment is CreateDeployment with the settings of the stack, if the request inherits them, as they were read
// with what else was decided by them: others may change them meanwhile.
func (s *Service) createDeployment(
	ctx context.Context, r deployments.DeploymentRequest, stored jobs.Settings,
) (deployments.Deployment, error) {
	if _, err := apitype.ParsePulumiOperation(string(r.Operation)); err != nil {
		return deployments.Deployment{}, deployments.Errorf(deployments.CodeInvalid, "%q is not an operation of a "+
			"deployment", r.Operation)
	}
	queue, err := s.Organizations.TaskQueue(ctx, r.Stack.Organization)
	if err != nil {
		return deployments.Deployment{}, err
	}
	settings, err := s.effective(ctx, r, stored.DeploymentSettings)
	if err != nil {
		return deployments.Deployment{}, err
	}
	if err := s.roomForDeployment(ctx, r.Stack); err != nil {
		return deployments.Deployment{}, err
	}
	now := time.Now().UTC()
	d, err := s.Jobs.AddDeployment(ctx, jobs.Deployment{
		Settings: settings, Authority: r.Authority,
		Deployment: deployments.Deployment{
			Name: deployments.DeploymentName{StackName: r.Stack}, Operation: r.Operation, Created: now, Modified: now,
			Status: deployments.DeploymentNotStarted, RequestedBy: r.RequestedBy, Initiator: r.Initiator,
			Inherits: r.Inherits, Source: sourceOf(settings.Git()),
		},
	})
	if err != nil {
		return d.Deployment, err
	}
	_, err = s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: deployments.DeploymentWorkflowID(d.Name), TaskQueue: queue,
		// An earlier stack of this name may have had a deployment of this number.
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: workflows.DeploymentAttributes(d.Deployment),
		StaticSummary: fmt.Sprintf("%s of %s/%s from a git repository", d.Operation, d.Name.Project,
			d.Name.Stack),
		Priority: workflows.Priority(d.Name.Organization, false),
	}, deployments.WorkflowDeployment, deployments.DeploymentInput{Name: d.Name})
	if err != nil { // if it did start, it finds that it has ended
		_, _ = s.Jobs.ChangeDeployment(context.WithoutCancel(ctx), d.Name, func(d *jobs.Deployment) error {
			d.Status, d.Error = deployments.DeploymentFailed, "it could not be started"
			d.Settings = deployments.DeploymentSettings{}
			return nil
		})
	}
	return d.Deployment, failure("start the deployment", err)
}

// mostWaiting limits the deployments of a stack that wait.
const mostWaiting = 100

// roomForDeployment rejects a deployment, as CodeConflict, when too many of the stack wait. One that has had its turn
// and ended says that all before it have ended.
func (s *Service) roomForDeployment(ctx context.Context, name deployments.StackName) error {
	numbers, err := s.Jobs.DeploymentNumbers(ctx, name)
	if err != nil {
		return err
	}
	waiting := 0
	for _, number := range slices.Backward(numbers) {
		d, err := s.store.Jobs.Deployment(ctx, deployments.DeploymentName{StackName: name, Number: number})
		switch {
		case err != nil && deployments.CodeOf(err) == deployments.CodeNotFound: // forgotten meanwhile
		case err != nil:
			return err
		case !d.Ended():
			waiting++
		case !d.Begun.IsZero():
			return nil
		}
		if waiting == mostWaiting {
			return deployments.Errorf(deployments.CodeConflict, "%d deployments of %s wait already: cancel some, or resume "+
				"them if they are paused", mostWaiting, name)
		}
	}
	return nil
}

// effective returns the settings that count for a request: its own over those that it inherits.
func (s *Service) effective(
	ctx context.Context, r deployments.DeploymentRequest, settings deployments.DeploymentSettings,
) (deployments.DeploymentSettings, error) {
	settings.Webhook = nil
	if err := s.openSettings(ctx, r.Stack, r.Settings); err != nil {
		return settings, err
	}
	overlay(&settings, r.Settings)
	if err := settings.Validate(); err != nil {
		return settings, err
	}
	if settings.Git().RepoURL == "" {
		return settings, deployments.Errorf(deployments.CodeInvalid, "the deployment has no git repository: name one, or "+
			"set it with `pulumi deployment settings edit --git-url URL --branch NAME`")
	}
	return settings, nil
}

// overlay puts the settings of a request over those of the stack. What the request leaves out stays; its variables are
// added; another repository does not get the credentials of the stack's.
func overlay(to *deployments.DeploymentSettings, r deployments.DeploymentSettings) {
	if r.SourceContext != nil && r.SourceContext.Git != nil {
		was, is := to.Git(), *r.SourceContext.Git
		if is.RepoURL == "" || is.RepoURL == was.RepoURL {
			is.RepoURL = was.RepoURL
			if is.GitAuth == nil {
				is.GitAuth = was.GitAuth
			}
			if is.RepoDir == "" {
				is.RepoDir = was.RepoDir
			}
			if is.Branch == "" && is.Commit == "" {
				is.Branch, is.Commit = was.Branch, was.Commit
			}
		}
		to.SourceContext = &apitype.SourceContext{Git: &is}
	}
	if r.Executor != nil && (r.Executor.WorkingDirectory != "" || r.Executor.ExecutorImage != nil) {
		to.Executor = r.Executor
	}
	if r.AgentPoolID != nil {
		to.AgentPoolID = r.AgentPoolID
	}
	if r.Operation == nil {
		return
	}
	run := to.Run()
	run.EnvironmentVariables = maps.Clone(run.EnvironmentVariables)
	if run.EnvironmentVariables == nil {
		run.EnvironmentVariables = map[string]apitype.SecretValue{}
	}
	maps.Copy(run.EnvironmentVariables, r.Operation.EnvironmentVariables)
	if len(r.Operation.PreRunCommands) > 0 {
		run.PreRunCommands = r.Operation.PreRunCommands
	}
	if r.Operation.Options != nil {
		run.Options = r.Operation.Options
	}
	if r.Operation.OIDC != nil {
		run.OIDC = r.Operation.OIDC
	}
	to.Operation = &run
}

// sourceOf describes a source, without credentials.
func sourceOf(git apitype.SourceContextGit) string {
	text := git.RepoURL
	if u, err := deployments.GitURL(git.RepoURL); err == nil {
		text = deployments.ShownURL(u)
	}
	switch {
	case git.Commit != "":
		text += ", commit " + git.Commit
	case git.Branch != "":
		text += ", branch " + git.Branch
	}
	if git.RepoDir != "" {
		text += ", directory " + git.RepoDir
	}
	return text
}

// Deployment describes a deployment.
func (s *Service) Deployment(ctx context.Context, n deployments.DeploymentName) (deployments.Deployment, error) {
	d, err := s.store.Jobs.Deployment(ctx, n)
	return d.Deployment, err
}

// mostListed bounds a page of deployments.
const mostListed = 100

// ListDeployments describes a page of a stack's deployments.
func (s *Service) ListDeployments(
	ctx context.Context, name deployments.StackName, p deployments.DeploymentPage,
) ([]deployments.Deployment, int, error) {
	if _, err := s.Head(ctx, name); err != nil {
		return nil, 0, err
	}
	numbers, err := s.Jobs.DeploymentNumbers(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	total := len(numbers)
	if !p.Ascending {
		slices.Reverse(numbers)
	}
	p.Size = min(p.Size, mostListed)
	from, to := p.Bounds(total)
	list := []deployments.Deployment{}
	for _, number := range numbers[from:to] {
		d, err := s.Deployment(ctx, deployments.DeploymentName{StackName: name, Number: number})
		if err != nil {
			return nil, 0, err
		}
		list = append(list, d)
	}
	return list, total, nil
}

// DeploymentLogs returns what follows a position in the log of a deployment.
func (s *Service) DeploymentLogs(
	ctx context.Context, n deployments.DeploymentName, after string,
) (deployments.DeploymentLogs, error) {
	d, err := s.Deployment(ctx, n) // before its log: all of one that has ended is there
	if err != nil {
		return deployments.DeploymentLogs{}, err
	}
	lines, next, err := s.Jobs.DeploymentLog(ctx, n, after)
	switch {
	case next == after && d.Ended():
		next = ""
	case next == "":
		next = logStart
	}
	return deployments.DeploymentLogs{Lines: lines, Next: next}, err
}

// logStart is the position before the first line of a log.
const logStart = "00"

// CancelDeployment ends a deployment. One that no worker takes up is ended when one does.
func (s *Service) CancelDeployment(ctx context.Context, n deployments.DeploymentName) error {
	_, err := s.Jobs.ChangeDeployment(ctx, n, func(d *jobs.Deployment) error {
		if d.Ended() {
			return deployments.Errorf(deployments.CodeConflict, "%s has ended: it has %s", n.ID(), d.Status)
		}
		d.Cancelled = true
		return nil
	})
	if err != nil {
		return err
	}
	err = s.temporal.CancelWorkflow(ctx, deployments.DeploymentWorkflowID(n), "")
	if missing := (*serviceerror.NotFound)(nil); errors.As(err, &missing) {
		return nil // it has just ended
	}
	return failure("cancel the deployment", err)
}

// DeploymentSettings returns the settings of a stack; texts that only this service can read stand for the secrets.
func (s *Service) DeploymentSettings(
	ctx context.Context, name deployments.StackName,
) (deployments.DeploymentSettings, error) {
	stored, err := s.store.Jobs.DeploymentSettings(ctx, name)
	if err != nil {
		return stored.DeploymentSettings, err
	}
	return stored.DeploymentSettings, stored.MapSecrets(
		func(purpose string, v apitype.SecretValue) (apitype.SecretValue, error) {
			text, err := s.Jobs.HideSetting(ctx, name, purpose, v.Value)
			return apitype.SecretValue{Secret: true, Ciphertext: text}, err
		})
}

// openSettings replaces the texts that stand for secrets by the secrets.
func (s *Service) openSettings(
	ctx context.Context, name deployments.StackName, settings deployments.DeploymentSettings,
) error {
	return settings.MapSecrets(func(purpose string, v apitype.SecretValue) (apitype.SecretValue, error) {
		if v.Ciphertext == "" {
			return v, nil
		}
		plain, err := s.Jobs.OpenSetting(ctx, name, purpose, v.Ciphertext)
		return apitype.SecretValue{Secret: true, Value: plain}, err
	})
}

// PatchDeploymentSettings applies a merge patch to the settings of a stack.
func (s *Service) PatchDeploymentSettings(
	ctx context.Context, name deployments.StackName, patch json.RawMessage, by *deployments.Authority,
) error {
	return s.Jobs.ChangeDeploymentSettings(ctx, name, func(stored *jobs.Settings) error {
		was, err := json.Marshal(stored.DeploymentSettings)
		if err != nil {
			return err
		}
		text, err := deployments.MergePatch(was, patch)
		if err != nil {
			return err
		}
		var settings deployments.DeploymentSettings
		if err := rawjson.Unmarshal(text, &settings); err != nil {
			return deployments.Errorf(deployments.CodeInvalid, "the deployment settings are not valid: %w", err)
		}
		if err := forgetCredentials(stored.DeploymentSettings, settings, patch); err != nil {
			return err
		}
		if err := s.openSettings(ctx, name, settings); err != nil {
			return err
		}
		if err := settings.Validate(); err != nil {
			return err
		}
		stored.DeploymentSettings = settings
		if !onlyPauses(patch) { // which decides nothing about what is run
			stored.Authority = by
		}
		return nil
	})
}

// forgetCredentials removes the credentials of the repository before from settings that a patch has given another one:
// that gets only those of the patch.
func forgetCredentials(was, is deployments.DeploymentSettings, patch json.RawMessage) error {
	if is.SourceContext == nil || is.SourceContext.Git == nil || is.Git().RepoURL == was.Git().RepoURL {
		return nil
	}
	var given deployments.DeploymentSettings
	if err := rawjson.Unmarshal(patch, &given); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the deployment settings are not valid: %w", err)
	}
	is.SourceContext.Git.GitAuth = given.Git().GitAuth
	return nil
}

// onlyPauses reports whether a patch only pauses or resumes deployments.
func onlyPauses(patch json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(patch, &members) != nil {
		return false
	}
	_, pauses := members["paused"]
	return pauses && len(members) == 1
}

// RemoveDeploymentSettings removes the settings of a stack.
func (s *Service) RemoveDeploymentSettings(ctx context.Context, name deployments.StackName) error {
	return s.store.Jobs.RemoveDeploymentSettings(ctx, name)
}
