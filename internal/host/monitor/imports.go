package monitor

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// In an import the host registers resources, not a program. It calls the methods of this file instead of the service.

// Reported reports whether an error of a registration says only that the update is ending, for a reason that its events
// have.
func Reported(err error) bool {
	var known *endingError
	return errors.As(err, &known)
}

// ImportStack registers the stack's own resource, and returns its URN.
func (m *Monitor) ImportStack(ctx context.Context) (urn.URN, error) {
	m.started()
	reply, err := m.register(ctx, engine.Registration{
		Type: resource.RootStackType, Name: m.goal.Project + "-" + m.goal.Stack,
	})
	return reply.URN, m.replyError(reply, err)
}

// Import registers one resource of an import below its parent, or below the stack, and returns the reply. It must be
// called when what the resource refers to has its reply, or is stored.
func (m *Monitor) Import(ctx context.Context, stack urn.URN, in deployments.Import) (engine.Reply, error) {
	reg := engine.Registration{
		Type: tokens.Type(in.Type), Name: in.Name, Custom: !in.Component, Remote: in.Remote, Parent: urn.URN(in.Parent),
		ImportID: in.ID, Protect: &in.Protect,
	}
	if in.Parent == "" {
		reg.Parent = stack
	}
	err := token.CheckName(in.Type, in.Name)
	if err == nil && (!in.Component || in.Remote) {
		_, err = token.ParseType(in.Type)
	}
	if err != nil {
		return engine.Reply{}, status.Error(codes.InvalidArgument, err.Error())
	}
	inputs := resource.PropertyMap{}
	switch {
	case in.IsProvider():
		inputs, err = m.importedProvider(in)
	case in.Component && !in.Remote:
	case in.Provider != "":
		reg.Provider = snapshot.JoinReference(urn.URN(in.Provider), "") // the core knows its id
	default:
		reg.Provider, err = m.defaultProviderOf(ctx, in)
	}
	if err != nil {
		return engine.Reply{}, err
	}
	if reg.Inputs, err = m.values.Encode(ctx, inputs); err != nil {
		return engine.Reply{}, err
	}
	reply, err := m.register(ctx, reg)
	return reply, m.replyError(reply, err)
}

// pluginOf returns the plugin that an import asks for, of a package.
func (m *Monitor) pluginOf(pkg tokens.Package, in deployments.Import) (packageRequest, error) {
	p, err := m.request(pkg, &pulumirpc.RegisterResourceRequest{
		Version: in.Version, PluginDownloadURL: in.PluginDownloadURL,
	})
	if p.Version == "" && p.DownloadURL == "" {
		p = m.complete(p)
	}
	return p, err
}

// defaultProviderOf returns the default provider that reads an imported resource.
func (m *Monitor) defaultProviderOf(ctx context.Context, in deployments.Import) (string, error) {
	p, err := m.pluginOf(token.Package(in.Type), in)
	if err != nil {
		return "", err
	}
	return m.provider(ctx, "", p)
}

// importedProvider returns the inputs of an explicit provider that an import makes.
func (m *Monitor) importedProvider(in deployments.Import) (resource.PropertyMap, error) {
	inputs := resource.PropertyMap{}
	if in.Inputs != "" {
		var plain map[string]any
		if err := json.Unmarshal([]byte(in.Inputs), &plain); err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "the inputs of %s %s are not a JSON object", in.Type, in.Name)
		}
		for key, v := range plain {
			value, err := importedValue(v)
			if err != nil {
				return nil, status.Errorf(codes.InvalidArgument, "%s of %s %s %v", key, in.Type, in.Name, err)
			}
			inputs[resource.PropertyKey(key)] = value
		}
	}
	p, err := m.pluginOf(token.ProviderPackage(tokens.Type(in.Type)), in)
	p.PutInto(inputs, nil)
	return inputs, err
}

// importedValue reads a value of an import file: JSON, in which a secret is an object with Pulumi's signature and a
// plaintext, which is JSON itself.
func importedValue(v any) (resource.PropertyValue, error) {
	switch v := v.(type) {
	case []any:
		return importedList(v)
	case map[string]any:
		if v[sig.Key] == sig.Secret {
			return importedSecret(v)
		}
		return importedObject(v)
	}
	return resource.NewPropertyValue(v), nil
}

func importedList(v []any) (resource.PropertyValue, error) {
	list := make([]resource.PropertyValue, len(v))
	for i, element := range v {
		var err error
		if list[i], err = importedValue(element); err != nil {
			return resource.PropertyValue{}, err
		}
	}
	return resource.NewProperty(list), nil
}

func importedObject(v map[string]any) (resource.PropertyValue, error) {
	object := resource.PropertyMap{}
	for key, element := range v {
		value, err := importedValue(element)
		if err != nil {
			return value, err
		}
		object[resource.PropertyKey(key)] = value
	}
	return resource.NewProperty(object), nil
}

func importedSecret(v map[string]any) (resource.PropertyValue, error) {
	text, ok := v["plaintext"].(string)
	var plain any
	if !ok || json.Unmarshal([]byte(text), &plain) != nil {
		return resource.PropertyValue{}, errors.New("is a secret without a plaintext: write its value into the import " +
			"file")
	}
	value, err := importedValue(plain)
	return resource.MakeSecret(value), err
}
