package deployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/jobs/gitsource"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/deployctl/deployctl/statestore/stacksecrets"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// fetchTime bounds how long a repository is fetched, commandTime all commands before the operation, packTime the
	// reading of the project.
	fetchTime, commandTime, packTime = 15 * time.Minute, 30 * time.Minute, 15 * time.Minute
	// fetchAttempts and fetchPause limit the attempts to reach a git server.
	fetchAttempts, fetchPause = 4, 5 * time.Second
	// The headers of the log.
	headerFetch, headerCommands, headerPack = "Get source", "Run pre-run commands", "Read project"
)

// preparation is one deployment whose update is being prepared.
type preparation struct {
	*Activities
	deployment jobs.Deployment
	box        *sandbox.Box
	env        []string // of what runs in the box
	log        *logger
	root       string // the checkout
	fetched    gitsource.Fetched
}

// PrepareDeployment gets the program of a deployment, and returns the request of its update. Without a place for it, it
// is postponed. It may be repeated, on another worker: commands before the operation then run again, on a fresh
// checkout.
func (a *Activities) PrepareDeployment(
	ctx context.Context, n deployments.DeploymentName,
) (deployments.PreparedDeployment, error) {
	leave, ok := a.preparing.Take(n.Organization)
	if !ok {
		return deployments.PreparedDeployment{}, failure.Later(ctx, "the worker prepares other deployments", nextLook)
	}
	defer leave()
	d, err := a.change(ctx, n, func(d *jobs.Deployment) { begin(d, headerFetch) })
	if err != nil {
		return deployments.PreparedDeployment{}, failure.Of(err)
	}
	if err := a.permit(ctx, d); err != nil {
		return deployments.PreparedDeployment{}, failure.Of(err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	beat(ctx)
	go a.watchCancel(ctx, n, cancel)
	p := &preparation{Activities: a, deployment: d}
	p.log = a.log(ctx, n, stepPrepare, redaction.New(secretsOf(d.Settings)))
	defer p.log.close()
	request, err := p.run(ctx)
	if why := (*deployments.Error)(nil); ctx.Err() != nil && errors.As(context.Cause(ctx), &why) {
		err = why
	}
	if err != nil {
		p.log.line(err.Error())
		return deployments.PreparedDeployment{}, failure.Of(p.hidden(err))
	}
	return deployments.PreparedDeployment{Request: request, Drift: d.Operation == apitype.DetectDrift,
		Remediate: d.Settings.Options().RemediateIfDriftDetected}, nil
}

// hidden returns an error without the secrets of the deployment.
func (p *preparation) hidden(err error) error {
	if text := p.log.redactor.Replace(err.Error()); text != err.Error() {
		return deployments.Errorf(deployments.CodeOf(err), "%s", text)
	}
	return err
}

// permit rejects a deployment whose requester may not deploy to the stack any more.
func (a *Activities) permit(ctx context.Context, d jobs.Deployment) error {
	if d.Authority == nil {
		return deployments.Errorf(deployments.CodeInvalid, "it is not known who has asked for the deployment")
	}
	err := a.Store.Access.Permit(ctx, *d.Authority, d.Name.StackName, deployments.AuditEntry{
		Request: activity.GetInfo(ctx).WorkflowExecution.RunID, Peer: "deployment", Method: "Deployments/Submit",
		Subject: "deployment=" + fmt.Sprint(d.Name.Number),
	})
	if errors.Is(err, access.ErrNotAllowed) {
		err = deployments.Errorf(deployments.CodeInvalid, "the user who asked for the deployment may not deploy any "+
			"more: %w", err)
	}
	return err
}

// errCancelled is the error of a deployment that was cancelled.
var errCancelled = deployments.Errorf(deployments.CodeCancelled, "the deployment was cancelled")

// watchCancel ends ctx when the deployment is cancelled, or this worker stops.
func (a *Activities) watchCancel(ctx context.Context, n deployments.DeploymentName, cancel context.CancelCauseFunc) {
	for ctx.Err() == nil {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			cancel(context.Canceled)
		case <-ctx.Done():
		case <-time.After(pollEvery):
			if d, err := a.Store.Jobs.Deployment(ctx, n); err == nil && (d.Cancelled || d.Ended()) {
				cancel(errCancelled)
			}
		}
	}
}

func (p *preparation) run(ctx context.Context) (r deployments.UpdateRequest, err error) {
	if p.box, err = p.Sandbox.Box(p.deployment.Name.Organization, p.Rooms); err != nil {
		return r, bundlecache.Unavailable(err)
	}
	defer func() { _ = p.box.Close() }() // what is left is collected
	dir, err := p.box.Temp()
	if err != nil {
		return r, bundlecache.Unavailable(err)
	}
	p.root, p.env = filepath.Join(dir, "source"), process.Inherit(nil, p.Env)
	if err := p.fetch(ctx); err != nil {
		return r, err
	}
	if err := p.commands(ctx); err != nil {
		return r, err
	}
	packed, err := p.pack(ctx)
	if err != nil {
		return r, err
	}
	head, err := p.Store.Head(ctx, p.deployment.Name.StackName)
	if err != nil {
		return r, err
	}
	return p.request(packed, head.ID), nil
}

// starter starts the process that handles the repository.
func (p *preparation) starter() gitsource.Starter {
	return gitsource.Starter{Box: p.box, Env: p.env, Said: p.log.line}
}

// step begins a step in the log and in the deployment's description.
func (p *preparation) step(ctx context.Context, header string, change func(*jobs.Deployment)) error {
	p.log.header(header)
	_, err := p.change(ctx, p.deployment.Name, func(d *jobs.Deployment) {
		begin(d, header)
		change(d)
	})
	return err
}

// fetch gets the files of the commit.
func (p *preparation) fetch(ctx context.Context) error {
	git := p.deployment.Settings.Git()
	known, err := p.Store.Jobs.GitHostKey(ctx, p.deployment.Name.StackName, git.RepoURL)
	if err != nil {
		return err
	}
	if err := p.step(ctx, headerFetch, func(*jobs.Deployment) {}); err != nil {
		return err
	}
	p.log.line(p.deployment.Source)
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTime, deployments.Errorf(deployments.CodeInvalid,
		"the repository was not fetched within %s", fetchTime))
	defer cancel()
	if err := p.fetchWithRetries(ctx, gitsource.FetchOrder{
		URL: git.RepoURL, Branch: git.Branch, Commit: git.Commit, Auth: authOf(git.GitAuth), Dir: p.root,
		HostKey: known, Private: p.Sources.Private, Hosts: p.Sources.Hosts,
	}); err != nil {
		return err
	}
	if p.fetched.HostKey != "" && known == "" {
		if err := p.Store.Jobs.PutGitHostKey(ctx, p.deployment.Name.StackName, git.RepoURL, p.fetched.HostKey); err != nil {
			return err
		}
	}
	p.log.line("commit " + p.fetched.Commit + " " + p.fetched.Message)
	return nil
}

