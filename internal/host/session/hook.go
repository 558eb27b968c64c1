package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/monitor"
	"github.com/deployctl/deployctl/internal/host/step"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// findAndCall finds and calls a hook.
func (s *Session) findAndCall(ctx context.Context, c engine.Hook, result *engine.HookFinished) error {
	hook, err := s.hooks.Find(ctx, c)
	if err != nil || c.Preview && !hook.OnDryRun {
		return err
	}
	call := hookCall{session: s, command: c, hook: hook}
	began := time.Now()
	retry, err := call.make(ctx)
	if status.Code(err) == codes.Unavailable {
		if err := s.hooks.AwaitEnd(ctx, hook); err != nil {
			return err
		}
		return deployments.Errorf(deployments.CodeUnavailable, "the program ended while hook %q ran", c.Name)
	}
	if err != nil && hook.IgnoreErrors {
		result.Warning = pluginhost.ErrorText(err)
		return nil
	}
	if err == nil {
		s.tell(diag.Info, c.URN, hookRan(c, retry, time.Since(began)))
	}
	result.Retry = retry
	return err
}

// hookRan is what an update shows of a hook that has run without an error.
func hookRan(c engine.Hook, retry bool, took time.Duration) string {
	text := fmt.Sprintf("%s hook %q ran (%.1f s)", c.Point, c.Name, took.Seconds())
	if retry {
		text += "; the step is repeated"
	}
	return text
}

// hookCall is a call of a hook.
type hookCall struct {
	session *Session
	command engine.Hook
	hook    *monitor.Hook
}

// make calls the hook. An error hook returns whether the step is to be repeated.
func (h hookCall) make(ctx context.Context) (retry bool, err error) {
	req, err := h.request(ctx)
	if err != nil {
		return false, err
	}
	if h.command.Point != engine.OnError {
		var answer pulumirpc.ResourceHookResponse
		if err := h.hook.Call(ctx, req, &answer); err != nil {
			return false, err
		}
		return false, hookFailed(answer.GetError())
	}
	var answer pulumirpc.ErrorHookResponse
	if err := h.hook.Call(ctx, &pulumirpc.ErrorHookRequest{
		Urn: req.GetUrn(), Id: req.GetId(), Name: req.GetName(), Type: req.GetType(), NewInputs: req.GetNewInputs(),
		OldInputs: req.GetOldInputs(), OldOutputs: req.GetOldOutputs(), OldOptions: req.GetOldOptions(),
		NewOptions: req.GetNewOptions(), FailedOperation: step.CallOf(h.command.Kind), Errors: h.command.Errors,
	}, &answer); err != nil {
		return false, err
	}
	return answer.GetRetry(), hookFailed(answer.GetError())
}

