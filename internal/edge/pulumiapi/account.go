package pulumiapi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// deltaFrom is the size of a deployment, in bytes, from which a client without a journal sends only what has changed.
const deltaFrom = 1 << 20

// schemaVersion is the newest version of a deployment that the store reads.
const schemaVersion = 4

// capabilities says what of the protocol is served. The CLI ignores all of them if one configuration is not valid.
func capabilities(*call) (any, error) {
	with := func(name apitype.APICapability, version int, configuration any) apitype.APICapabilityConfig {
		c := apitype.APICapabilityConfig{Capability: name, Version: version}
		if configuration != nil {
			c.Configuration, _ = json.Marshal(configuration) // numbers only
		}
		return c
	}
	return apitype.CapabilitiesResponse{Capabilities: []apitype.APICapabilityConfig{
		with(apitype.DeltaCheckpointUploadsV2, 2, apitype.DeltaCheckpointUploadsConfigV2{
			CheckpointCutoffSizeBytes: deltaFrom}),
		with(apitype.BatchEncrypt, 0, nil),
		with(apitype.DeploymentSchemaVersion, 1, apitype.DeploymentSchemaVersionConfig{Version: schemaVersion}),
		with(apitype.APIVersion, 1, apitype.APIVersionCapabilityConfig{MinVersion: 1, DefaultVersion: 8, MaxVersion: 9}),
		with(apitype.BeginUpdate, 1, nil),
		with(apitype.StackOutputs, 1, nil),
	}}, nil
}

// cliVersion names no version as newer than the client's: the service does not know which there are.
func cliVersion(*call) (any, error) {
	return apitype.CLIVersionResponse{LatestVersion: "3.0.0", OldestWithoutWarning: "3.0.0", LatestDevVersion: "3.0.0"},
		nil
}

// account describes the caller as the CLI expects it: the names are those of GitHub accounts for historical reasons.
type account struct {
	ID            string    `json:"id"`
	Login         string    `json:"githubLogin"`
	Name          string    `json:"name"`
	Email         string    `json:"email"`
	Avatar        string    `json:"avatarUrl"`
	Organizations []account `json:"organizations"`
	Identities    []string  `json:"identities"`
	// Token is that of an organization; a member's is personal, and needs no description.
	Token *tokenInfo `json:"tokenInfo,omitempty"`
}

type tokenInfo struct {
	Name         string `json:"name"`
	Organization string `json:"organization,omitempty"`
}

// user describes the caller, with the organizations whose stacks they may see.
func user(c *call) (any, error) {
	if err := c.route.does.Allow(c.caller, false); err != nil {
		return nil, err
	}
	organizations, err := c.organizations()
	if err != nil {
		return nil, err
	}
	a := account{ID: c.caller.Name(), Login: c.caller.Name(), Name: c.caller.Name(), Identities: []string{}}
	if within := c.caller.Within(); c.caller.Member == "" && within != deployments.AnyOrganization {
		a.Token = &tokenInfo{Name: c.caller.Token, Organization: within}
	}
	for _, name := range organizations {
		a.Organizations = append(a.Organizations, account{Login: name, Name: name})
	}
	return a, nil
}

// organizations returns the organizations that the caller knows of.
func (c *call) organizations() ([]string, error) {
	a, err := c.edge.Service.WhoAmI(c.Context(), c.caller)
	return a.Organizations, err
}

// defaultOrganization returns the organization of stacks that are named without one: the caller's only one, or the
// default.
func defaultOrganization(c *call) (any, error) {
	organizations, err := c.organizations()
	if err != nil {
		return nil, err
	}
	name := deployments.DefaultOrganization
	if len(organizations) > 0 && !slices.Contains(organizations, name) {
		name = organizations[0]
	}
	return apitype.GetDefaultOrganizationResponse{GitHubLogin: name}, nil
}

// stacksPage is how many stacks one answer lists.
const stacksPage = 500

// listStacks lists the stacks that the caller may see and the filters select.
func listStacks(c *call) (any, error) {
	query := c.query()
	list, err := c.visible().ListStacks(c.Context(), query.Get("organization"), query.Get("project"))
	if err != nil {
		return nil, err
	}
	// By their names: the store's order is that of folders, in which "m-2" stands before "m".
	slices.SortFunc(list, func(a, b deployments.StackInfo) int {
		return strings.Compare(a.Stack.String(), b.Stack.String())
	})
	tag, value := query.Get("tagName"), query.Get("tagValue")
	list = slices.DeleteFunc(list, func(s deployments.StackInfo) bool {
		got, tagged := s.Tags[tag]
		return tag != "" && (!tagged || value != "" && got != value) || s.Stack.String() <= query.Get("continuationToken") ||
			c.route.does.Allow(c.caller, false) != nil
	})
	answer := apitype.ListStacksResponse{Stacks: []apitype.StackSummary{}}
	for _, s := range list {
		if len(answer.Stacks) == stacksPage {
			last := answer.Stacks[stacksPage-1]
			next := deployments.StackName{Organization: last.OrgName, Project: last.ProjectName,
				Stack: last.StackName}.String()
			answer.ContinuationToken = &next
			break
		}
		summary := apitype.StackSummary{ID: s.Stack.String(), OrgName: s.Stack.Organization,
			ProjectName: s.Stack.Project, StackName: s.Stack.Stack}
		if !s.Updated.IsZero() {
			updated, resources := s.Updated.Unix(), s.Resources
			summary.LastUpdate, summary.ResourceCount = &updated, &resources
		}
		answer.Stacks = append(answer.Stacks, summary)
	}
	return answer, nil
}

// projectExists reports whether the caller may see a stack of a project.
func projectExists(c *call) (any, error) {
	list, err := c.visible().ListStacks(c.Context(), c.PathValue("org"), c.PathValue("project"))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, deployments.Errorf(deployments.CodeNotFound, "there is no project %s/%s", c.PathValue("org"),
			c.PathValue("project"))
	}
	return nil, nil
}
