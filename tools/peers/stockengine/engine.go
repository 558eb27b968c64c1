package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/pkg/v3/backend"
	"github.com/pulumi/pulumi/pkg/v3/backend/diy/unauthenticatedregistry"
	"github.com/pulumi/pulumi/pkg/v3/engine"
	"github.com/pulumi/pulumi/pkg/v3/resource/autonaming"
	"github.com/pulumi/pulumi/pkg/v3/resource/deploy"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack"
	"github.com/pulumi/pulumi/pkg/v3/resource/stack/snapshot"
	"github.com/pulumi/pulumi/pkg/v3/secrets/b64"
	"github.com/pulumi/pulumi/pkg/v3/util/cancel"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/env"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// stockEngine keeps the states of stacks and plays updates of them.
type stockEngine struct {
	mu     sync.Mutex
	stacks map[string]*apitype.DeploymentV3 // secrets are base64
}

func (e *stockEngine) state(name string) *apitype.DeploymentV3 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stacks[name]
}

func (e *stockEngine) save(name string, d *apitype.DeploymentV3) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if d == nil {
		delete(e.stacks, name)
		return
	}
	e.stacks[name] = d
}

// answer plays a request.
func (e *stockEngine) answer(ctx context.Context, r request) (a answer) {
	var err error
	switch r.Kind {
	case "remove":
		e.save(r.Stack, nil)
		return a
	case "verify":
		err = verify(ctx, r.State)
	default:
		err = e.update(ctx, r, &a)
		if a.State == nil {
			var readErr error
			a.State, readErr = revealed(ctx, e.state(r.Stack))
			err = errors.Join(err, readErr)
		}
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// verify checks a state as the engine does before it uses one and after it writes one.
func verify(ctx context.Context, d *apitype.DeploymentV3) error {
	if d == nil {
		return errors.New("the request has no state")
	}
	plain := *d
	plain.SecretsProviders = nil
	if _, err := stack.DeserializeDeploymentV3(ctx, plain, b64.Base64SecretsProvider); err != nil {
		return err
	}
	return snapshot.VerifyIntegrity(&plain)
}

// revealed returns a state with its secrets in plaintext.
func revealed(ctx context.Context, d *apitype.DeploymentV3) (*apitype.DeploymentV3, error) {
	if d == nil {
		return &apitype.DeploymentV3{}, nil
	}
	snap, err := stack.DeserializeDeploymentV3(ctx, *d, b64.Base64SecretsProvider)
	if err != nil {
		return nil, err
	}
	return stack.SerializeDeployment(ctx, snap, true)
}

// persister keeps what the engine writes.
type persister struct {
	engine *stockEngine
	stack  string
}

func (p persister) Save(d apitype.TypedDeployment) error {
	p.engine.save(p.stack, d.Deployment)
	return nil
}

// update plays an update from the stored state of its stack.
func (e *stockEngine) update(ctx context.Context, r request, a *answer) error {
	project, err := workspace.LoadProject(filepath.Join(r.Dir, "Pulumi.yaml"))
	if err != nil {
		return err
	}
	target, err := e.target(ctx, r)
	if err != nil {
		return err
	}
	cancelling, source := cancel.NewContext(ctx)
	defer source.Terminate() // ends the plugins
	events := make(chan engine.Event)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for event := range events {
			a.note(event)
		}
	}()
	engineContext := &engine.Context{Cancel: cancelling, Events: events, BackendClient: noBackend{}}
	var manager *backend.SnapshotManager
	if !r.DryRun {
		manager = backend.NewSnapshotManager(persister{e, r.Stack}, b64.NewBase64SecretsManager(), target.Snapshot, nil)
		engineContext.SnapshotManager = manager
	}
	err = play(engine.UpdateInfo{Root: r.Dir, Project: project, Target: target}, engineContext, r)
	if manager != nil {
		err = errors.Join(err, manager.Close())
	}
	close(events)
	<-read
	return err
}

func play(u engine.UpdateInfo, ctx *engine.Context, r request) (err error) {
	options := options(r)
	switch {
	case r.Kind == "up":
		_, _, err = engine.Update(u, ctx, options, r.DryRun)
	case r.Kind == "refresh" && r.RunProgram:
		_, _, err = engine.RefreshV2(u, ctx, options, r.DryRun)
	case r.Kind == "refresh":
		_, _, err = engine.Refresh(u, ctx, options, r.DryRun)
	case r.Kind == "destroy" && r.RunProgram:
		_, _, err = engine.DestroyV2(u, ctx, options, r.DryRun)
	case r.Kind == "destroy":
		_, _, err = engine.Destroy(u, ctx, options, r.DryRun)
	case r.Kind == "import":
		_, _, err = engine.Import(u, ctx, options, imports(r), r.DryRun)
	default:
		err = fmt.Errorf("there is no kind %q", r.Kind)
	}
	return err
}

// imports are the resources of an import, as the stock CLI asks for them.
func imports(r request) (all []deploy.Import) {
	for _, i := range r.Imports {
		all = append(all, deploy.Import{Type: tokens.Type(i.Type), Name: i.Name, ID: resource.ID(i.ID)})
	}
	return all
}

// target is the stack as the engine gets it from a backend.
func (e *stockEngine) target(ctx context.Context, r request) (*deploy.Target, error) {
	name, err := tokens.ParseStackName(r.Stack)
	if err != nil {
		return nil, err
	}
	t := &deploy.Target{Name: name, Organization: "organization", Decrypter: config.Base64Crypter, Config: config.Map{}}
	for text, value := range r.Config {
		key, err := config.ParseKey(text)
		if err != nil {
			return nil, err
		}
		t.Config[key] = config.NewValue(value)
	}
	for text, value := range r.Secrets {
		key, err := config.ParseKey(text)
		if err != nil {
			return nil, err
		}
		sealed, err := config.Base64Crypter.EncryptValue(ctx, value)
		if err != nil {
			return nil, err
		}
		t.Config[key] = config.NewSecureValue(sealed)
	}
	if d := e.state(r.Stack); d != nil {
		t.Snapshot, err = stack.DeserializeDeploymentV3(ctx, *d, b64.Base64SecretsProvider)
	}
	return t, err
}

// options are those that the stock CLI gives the engine for the same flags.
func options(r request) engine.UpdateOptions {
	sink := diag.DefaultSink(io.Discard, io.Discard, diag.FormatOptions{Color: colors.Never})
	return engine.UpdateOptions{
		Parallel: r.Parallel, Refresh: r.Refresh, RefreshProgram: r.RunProgram && r.Kind == "refresh",
		DestroyProgram: r.RunProgram && r.Kind == "destroy",
		Targets:        deploy.NewUrnTargets(r.Targets), TargetDependents: r.TargetDependents,
		Excludes: deploy.NewUrnTargets(r.Excludes), ExcludeDependents: r.ExcludeDependents,
		ReplaceTargets: deploy.NewUrnTargets(r.Replace), ContinueOnError: r.ContinueOnError,
		IgnoreProtect: r.IgnoreProtect, Autonamer: autonaming.Default(),
		HostFactory: backend.DefaultHostFactory(unauthenticatedregistry.New(sink, env.Global())),
	}
}

// note takes what an event says about steps and errors.
func (a *answer) note(e engine.Event) {
	switch p := e.Payload().(type) {
	case engine.DiagEventPayload:
		text := strings.TrimSpace(colors.Never.Colorize(p.Message))
		switch p.Severity { //nolint:exhaustive // of the others nothing is compared
		case diag.Error:
			a.Errors = append(a.Errors, text)
		case diag.Info:
			a.Messages = append(a.Messages, text)
		}
	case engine.ResourceOutputsEventPayload:
		a.Steps = append(a.Steps, fmt.Sprint(p.Metadata.Op, " ", p.Metadata.URN))
	case engine.ResourceOperationFailedPayload:
		a.Steps = append(a.Steps, fmt.Sprint("failed ", p.Metadata.Op, " ", p.Metadata.URN))
	}
}
