package engineprovider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// stack returns the properties of a StackReference: the stack's outputs and the names of the secret ones. Of a name
// that a preview does not know yet, nothing is known.
func (p *engineProvider) stack(ctx context.Context, inputs *structpb.Struct) (*structpb.Struct, error) {
	text := inputs.GetFields()["name"].GetStringValue()
	if text == plugin.UnknownStringValue {
		unknown := structpb.NewStringValue(text)
		return &structpb.Struct{Fields: map[string]*structpb.Value{
			"name": unknown, "outputs": unknown, "secretOutputNames": unknown,
		}}, nil
	}
	outputs, err := p.other(ctx, text, p.outputsOf)
	if err != nil {
		return nil, err
	}
	secret := []resource.PropertyValue{}
	for _, key := range outputs.StableKeys() {
		if outputs[key].ContainsSecrets() {
			secret = append(secret, resource.NewProperty(string(key)))
		}
	}
	return plugin.MarshalProperties(resource.PropertyMap{
		"name": resource.NewProperty(text), "outputs": resource.NewProperty(outputs),
		"secretOutputNames": resource.NewProperty(secret),
	}, engineMarshal)
}

// resources returns the type and the outputs of each resource of another stack, by URN.
func (p *engineProvider) resources(ctx context.Context, inputs *structpb.Struct) (*structpb.Struct, error) {
	text := inputs.GetFields()["stackName"].GetStringValue()
	outputs, err := p.other(ctx, text, p.resourcesOf)
	if err != nil {
		return nil, err
	}
	return plugin.MarshalProperties(resource.PropertyMap{
		"name": resource.NewProperty(text), "outputs": resource.NewProperty(outputs),
	}, engineMarshal)
}

// reader reads values of a stack of this service.
type reader func(context.Context, deployments.StackName) (resource.PropertyMap, error)

// other reads from the stack that a program names, as far as the update's caller may see it.
func (p *engineProvider) other(ctx context.Context, text string, read reader) (resource.PropertyMap, error) {
	name, err := deployments.ParseStackName(text, p.update.StackName)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	outputs, err := p.visible(ctx, name, read)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "stack %s: %v", text, err)
	}
	return outputs, nil
}

// visible returns the values of a stack that the update's caller may see now: secret ones only if the caller may read
// the stack's secrets. A stack that the caller may not see is reported as not found.
func (p *engineProvider) visible(
	ctx context.Context, name deployments.StackName, read reader,
) (resource.PropertyMap, error) {
	asked := p.request
	if asked.Authority != nil {
		now, err := p.store.Access.CurrentAuthority(ctx, *asked.Authority)
		if errors.Is(err, access.ErrNotAllowed) {
			return nil, deployments.Errorf(deployments.CodeForbidden,
				"%w; run `deployctl up` with a token that may read it", err)
		}
		if err != nil {
			return nil, err
		}
		asked.Authority = &now
	}
	if !asked.MayRead(deployments.RoleViewer, name) {
		return nil, deployments.NoStack(name)
	}
	outputs, err := read(ctx, name)
	if err != nil || asked.MayRead(deployments.RoleDeployer, name) {
		return outputs, err
	}
	seen, hidden := plainOf(outputs)
	p.warnLeftOut(hidden, "the stack "+name.String(),
		p.request.Initiator+" may view that stack, but not read its secrets, which needs the role deployer")
	return seen, nil
}

// outputsOf returns the outputs of a stack of this service, from its current checkpoint.
func (p *engineProvider) outputsOf(ctx context.Context, name deployments.StackName) (resource.PropertyMap, error) {
	checkpoint, closed, err := p.current(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, r := range checkpoint.States() {
		if r.Type == resource.RootStackType && !r.Delete && r.Outputs.Ref != "" {
			outputs, err := checkpoint.Values(r.Outputs.Ref)
			if closed {
				outputs = p.withoutSecrets(outputs, "the stack "+name.String())
			}
			return outputs, err
		}
	}
	return resource.PropertyMap{}, nil
}

// resourcesOf returns the type and the outputs of each resource of a stack of this service, by URN.
func (p *engineProvider) resourcesOf(ctx context.Context, name deployments.StackName) (resource.PropertyMap, error) {
	checkpoint, closed, err := p.current(ctx, name)
	if err != nil {
		return nil, err
	}
	all := resource.PropertyMap{}
	for _, r := range checkpoint.States() {
		if r.Delete {
			continue
		}
		outputs := resource.PropertyMap{}
		if r.Outputs.Ref != "" {
			if outputs, err = checkpoint.Values(r.Outputs.Ref); err != nil {
				return nil, err
			}
		}
		if closed {
			outputs = p.withoutSecrets(outputs, string(r.URN))
		}
		all[resource.PropertyKey(r.URN)] = resource.NewProperty(resource.PropertyMap{
			"type": resource.NewProperty(string(r.Type)), "outputs": resource.NewProperty(outputs),
		})
	}
	return all, nil
}

// withoutSecrets leaves out the outputs of a stack or resource that are secret, and says so.
func (p *engineProvider) withoutSecrets(outputs resource.PropertyMap, of string) resource.PropertyMap {
	seen, hidden := plainOf(outputs)
	p.warnLeftOut(hidden, of, "they are under a key that this update does not have, such as another passphrase")
	return seen
}

// warnLeftOut says which secret outputs of a stack or resource are left out, and why.
func (p *engineProvider) warnLeftOut(outputs []string, of, why string) {
	if len(outputs) > 0 {
		p.warn("", fmt.Sprintf("Secret outputs of %s are left out (%s): %s.", of, strings.Join(outputs, ", "), why))
	}
}

// plainOf returns the properties that hold no secret, and the names of the others.
func plainOf(outputs resource.PropertyMap) (seen resource.PropertyMap, hidden []string) {
	seen = resource.PropertyMap{}
	for _, key := range outputs.StableKeys() {
		if outputs[key].ContainsSecrets() {
			hidden = append(hidden, string(key))
		} else {
			seen[key] = outputs[key]
		}
	}
	return seen, hidden
}

// current returns the current checkpoint of a stack of this service. It is closed if its secrets are under a key that
// the update does not have.
func (p *engineProvider) current(
	ctx context.Context, name deployments.StackName,
) (c *statestore.Checkpoint, closed bool, err error) {
	head, err := p.store.Head(ctx, name)
	if err != nil {
		return nil, false, err
	}
	c, err = p.store.Checkpoint(ctx, name, head.Version, p.request.Secrets)
	if statestore.NeedsKey(err) {
		c, err = p.store.Checkpoint(ctx, name, head.Version, statestore.WithoutSecrets)
		return c, true, err
	}
	return c, false, err
}
