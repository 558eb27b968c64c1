package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// engineSettings are what an engine keeps among a provider's inputs for itself; settle is deployctl's own configuration
// of rules.
var engineSettings = map[resource.PropertyKey]bool{"settle": true, "version": true, "pluginDownloadURL": true,
	"pluginChecksums": true}

// config is all modules' configuration as one object.
func (s *server) config() *object {
	all := &object{}
	for _, m := range s.pkg.Modules {
		if m.Config.in != nil {
			all.fields = append(all.fields, m.Config.in.fields...)
		}
	}
	return all
}

// parsed turns configuration values, which engines send as strings, into what their types want; strings that are no
// JSON of it stay.
func (o *object) parsed(set properties) properties {
	out := maps.Clone(set)
	for _, f := range o.fields {
		key := resource.PropertyKey(f.name)
		v := plain(set[key])
		if f.typ.Kind() == reflect.String || !v.IsString() {
			continue
		}
		var decoded any
		if json.Unmarshal([]byte(v.StringValue()), &decoded) != nil {
			continue
		}
		out[key] = resource.NewPropertyValue(decoded)
		if set[key].IsSecret() {
			out[key] = resource.MakeSecret(out[key])
		}
	}
	return out
}

func (s *server) CheckConfig(ctx context.Context, req *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	ctx, end := s.scope(ctx, 0)
	defer end()
	news, err := unmarshal(ctx, req.GetNews())
	if err != nil {
		return nil, err
	}
	config, kept, asked := s.config(), properties{}, properties{}
	for key, v := range news {
		if engineSettings[key] || resource.IsInternalPropertyKey(key) {
			kept[key] = v
		} else {
			asked[key] = v
		}
	}
	checked, failures := config.complete(asked)
	parsed := config.parsed(checked)
	for _, m := range s.pkg.Modules {
		if m.Config.in != nil {
			_, wrong := m.Config.in.decodeKnown(ctx, parsed, reflect.New(m.Config.in.typ).Elem())
			failures = append(failures, wrong...)
		}
	}
	maps.Copy(checked, kept)
	inputs, err := marshal(checked)
	return &pulumirpc.CheckResponse{Inputs: inputs, Failures: wireFailures(failures)}, err
}

func wireFailures(failures []Failure) []*pulumirpc.CheckFailure {
	var out []*pulumirpc.CheckFailure
	for _, f := range once(failures) {
		out = append(out, &pulumirpc.CheckFailure{Property: f.Property, Reason: f.Reason})
	}
	return out
}

func (s *server) DiffConfig(ctx context.Context, req *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	ctx, end := s.scope(ctx, 0)
	defer end()
	olds, err := unmarshal(ctx, req.GetOldInputs())
	if err != nil {
		return nil, err
	}
	if olds == nil {
		if olds, err = unmarshal(ctx, req.GetOlds()); err != nil {
			return nil, err
		}
	}
	news, err := unmarshal(ctx, req.GetNews())
	if err != nil {
		return nil, err
	}
	return diffResponse(s.config().diff(olds, news), false, nil), nil
}

// Configure is repeatable: the last one stands.
func (s *server) Configure(ctx context.Context, req *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	ctx, end := s.scope(ctx, 0)
	defer end()
	set, err := unmarshal(ctx, req.GetArgs())
	if err != nil {
		return nil, err
	}
	set = s.config().parsed(set)
	for _, m := range s.pkg.Modules {
		if m.Config.apply == nil {
			continue
		}
		if err := m.Config.apply(ctx, set); err != nil {
			return nil, statusOf(fmt.Errorf("configuring package %s: %w", s.pkg.Name, err))
		}
	}
	return &pulumirpc.ConfigureResponse{AcceptSecrets: true, SupportsPreview: true,
		SupportsAutonamingConfiguration: true}, nil
}
