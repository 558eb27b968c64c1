package grpcapi

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/deployments"
)

// Visible lists what a caller may see of a service. A caller who sees a single organization costs what that one has,
// whatever is asked for: nothing is read of the others.
type Visible struct {
	Service deployments.Service
	Caller  deployments.Caller
}

// ListStacks lists the stacks of a project, or of an organization; empty: of all.
func (v Visible) ListStacks(ctx context.Context, organization, project string) ([]deployments.StackInfo, error) {
	organization, ok := v.within(organization)
	if !ok {
		return nil, nil
	}
	list, err := v.Service.ListStacks(ctx, organization, project)
	may := v.Caller.Stacks(viewer)
	return slices.DeleteFunc(list, func(i deployments.StackInfo) bool { return !may(i.Stack) }), err
}

// Ongoing lists the updates of an organization that run or wait; empty: of all.
func (v Visible) Ongoing(ctx context.Context, organization string) ([]deployments.UpdateInfo, error) {
	organization, ok := v.within(organization)
	if !ok {
		return nil, nil
	}
	list, err := v.Service.Ongoing(ctx, organization)
	may := v.Caller.Stacks(viewer)
	return slices.DeleteFunc(list, func(i deployments.UpdateInfo) bool { return !may(i.Update.StackName) }), err
}

// within returns the organization that is to be looked at, or none for all of them; false: the caller sees nothing of
// what was asked for.
func (v Visible) within(asked string) (organization string, ok bool) {
	switch only := v.Caller.Within(); only {
	case deployments.AnyOrganization, asked:
		return asked, true
	default:
		return only, asked == ""
	}
}
