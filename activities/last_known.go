package activities

import (
	"context"

	"github.com/deployctl/deployctl/internal/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// lastKnown gives the outputs of a component or of the stack as an update stores them. What is not known, because it
// depends on a resource that the update leaves out or that failed, keeps the value that the stack had before the
// update.
func (s *session) lastKnown(
	ctx context.Context, u urn.URN, outputs resource.PropertyMap,
) (resource.PropertyMap, error) {
	if !bags.HasUnknown(resource.NewProperty(outputs)) {
		return outputs, nil
	}
	base, err := s.store.Checkpoint(ctx, s.update.StackName, s.base, s.request.Secrets)
	if err != nil {
		return nil, err
	}
	for _, state := range base.States() {
		if state.URN == u && !state.Delete {
			last, err := s.values.Decode(ctx, state.Outputs)
			return bags.Known(outputs, last), err
		}
	}
	return bags.Known(outputs, nil), nil
}
