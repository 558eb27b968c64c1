package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/google/uuid"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/project"
)

// embedded is deployctl's embedded service, in directories of its own, and a client of it.
type embedded struct {
	binary, dir string
	env         []string
	client      *client.Client
	killed      bool // again and again, while it plays
}

// findable says how creates whose answers a kill loses are found.
const findable = `{"` + namedType + `": {"read": "property:name"}, "` + autoType + `": {"read": "property:name"}, "` +
	exclusiveType + `": {"read": "property:name"}}`

// endpoints are the keys of the configuration that say where the cloud is, by package.
var endpoints = []string{"fake:endpoint", "sub:endpoint"}

// startEmbedded starts the service of a binary.
func startEmbedded(ctx context.Context, binary, dir string, env []string) (*embedded, error) {
	e := &embedded{binary: binary, dir: dir, env: env}
	if _, err := e.run(ctx, "dev", "--background"); err != nil {
		return nil, err
	}
	s, err := e.status(ctx)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	token, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	e.client, err = client.Dial(client.Options{Address: s.APIAddress, CAFile: s.Certificate,
		Token: strings.TrimSpace(string(token))})
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *embedded) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, e.binary, args...)
	cmd.Dir, cmd.Env, cmd.Stderr = e.dir, e.env, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("deployctl %s: %w", strings.Join(args, " "), err)
	}
	return out, err
}

func (e *embedded) close() error {
	if e.client != nil {
		_ = e.client.Close() // nothing is in flight
	}
	_, err := e.run(context.Background(), "dev", "stop")
	return err
}

// service is the secrets provider of every stack.
var service = deployments.SecretsProvider{Type: deployments.SecretsService}

func (s stage) name() deployments.StackName {
	return deployments.StackName{Organization: deployments.DefaultOrganization, Project: projectName,
		Stack: s.stack}
}

func (e *embedded) play(ctx context.Context, s stage, u update) (r result, err error) {
	request := deployments.UpdateRequest{
		Stack: s.name(), RequestID: uuid.NewString(), Kind: engine.Kind(u.Kind), Environment: e.env, Secrets: service,
		Config:  map[string]deployments.ConfigValue{},
		Refresh: u.Refresh, Targets: u.urns(s.stack, u.Targets), TargetDependents: u.TargetDependents,
		Replace: u.urns(s.stack, u.Replace), ContinueOnError: u.ContinueOnError, Parallel: s.parallel,
		Excludes: u.urns(s.stack, u.Excludes), ExcludeDependents: u.ExcludeDependents, IgnoreProtect: u.IgnoreProtect,
		RunProgram: u.RunProgram,
	}
	for _, key := range endpoints {
		request.Config[key] = deployments.ConfigValue{Value: s.cloud}
	}
	if u.Import != "" {
		request.Imports = []deployments.Import{{Type: namedType, Name: u.Import, ID: u.Import}}
	}
	if e.killed {
		request.Config["deployctl:settle"] = deployments.ConfigValue{Value: findable}
	}
	if _, err := e.client.Stack(ctx, s.name()); deployments.CodeOf(err) == deployments.CodeNotFound {
		if err := e.client.CreateStack(ctx, s.name(), nil); err != nil {
			return r, err
		}
	}
	found, err := project.Find(s.dir)
	if err != nil {
		return r, err
	}
	bundle, err := found.Gather()
	if err != nil {
		return r, err
	}
	if request.Bundle, err = bundle.Upload(ctx, e.client, s.name()); err != nil {
		return r, err
	}
	accepted, err := e.client.Submit(ctx, request)
	for deployments.CodeOf(err) == deployments.CodeNoWorker && ctx.Err() == nil { // on a loaded machine
		accepted, err = e.client.Submit(ctx, request)
	}
	if err != nil {
		return r, err
	}
	cancelled, stop := cancelAtGate(ctx, s, u, func() error { return e.client.Cancel(ctx, accepted.Update, false) })
	err = e.client.Watch(ctx, accepted.Update, r.note)
	stop()
	if err := errors.Join(err, <-cancelled); err != nil {
		return r, err
	}
	exported, err := e.client.Export(ctx, s.name(), 0, service, true)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(exported.Deployment, &r.state)
}

// cancelAtGate calls cancel when a request of the update reaches its gate, and then opens the gate. It stops waiting by
// stop; then the channel has its error, if any.
func cancelAtGate(ctx context.Context, s stage, u update, cancel func() error) (done <-chan error, stop func()) {
	result := make(chan error, 1)
	if u.CancelAt == nil {
		result <- nil
		return result, func() {}
	}
	waiting, stop := context.WithCancel(ctx)
	gate := fakecloud.NewClient(s.cloud).Gate(u.CancelAt.Name)
	go func() {
		if gate.Wait(waiting) != nil { // the update has ended without such a request
			result <- nil
			return
		}
		result <- errors.Join(cancel(), gate.Open(ctx))
	}()
	return result, stop
}

// note takes what an event says about steps, errors and the end.
func (r *result) note(e deployments.WatchEvent) error {
	if e.End != nil {
		r.failed = e.End.Status != deployments.StatusSucceeded
		if e.End.Error != "" {
			r.errors = append(r.errors, e.End.Error)
		}
	}
	if e.Event == nil {
		return nil
	}
	switch v := e.Event; {
	case v.DiagnosticEvent != nil && v.DiagnosticEvent.Severity == "error":
		r.errors = append(r.errors, strings.TrimSpace(v.DiagnosticEvent.Message))
	case v.DiagnosticEvent != nil:
		r.hear(v.DiagnosticEvent.Message)
	case v.ResOutputsEvent != nil:
		r.steps = append(r.steps, fmt.Sprint(v.ResOutputsEvent.Metadata.Op, " ", v.ResOutputsEvent.Metadata.URN))
	case v.ResOpFailedEvent != nil:
		m := v.ResOpFailedEvent.Metadata
		r.steps = append(r.steps, fmt.Sprint("failed ", m.Op, " ", m.URN))
	}
	return nil
}

func (e *embedded) remove(ctx context.Context, s stage) error {
	return e.client.RemoveStack(ctx, s.name(), true)
}
