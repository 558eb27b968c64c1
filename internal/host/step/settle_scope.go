package step

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// scope returns the values of the variables of rules, for a create with these inputs.
func (at *attempt) scope(
	ctx context.Context, p *pluginhost.Provider, account *hosted.Account, inputs resource.PropertyMap,
	values map[string]settlerule.Sources,
) settlerule.Scope {
	scope := settlerule.Scope{Inputs: inputs, Config: account.Config}
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
	ctx context.Context, p *pluginhost.Provider, account *hosted.Account, scope settlerule.Scope, source settlerule.Source,
) (string, error) {
	if source.Function == "" {
		return source.Template.Render(scope)
	}
	args, err := settlerule.RenderObject(source.Args, settlerule.Scope{})
	if err != nil {
		return "", err
	}
	asked, err := json.Marshal([]any{account.Reference.String(), account.Digest, source.Function, args.Mappable(),
		source.Result.String()})
	if err != nil {
		return "", err
	}
	kept, _ := at.session.known.LoadOrStore(sha256.Sum256(asked), newKnownValue())
	return kept.(*knownValue).get(ctx, func() (string, error) {
		result, err := at.invoke(ctx, p, source.Function, args)
		if err != nil {
			return "", err
		}
		return settlerule.Text(result, source.Result), nil
	})
}

// knownValue is the value in what a function has answered once for all resources of an update. The answer itself, which
// may be of any size, is not kept, nor is one that may be another one the next time.
type knownValue struct {
	turn chan struct{} // held by who asks, or looks
	got  bool
	text string
}

func newKnownValue() *knownValue { return &knownValue{turn: make(chan struct{}, 1)} }

// get returns the value. Whoever waits for another one's question stops waiting when its own context ends.
func (v *knownValue) get(ctx context.Context, ask func() (string, error)) (string, error) {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if v.got {
		return v.text, nil
	}
	text, err := ask()
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		text, err = "", nil // it would be refused again
	}
	if err == nil {
		v.got, v.text = true, text
	}
	return text, err
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
			err = failure.NotDone(result.Error, 0)
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
