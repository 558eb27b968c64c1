package service

import (
	"context"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// store is the part of the service that needs no Temporal.
type store struct{ *statestore.Store }

// Export gives a stored deployment.
func (s store) Export(
	ctx context.Context, name deployments.StackName, version int, p deployments.SecretsProvider, showSecrets bool,
) (apitype.UntypedDeployment, error) {
	return s.Store.Export(ctx, statestore.Exchange{Stack: name, Secrets: p}, version, showSecrets)
}

// Import replaces a stack's deployment.
func (s store) Import(
	ctx context.Context, name deployments.StackName, d apitype.UntypedDeployment, p deployments.SecretsProvider,
) (int, error) {
	return s.Store.Import(ctx, statestore.Exchange{Stack: name, Secrets: p}, d)
}