// fetchWithRetries fetches, and tries again when the server does not answer. A server that stays away fails the
// deployment: its name may be wrong.
func (p *preparation) fetchWithRetries(ctx context.Context, o gitsource.FetchOrder) (err error) {
	for attempt := 1; ; attempt++ {
		p.fetched, err = p.starter().Fetch(ctx, o)
		switch {
		case err == nil || ctx.Err() != nil || deployments.CodeOf(err) != deployments.CodeUnavailable:
			return err
		case attempt == fetchAttempts:
			return deployments.Errorf(deployments.CodeInvalid, "the git server does not answer: %w", err)
		}
		p.log.line(err.Error() + "; it is tried again")
		sleep(ctx, time.Duration(attempt)*fetchPause)
		if err := p.box.Do(func() error { return sandbox.RemoveAll(o.Dir) }); err != nil {
			return bundlecache.Unavailable(err)
		}
	}
}

// commands runs the commands before the operation, one after the other.
func (p *preparation) commands(ctx context.Context) error {
	lines := p.deployment.Settings.Run().PreRunCommands
	if len(lines) == 0 {
		return nil
	}
	if err := p.step(ctx, headerCommands, func(*jobs.Deployment) {}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, commandTime, deployments.Errorf(deployments.CodeInvalid,
		"the commands before the operation did not end within %s", commandTime))
	defer cancel()
	for _, line := range lines {
		p.log.line("$ " + line)
		if err := p.command(ctx, line); err != nil {
			return err
		}
	}
	return nil
}

func (p *preparation) command(ctx context.Context, line string) error {
	settings := p.deployment.Settings
	env := process.Inherit(environmentOf(settings), p.Env)
	shell := settings.Options().Shell
	if shell == "" {
		shell = "sh"
	}
	shell, err := process.Look(nil, env, path.Base(shell))
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the worker has no shell for the commands before the "+
			"operation: %w", err)
	}
	dir := filepath.Join(p.root, filepath.FromSlash(settings.Git().RepoDir))
	if settings.Executor != nil && settings.Executor.WorkingDirectory != "" {
		dir = filepath.Join(p.root, filepath.FromSlash(settings.Executor.WorkingDirectory))
	}
	running, err := process.Start(process.Command{Path: shell, Args: []string{"-c", line}, Dir: dir, Env: env,
		Stdout: p.log.line, Stderr: p.log.line, Box: p.box})
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the command %q cannot be run: %w", line, err)
	}
	select {
	case <-running.Done():
	case <-ctx.Done():
		running.Kill()
		return context.Cause(ctx)
	}
	if exit := running.Exit(); exit.Code != 0 {
		return deployments.Errorf(deployments.CodeInvalid, "the command %q before the operation failed (%s); the log of "+
			"the deployment has its output", line, exit)
	}
	return nil
}

