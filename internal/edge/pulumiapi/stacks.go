package pulumiapi

import (
	"maps"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// createStack creates a stack, with a state if the CLI moves one here.
func createStack(c *call) (any, error) {
	var r apitype.CreateStackRequest
	state, err := c.parseAround(&r, "state")
	if err != nil {
		return nil, err
	}
	c.stack = deployments.StackName{Organization: c.PathValue("org"), Project: c.PathValue("project"),
		Stack: r.StackName}
	if err := c.stack.Validate(); err != nil {
		return nil, err
	}
	c.entry.Organization, c.entry.Stack = c.stack.Organization, c.stack.Project+"/"+c.stack.Stack
	if err := c.route.does.Allow(c.caller, false, c.stack); err != nil {
		c.refused = true
		return nil, err
	}
	switch {
	case len(r.Teams) > 0:
		return nil, deployments.Errorf(deployments.CodeInvalid, "deployctl has no teams: leave out --teams")
	case r.Config != nil && r.Config.Environment != "":
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s: leave out --remote-config", noEnvironments)
	}
	if err := deployments.ValidateTags(r.Tags); err != nil {
		return nil, err
	}
	moved, err := c.untyped(state)
	switch {
	case err != nil:
	case isEmpty(moved):
		err = c.edge.Service.CreateStack(c.Context(), c.stack, r.Tags)
	default:
		err = c.edge.Service.CreateAsIs(c.Context(), deployments.ImportRequest{Stack: c.stack, Deployment: moved,
			Initiator: c.caller.Name()}, r.Tags)
	}
	return apitype.CreateStackResponse{}, err
}

// getStack describes a stack. The CLI cancels the update that activeUpdate names, whoever executes it.
func getStack(c *call) (any, error) {
	info, err := c.edge.Service.StackBriefly(c.Context(), c.stack)
	if err != nil {
		return nil, err
	}
	return describe(info), nil
}

func describe(info deployments.StackInfo) apitype.Stack {
	s := apitype.Stack{
		ID: info.Stack.String(), OrgName: info.Stack.Organization, ProjectName: info.Stack.Project,
		StackName: tokens.QName(info.Stack.Stack), Version: info.Version, Tags: maps.Clone(info.Tags),
	}
	if a := info.Active; a != nil {
		s.ActiveUpdate = a.Update.Version
		s.CurrentOperation = &apitype.OperationStatus{Kind: kindOf(*a), Author: a.Initiator, Started: a.Started.Unix()}
	} else if info.Version > 0 {
		s.ActiveUpdate = strconv.Itoa(info.Version) // the CLI asks whether there was ever one
	}
	return s
}

// stillHasResources is the text by which the CLI recognizes that a stack must be removed with force.
const stillHasResources = "Bad Request: Stack still contains resources."

// removeStack removes a stack.
func removeStack(c *call) (any, error) {
	force := forced(c)
	if !force {
		head, err := c.edge.Service.Head(c.Context(), c.stack)
		if err != nil {
			return nil, err
		}
		if head.Active == nil && head.Resources > 1 { // one may be the stack's own
			return nil, deployments.Errorf(deployments.CodeInvalid, stillHasResources)
		}
		err = c.edge.Service.RemoveStack(c.Context(), c.stack, false)
		if deployments.CodeOf(err) == deployments.CodeConflict && head.Active == nil && head.Resources > 0 {
			return nil, deployments.Errorf(deployments.CodeInvalid, stillHasResources)
		}
		return nil, err
	}
	return nil, c.edge.Service.RemoveStack(c.Context(), c.stack, true)
}

// renameStack renames a stack within its organization.
func renameStack(c *call) (any, error) {
	var r apitype.StackRenameRequest
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	to := c.stack
	if r.NewName != "" {
		to.Stack = r.NewName
	}
	if r.NewProject != "" {
		to.Project = r.NewProject
	}
	if err := c.route.does.Allow(c.caller, false, c.stack, to); err != nil {
		c.refused = true
		return nil, err
	}
	c.entry.Subject = "project=" + to.Project + " stack=" + to.Stack
	return nil, c.edge.Service.RenameStack(c.Context(), deployments.RenameRequest{From: c.stack, To: to,
		Initiator: c.caller.Name()})
}

// tagStack replaces a stack's tags.
func tagStack(c *call) (any, error) {
	tags := map[string]string{}
	if err := c.parse(&tags); err != nil {
		return nil, err
	}
	if err := deployments.ValidateTags(tags); err != nil {
		return nil, err
	}
	return nil, c.edge.Service.TagStack(c.Context(), c.stack, tags)
}

// policyPacks says that no policies are required.
func policyPacks(*call) (any, error) {
	return apitype.GetStackPolicyPacksResponse{RequiredPolicies: []apitype.RequiredPolicy{}}, nil
}

// nothing accepts a report that the audit log has anyway: each call that decrypts is in it.
func nothing(c *call) (any, error) {
	_, err := c.body()
	return nil, err
}
