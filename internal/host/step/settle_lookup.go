package step

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// look finds the resource that a create with these inputs makes. Its results are those of ask, and askedBy. If
// something exists that may be it, and which cannot be told, the outcome of ended is undecidable.
func (at *attempt) look(
	ctx context.Context, p *pluginhost.Provider, f *lookup.Finder, inputs resource.PropertyMap,
) (found plugin.ReadResponse, reasons []string, ended *engine.StepFinished, err error) {
	replaced := resource.ID("") // exists until its replacement does
	if old := at.step.Old; old != nil && !old.PendingReplacement {
		replaced = resource.ID(old.ID)
	}
	at.askedBy = f.ID
	if f.ID != "" {
		if found, reasons, ended, err = at.ask(ctx, p, f.ID, inputs, nil); found.ID == replaced {
			found = plugin.ReadResponse{}
		}
		return found, reasons, ended, err
	}
	ids, err := at.candidates(ctx, p, f)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		result := failed(refused.text)
		return found, nil, &result, nil
	}
	if err != nil {
		return found, nil, nil, err
	}
	match := ""
	for _, id := range ids {
		one, _, ended, err := at.ask(ctx, p, id, nil, nil)
		switch {
		case err != nil:
			return one, nil, nil, err
		case ended != nil:
			if f.Invoke != nil { // which was asked for what is ours
				ended.Outcome = engine.OutcomeUndecidable
				ended.Error = id + ": " + ended.Error
			}
			return one, nil, ended, nil
		case one.ID == "" || one.ID == replaced || !f.Matching(one) || at.marksAnother(f.Place, one, inputs):
			continue
		case match != "":
			result := failed(fmt.Sprintf("both %s and %s match the settle rule, which must find one resource", match, id))
			result.Outcome = engine.OutcomeUndecidable
			return found, nil, &result, nil
		}
		match = id
	}
	if match == "" {
		return found, nil, nil, nil
	}
	at.askedBy = match
	return at.ask(ctx, p, match, inputs, nil)
}

// marksAnother reports whether a candidate bears the mark of another create. Some servers ignore what a function asks
// them to filter by.
func (at *attempt) marksAnother(place settlerule.Mark, found plugin.ReadResponse, inputs resource.PropertyMap) bool {
	if place.IsZero() {
		return false
	}
	mark := place.Get(found.Outputs)
	return lookup.IsMark(mark) && mark != at.markIn(place, inputs)
}

// candidates returns the ids of the resources among which a rule's may be. What a plugin answers is not trusted: there
// are no more than the rule allows, and they are texts of a bounded size.
func (at *attempt) candidates(ctx context.Context, p *pluginhost.Provider, f *lookup.Finder) (ids []string, err error) {
	more := false
	if f.List != nil {
		if ids, err = at.list(ctx, p, f); err != nil {
			return nil, err
		}
		more = len(ids) > f.Items
	} else {
		result, err := at.invoke(ctx, p, f.Invoke.Function, f.Query)
		if err != nil {
			return nil, err
		}
		ids, more = settlerule.Texts(resource.NewProperty(result), f.Invoke.IDs, f.Items)
	}
	if more {
		return nil, &refusedError{fmt.Sprintf("there are more than %d resources among which it may be; the settle rule "+
			"must tell it from them, or allow more items", f.Items)}
	}
	for i, id := range ids {
		if f.Invoke != nil && f.Invoke.After != "" {
			if last := strings.LastIndex(id, f.Invoke.After); last >= 0 {
				ids[i] = id[last+len(f.Invoke.After):]
			}
		}
		if !settlerule.Usable(ids[i]) {
			return nil, &refusedError{noID}
		}
	}
	return ids, nil
}

// list returns the ids of the resources of the step's type that a query finds; one more than the rule allows if there
// are too many. An error that will not pass is a refusedError.
func (at *attempt) list(ctx context.Context, p *pluginhost.Provider, f *lookup.Finder) ([]string, error) {
	ids, err := pluginhost.Await(ctx, func() ([]string, error) { return at.pages(ctx, p, f) })
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err == nil || failure.IsApplication(err):
		return ids, err
	}
	result, err := at.providerUnavailable(err)
	if err == nil {
		err = &refusedError{result.Error}
	}
	return nil, err
}

const noID = "the provider answers with an id that is no text of 1 to 2048 printable bytes"

// mostPages bounds the pages of a list: a provider may send empty ones.
const mostPages = 1000

// pages returns the ids of all pages of a list; with an error, those before it.
func (at *attempt) pages(ctx context.Context, p *pluginhost.Provider, f *lookup.Finder) ([]string, error) {
	var ids []string
	token := ""
	for range mostPages {
		if err := at.keepRate(ctx); err != nil {
			return nil, err
		}
		stream, err := p.List(ctx, plugin.ListRequest{
			Token: at.step.Type, Query: f.Query, ContinuationToken: token, Limit: int64(f.Items) + 1,
		})
		if err != nil {
			return ids, err
		}
		for item, err := range stream.Items {
			if err != nil {
				return ids, err
			}
			if !settlerule.Usable(string(item.ID)) {
				return ids, errors.New(noID)
			}
			if ids = append(ids, string(item.ID)); len(ids) > f.Items {
				return ids, nil
			}
		}
		if stream.Computed {
			return nil, errors.New("the provider cannot list before its configuration is known")
		}
		if token = stream.ContinuationToken; token == "" {
			return ids, nil
		}
	}
	return nil, fmt.Errorf("the provider's list has more than %d pages", mostPages)
}