// hookFailed returns the error that a hook returned.
func hookFailed(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// request returns what a hook gets, as Pulumi's engine sends it: a create has nothing old, a delete nothing new, and
// new outputs are there only after the step.
func (h hookCall) request(ctx context.Context) (*pulumirpc.ResourceHookRequest, error) {
	c := h.command
	oldState, newState := c.Old, c.New
	if c.Kind == engine.StepCreate || c.Kind == engine.StepCreateReplacement {
		oldState = nil
	}
	req := &pulumirpc.ResourceHookRequest{Urn: string(c.URN), Name: c.URN.Name(), Type: string(c.Type)}
	var err error
	set := func(to **structpb.Struct, bag engine.Bag) {
		if err == nil {
			*to, err = h.values(ctx, bag)
		}
	}
	if oldState != nil {
		req.Id, req.OldOptions = oldState.ID, optionsOf(oldState)
		set(&req.OldInputs, oldState.Inputs)
		set(&req.OldOutputs, oldState.Outputs)
	}
	if newState != nil {
		req.NewOptions = optionsOf(newState)
		if newState.ID != "" {
			req.Id = newState.ID
		}
		set(&req.NewInputs, newState.Inputs)
		if c.Point == engine.AfterCreate || c.Point == engine.AfterUpdate {
			set(&req.NewOutputs, newState.Outputs)
		}
	}
	return req, err
}

// values returns the values of a bag for a hook.
func (h hookCall) values(ctx context.Context, bag engine.Bag) (*structpb.Struct, error) {
	values, err := h.session.values.Decode(ctx, bag)
	if err != nil {
		return nil, err
	}
	if values == nil {
		values = resource.PropertyMap{}
	}
	return plugin.MarshalProperties(values, plugin.MarshalOptions{
		Label: "hook " + h.command.Name, KeepUnknowns: true, KeepSecrets: true, KeepResources: true,
		KeepOutputValues: true, KeepByteString: h.hook.AcceptsByteString(), WorkingDirectory: h.session.programDir(),
	})
}

// optionsOf returns the options of a state for a hook.
func optionsOf(s *engine.State) *pulumirpc.ResourceOptions {
	o := &pulumirpc.ResourceOptions{
		DependsOn: stringsOf(s.Dependencies), Protect: &s.Protect, IgnoreChanges: s.IgnoreChanges,
		ReplaceOnChanges: s.ReplaceOnChanges, Provider: s.Provider, RetainOnDelete: &s.RetainOnDelete,
		DeletedWith: string(s.DeletedWith), AdditionalSecretOutputs: s.AdditionalSecretOutputs, Import: s.ImportID,
		HideDiff: s.HideDiff, ReplaceWith: stringsOf(s.ReplaceWith), Parent: string(s.Parent),
	}
	for _, u := range s.Aliases {
		o.Aliases = append(o.Aliases, &pulumirpc.Alias{Alias: &pulumirpc.Alias_Urn{Urn: string(u)}})
	}
	if t := s.Timeouts; t != nil {
		o.CustomTimeouts = &pulumirpc.RegisterResourceRequest_CustomTimeouts{
			Create: duration(t.Create), Update: duration(t.Update), Delete: duration(t.Delete), Read: duration(t.Read),
		}
	}
	if h := s.Hooks; len(h) > 0 {
		o.Hooks = &pulumirpc.RegisterResourceRequest_ResourceHooksBinding{
			BeforeCreate: h[engine.BeforeCreate], AfterCreate: h[engine.AfterCreate],
			BeforeUpdate: h[engine.BeforeUpdate], AfterUpdate: h[engine.AfterUpdate],
			BeforeDelete: h[engine.BeforeDelete], AfterDelete: h[engine.AfterDelete], OnError: h[engine.OnError],
		}
	}
	return o
}

func stringsOf[T ~string](list []T) []string {
	var out []string
	for _, v := range list {
		out = append(out, string(v))
	}
	return out
}

// duration returns seconds as SDKs write a timeout; empty for none.
func duration(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return time.Duration(seconds * float64(time.Second)).String()
}

// Hook runs a hook, and makes of its error a part of the result.
func (s *Session) Hook(ctx context.Context, beats *heartbeat.Beats, h engine.Hook) (engine.HookFinished, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-beats.Cancelled():
		case <-beats.Stopping():
		case <-ctx.Done():
		}
		cancel()
	}()

	result := engine.HookFinished{Op: h.Op, Point: h.Point, Nth: h.Nth}
	err := panics.Do("running hook "+h.Name, func() error { return s.findAndCall(ctx, h, &result) })
	select {
	case <-beats.Cancelled():
		return result, temporal.NewCanceledError()
	case <-beats.Stopping():
		return result, failure.NotStarted("the worker stops")
	default:
	}
	hide := s.redactor(ctx, failure.BagsOf(nil, h.Old, h.New)...)
	if failure.Retryable(err) || ctx.Err() != nil {
		return result, hide.Failure(err)
	}
	if err != nil {
		result.Error = pluginhost.ErrorText(err)
	}
	result.Error, result.Warning = hide(result.Error), hide(result.Warning)
	return result, nil
}
