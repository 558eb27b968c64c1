package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/deployments"
)

// executable plays updates with a command line tool: deployctl, or the stock CLI.
type executable struct {
	path  string
	env   []string
	stock bool
}

func (e *executable) play(ctx context.Context, s stage, u update) (r result, err error) {
	if _, err := e.run(ctx, s, "stack", "select", s.stack); err != nil {
		commands := [][]string{{"stack", "init", s.stack}}
		for _, key := range endpoints {
			commands = append(commands, []string{"config", "set", key, s.cloud})
		}
		for _, args := range commands {
			if out, err := e.run(ctx, s, args...); err != nil {
				return r, fmt.Errorf("%w: %s", err, out)
			}
		}
	}
	cancelled, stop := cancelAtGate(ctx, s, u, func() error {
		_, err := e.run(ctx, s, "cancel", "--yes")
		return err
	})
	out, err := e.run(ctx, s, e.arguments(s, u)...)
	stop()
	if err := <-cancelled; err != nil {
		return r, err
	}
	exit := (*exec.ExitError)(nil)
	if r.failed = errors.As(err, &exit); err != nil && !r.failed {
		return r, err
	}
	said, err := r.read(out)
	if err != nil {
		return r, err
	}
	if r.failed {
		r.errors = append(r.errors, said)
	}
	r.state, err = e.export(ctx, s)
	return r, err
}

// read takes the events from what an update wrote, and returns the rest.
func (r *result) read(out string) (rest string, err error) {
	for line := range strings.Lines(out) {
		var e apitype.EngineEvent
		if json.Unmarshal([]byte(line), &e) != nil {
			rest += line
		} else if err := r.note(deployments.WatchEvent{Event: &e}); err != nil {
			return rest, err
		}
	}
	return strings.TrimSpace(rest), nil
}

func (e *executable) export(ctx context.Context, s stage) (state apitype.DeploymentV3, err error) {
	out, err := e.run(ctx, s, "stack", "export", "--show-secrets")
	if err != nil {
		return state, fmt.Errorf("%w: %s", err, out)
	}
	var exported apitype.UntypedDeployment
	if err := json.Unmarshal([]byte(out), &exported); err != nil || len(exported.Deployment) == 0 {
		return state, err
	}
	return state, json.Unmarshal(exported.Deployment, &state)
}

// arguments are those of an update.
func (e *executable) arguments(s stage, u update) []string {
	args := []string{u.Kind}
	if u.Import != "" {
		args = append(args, namedType, u.Import, u.Import, "--protect=false", "--generate-code=false")
	}
	args = append(args, "--yes", "--skip-preview", "--json", "--parallel", fmt.Sprint(s.parallel))
	if e.stock {
		args = append(args, "--non-interactive")
	}
	for flag, set := range map[string]bool{"--refresh": u.Refresh, "--target-dependents": u.TargetDependents,
		"--continue-on-error":  u.ContinueOnError,
		"--exclude-dependents": u.ExcludeDependents && u.Kind != "destroy", // which the stock CLI does not offer there
		"--ignore-protect":     u.IgnoreProtect, "--run-program": u.RunProgram} {
		if set {
			args = append(args, flag)
		}
	}
	for _, urn := range u.urns(s.stack, u.Targets) {
		args = append(args, "--target", urn)
	}
	for _, urn := range u.urns(s.stack, u.Excludes) {
		args = append(args, "--exclude", urn)
	}
	for _, urn := range u.urns(s.stack, u.Replace) {
		args = append(args, "--replace", urn)
	}
	return args
}

// run runs a command in the stage's directory and returns what it writes to standard output, or, if it fails, all that
// it writes.
func (e *executable) run(ctx context.Context, s stage, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.path, args...)
	cmd.Dir, cmd.Env = s.dir, e.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return strings.TrimSpace(stdout.String() + stderr.String()), err
	}
	return stdout.String(), nil
}

func (e *executable) remove(ctx context.Context, s stage) error {
	_, err := e.run(ctx, s, "stack", "rm", s.stack, "--yes", "--force")
	return err
}
