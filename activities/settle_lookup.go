package activities

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// look finds the resource that a create with these inputs makes, by a rule with a path. Its results are those of ask.
func (at *attempt) look(
	ctx context.Context, p *pluginhost.Provider, rule settleRule, inputs resource.PropertyMap,
) (found plugin.ReadResponse, reasons []string, ended *engine.StepFinished, err error) {
	value := rule.value(inputs)
	if !rule.list {
		return at.ask(ctx, p, value, inputs, nil)
	}
	ids, err := pluginhost.Await(ctx, func() ([]string, error) { return at.listed(ctx, p) })
	if err != nil {
		result, err := at.providerUnavailable(err)
		return found, nil, &result, err
	}
	match := ""
	for _, id := range ids {
		one, _, ended, err := at.ask(ctx, p, id, nil, nil)
		switch {
		case err != nil || ended != nil:
			return one, nil, ended, err
		case one.ID == "" || rule.value(one.Outputs) != value:
			continue
		case match != "":
			result := failed(fmt.Sprintf("both %s and %s match the settle rule, which must find one resource", match, id))
			return found, nil, &result, nil
		}
		match = id
	}
	if match == "" {
		return found, nil, nil, nil
	}
	return at.ask(ctx, p, match, inputs, nil)
}

// listed returns the ids of all resources of the step's type.
func (at *attempt) listed(ctx context.Context, p *pluginhost.Provider) ([]string, error) {
	var ids []string
	for token := ""; ; {
		stream, err := p.List(ctx, plugin.ListRequest{Token: at.step.Type, ContinuationToken: token})
		if err != nil {
			return nil, err
		}
		for item, err := range stream.Items {
			if err != nil {
				return nil, err
			}
			ids = append(ids, string(item.ID))
		}
		if token = stream.ContinuationToken; token == "" {
			return ids, nil
		}
	}
}
