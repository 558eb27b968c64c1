package activities

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/internal/settlerule"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// scope returns the values of the variables of rules, for a create with these inputs.
func (at *attempt) scope(
	ctx context.Context, p *pluginhost.Provider, account *account, inputs resource.PropertyMap,
	values map[string]settlerule.Sources,
) settlerule.Scope {
	scope := settlerule.Scope{Inputs: inputs, Config: account.config}
	scope.Values = func(name string) (string, error) {
		for _, source := range values[name] {
			text, err := at.valueOf(ctx, p, account, scope, source)
			var missing *settlerule.MissingError
			switch {
			case err == nil && text != "":
				return text, nil
			case err == nil || errors.As(err, &missing) && !missing.Secret():
				// the next source; but a secret is not the same as nothing: the next source may have another value
			default:
				return "", err
			}
		}
		return "", nil
	}
	return scope
}

func (at *attempt) valueOf(
	ctx context.Context, p *pluginhost.Provider, account *account, scope settlerule.Scope, source settlerule.Source,
) (string, error) {
	if source.Function == "" {
		return source.Template.Render(scope)
	}
	args, err := settlerule.RenderObject(source.Args, settlerule.Scope{})
	if err != nil {
		return "", err
	}
	key, err := json.Marshal([]any{account.reference.String(), account.digest, source.Function, args.Mappable()})
	if err != nil {
		return "", err
	}
	kept, _ := at.session.known.LoadOrStore(string(key), newKnownValue())
	result, err := kept.(*knownValue).get(ctx, func() (resource.PropertyMap, error) {
		return at.invoke(ctx, p, source.Function, args)
	})
	return settlerule.Text(result, source.Result), err
}

// knownValue is what a function has answered once for all resources of an update. An answer that may be another one the
// next time is not kept.
type knownValue struct {
	turn   chan struct{} // held by who asks, or looks
	got    bool
	result resource.PropertyMap
}

func newKnownValue() *knownValue { return &knownValue{turn: make(chan struct{}, 1)} }

// get returns the answer. Whoever waits for another one's question stops waiting when its own context ends.
func (v *knownValue) get(
	ctx context.Context, ask func() (resource.PropertyMap, error),
) (resource.PropertyMap, error) {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if v.got {
		return v.result, nil
	}
	result, err := ask()
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		result, err = nil, nil // it would be refused again
	}
	if err == nil {
		v.got, v.result = true, result
	}
	return result, err
}

// refusedError is the answer of a function that will not work, whenever it is asked.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// invoke calls a function of a provider, which changes nothing. An error that may pass is one of the activity.
func (at *attempt) invoke(
	ctx context.Context, p *pluginhost.Provider, function string, args resource.PropertyMap,
) (resource.PropertyMap, error) {
	if err := at.keepRate(ctx); err != nil {
		return nil, err
	}
	resp, err := pluginhost.Await(ctx, func() (plugin.InvokeResponse, error) {
		return p.Invoke(ctx, plugin.InvokeRequest{Tok: tokens.ModuleMember(function), Args: args})
	})
	at.observe(err)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		result, err := at.providerUnavailable(err)
		if err == nil && at.passes(ctx, result.Error) {
			err = notDone(result.Error, 0)
		}
		if err == nil {
			err = &refusedError{function + ": " + result.Error}
		}
		return nil, err
	case len(resp.Failures) > 0:
		return nil, &refusedError{function + ": " + resp.Failures[0].Reason}
	}
	return resp.Properties, nil
}