// pack reads the project and uploads its files.
func (p *preparation) pack(ctx context.Context) (gitsource.Packed, error) {
	commit, message := p.fetched.Commit, p.fetched.Message
	if err := p.step(ctx, headerPack, func(d *jobs.Deployment) { d.Commit = commit }); err != nil {
		return gitsource.Packed{}, err
	}
	p.log.line("the project of commit " + commit + ": " + message)
	ctx, cancel := context.WithTimeoutCause(ctx, packTime, deployments.Errorf(deployments.CodeInvalid,
		"the project was not read within %s", packTime))
	defer cancel()
	settings := p.deployment.Settings
	passphrase, _ := process.Variable(environmentOf(settings), passphraseVariable)
	return p.starter().Pack(ctx, gitsource.PackOrder{Root: p.root, Dir: settings.Git().RepoDir,
		Stack: p.deployment.Name.StackName, Passphrase: passphrase}, packedFor{p.Store.Secrets, p.Store.Programs})
}

// packedFor takes what is packed, and decrypts what that needs.
type packedFor struct {
	*stacksecrets.Store
	deployments.Bundles
}

const passphraseVariable = "PULUMI_CONFIG_PASSPHRASE"

// hiddenVariables are not for programs.
var hiddenVariables = []string{passphraseVariable, "PULUMI_ACCESS_TOKEN"}

// request returns the request of the update.
func (p *preparation) request(packed gitsource.Packed, stackID string) deployments.UpdateRequest {
	d := p.deployment
	r := deployments.UpdateRequest{
		Stack: d.Name.StackName, RequestID: deployments.DeploymentRequestID(d.Name, stackID, len(d.Updates)),
		OnBusy: deployments.OnBusyQueue, Bundle: packed.Bundle, Config: packed.Config, Secrets: packed.Secrets,
		Initiator: d.By(), Authority: d.Authority, Parallel: deployments.DefaultParallel,
		Message: strings.TrimSpace(fmt.Sprintf("%s: %.8s %s", d.Name.ID(), p.fetched.Commit, p.fetched.Message)),
		Kind:    engine.KindUp,
	}
	for _, variable := range environmentOf(d.Settings) {
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains(hiddenVariables, name) {
			r.Environment = append(r.Environment, variable)
		}
	}
	switch d.Operation {
	case apitype.Preview:
		r.DryRun = true
	case apitype.Destroy:
		r.Kind = engine.KindDestroy
	case apitype.Refresh:
		r.Kind = engine.KindRefresh
	case apitype.DetectDrift:
		r.Kind, r.DryRun = engine.KindRefresh, true
	case apitype.RemediateDrift:
		r.Refresh = true
	}
	r.Refresh = r.Refresh || packed.Refresh && r.Kind != engine.KindRefresh
	return r
}

// environmentOf returns the variables of settings as NAME=VALUE, in order.
func environmentOf(s deployments.DeploymentSettings) []string {
	variables := s.Run().EnvironmentVariables
	var env []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		env = append(env, name+"="+variables[name].Value)
	}
	return env
}

// authOf returns the credentials of settings.
func authOf(auth *apitype.GitAuthConfig) gitsource.Auth {
	text := func(v *apitype.SecretValue) string {
		if v == nil {
			return ""
		}
		return v.Value
	}
	switch {
	case auth == nil:
		return gitsource.Auth{}
	case auth.SSHAuth != nil:
		return gitsource.Auth{Key: auth.SSHAuth.SSHPrivateKey.Value, KeyPhrase: text(auth.SSHAuth.Password)}
	case auth.PersonalAccessToken != nil:
		return gitsource.Auth{Password: auth.PersonalAccessToken.Value}
	case auth.BasicAuth != nil:
		return gitsource.Auth{User: auth.BasicAuth.UserName.Value, Password: auth.BasicAuth.Password.Value}
	}
	return gitsource.Auth{}
}

// secretsOf returns the texts that no log may have.
func secretsOf(s deployments.DeploymentSettings) []string {
	var all []string
	for _, v := range s.Secrets() {
		all = append(all, v.Value)
	}
	for _, v := range s.Run().EnvironmentVariables {
		if v.Secret {
			all = append(all, redaction.Leaves(v.Value)...)
		}
	}
	return all
}
