package pulumiapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// orgPath is the path of an organization.
const orgPath = "/api/orgs/{org}"

// peopleRoutes are about who may do what, and who did.
func peopleRoutes() []route {
	const granting, reading = api.Members_GrantMember_FullMethodName, api.Audit_ReadAudit_FullMethodName
	return append([]route{
		{method: http.MethodPost, path: "/api/oauth/token", calls: calls("ExchangeOidcToken", "RefreshAccessToken"),
			by: byIdentity, like: api.Tokens_CreateToken_FullMethodName, limit: formBody, handle: exchangeToken,
			failed: refusedGrant},
		{method: http.MethodGet, path: orgPath + "/members", calls: calls("ListOrganizationMembers"),
			like: api.Members_ListMembers_FullMethodName, handle: listMembers},
		{method: http.MethodPatch, path: orgPath + "/members/{member}", calls: calls("UpdateOrganizationMember"),
			like: granting, handle: updateMember},
		{method: http.MethodDelete, path: orgPath + "/members/{member}", calls: calls("RemoveOrganizationMember"),
			like: api.Members_RemoveMember_FullMethodName, handle: removeMember},
		{method: http.MethodGet, path: orgPath + "/roles", calls: calls("ListOrgRoles"),
			like: api.Stacks_ListStacks_FullMethodName, handle: listRoles},
		{method: http.MethodGet, path: orgPath + "/roles/{role}", calls: calls("GetOrgRole"),
			like: api.Stacks_ListStacks_FullMethodName, handle: getRole},
		{method: http.MethodPost, path: orgPath + "/teams/{team}/roles/{role}", calls: calls("AssignTeamRole"),
			like: api.Teams_GrantTeam_FullMethodName, handle: assignRole},
		{method: http.MethodGet, path: orgPath + "/auditlogs", calls: calls("ListAuditLogs"), like: reading,
			handle: listAudit},
		{method: http.MethodGet, path: orgPath + "/auditlogs/export", calls: calls("ExportAuditLogs"), like: reading,
			handle: exportAudit},
		{method: http.MethodGet, path: orgPath + secondAudit, calls: calls("ListAuditLogs"), like: reading,
			handle: listAudit},
		{method: http.MethodGet, path: orgPath + secondAudit + "/export", calls: calls("ExportAuditLogs"), like: reading,
			handle: exportAudit},
	}, pageRoutes()...)
}

// administered returns what the caller may see and change of members, teams and the audit log.
func (c *call) administered() grpcapi.Administered {
	return grpcapi.Administered{Service: c.edge.Service, Caller: c.caller}
}

// visible returns what the caller may see of stacks.
func (c *call) visible() grpcapi.Visible {
	return grpcapi.Visible{Service: c.edge.Service, Caller: c.caller}
}

// builtinRoles are the roles, with what the stock CLI calls them.
var builtinRoles = []apitype.Role{
	{ID: string(deployments.RoleViewer), Name: "Viewer", Description: "sees stacks and updates, but no secret"},
	{ID: string(deployments.RoleDeployer), Name: "Deployer", DefaultIdentifier: "member",
		Description: "also changes stacks and reads their secrets"},
	{ID: string(deployments.RoleAdmin), Name: "Admin", DefaultIdentifier: "admin",
		Description: "also manages tokens, members and teams, and reads the audit log"},
}

// rolesOf are the built-in roles of the stock CLI, and what they are here.
var rolesOf = map[string]deployments.Role{"member": deployments.RoleDeployer, "admin": deployments.RoleAdmin}

// rolesOfOrganization returns the roles of the organization in the path. They are the same in each.
func (c *call) rolesOfOrganization() []apitype.Role {
	roles := slices.Clone(builtinRoles)
	for i := range roles {
		roles[i].OrgID, roles[i].UXPurpose, roles[i].ResourceType = c.PathValue("org"), "role", "organization"
	}
	return roles
}

func listRoles(c *call) (any, error) {
	return apitype.ListRolesResponse{Roles: c.rolesOfOrganization()}, nil
}

func getRole(c *call) (any, error) {
	for _, r := range c.rolesOfOrganization() {
		if r.ID == c.PathValue("role") {
			return r, nil
		}
	}
	return nil, noRole(c.PathValue("role"))
}

func noRole(name string) error {
	return deployments.Errorf(deployments.CodeNotFound, "there is no role %q: %s", clean(name), noRoles)
}

// listedMembers limits the stacks of the members of one answer, in bytes.
const listedMembers = 8 << 20

// listMembers lists the members with a role in the organization. The CLI also asks for those of another backend.
func listMembers(c *call) (any, error) {
	answer := apitype.ListOrganizationMembersResponse{Members: []apitype.OrganizationMember{}}
	if c.query().Get("type") == "backend" {
		return answer, nil
	}
	list, err := c.administered().ListMembers(c.Context())
	size := 0
	for _, m := range list {
		in := m.Organization == c.PathValue("org") || m.Organization == deployments.AnyOrganization
		if !in || m.Damaged != "" {
			continue
		}
		role, stacks := strongest(m.All())
		name := strings.Join(append([]string{string(role)}, stacks...), " ")
		if size += len(name); size > listedMembers { // the stacks of a team are in each of its members
			return nil, deployments.TooLarge("the stacks of these members are more than %d MiB: `deployctl team ls` lists "+
				"those of teams once", listedMembers>>20)
		}
		if err := mempool.Take(c.Context(), textTimes*int64(len(name))); err != nil {
			return nil, err
		}
		listed := apitype.OrganizationMember{Role: "member", KnownToPulumi: true,
			User: apitype.UserInfo{Name: m.Name, GitHubLogin: m.Name}, Created: m.Created.Format(time.RFC3339),
			FGARole: apitype.FGARole{ID: string(role), Name: name}}
		if role == deployments.RoleAdmin {
			listed.Role = "admin"
		}
		answer.Members = append(answer.Members, listed)
	}
	return answer, err
}

// strongest returns the strongest role of a member, of their own or by a team, and its stacks.
func strongest(grants []deployments.Grant) (role deployments.Role, stacks []string) {
	for _, g := range grants {
		if role == "" || g.Role != role && g.Role.Includes(role) {
			role, stacks = g.Role, g.Stacks
		}
	}
	return role, stacks
}

// updateMember gives a member another role. The stacks that it is limited to stay.
func updateMember(c *call) (any, error) {
	var r apitype.UpdateOrganizationMemberRequest
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	var role deployments.Role
	switch {
	case r.FgaRoleId != nil:
		role = deployments.Role(*r.FgaRoleId)
	case r.Role != nil && rolesOf[*r.Role] == "":
		return nil, deployments.Errorf(deployments.CodeInvalid, "%q is no role here: use member or admin", clean(*r.Role))
	case r.Role != nil:
		role = rolesOf[*r.Role]
	default:
		return nil, deployments.Errorf(deployments.CodeInvalid, "the new role is missing")
	}
	name, organization := c.PathValue("member"), c.PathValue("org")
	c.entry.Subject = "name=" + name + " role=" + clean(string(role))
	list, err := c.administered().ListMembers(c.Context())
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(m deployments.Member) bool {
		return m.Organization == organization && m.Name == name
	})
	if i < 0 {
		return nil, deployments.Errorf(deployments.CodeNotFound, "the organization %s has no member %s: add one with "+
			"`deployctl member add`", organization, name)
	}
	g := deployments.Grant{Role: role, Organization: organization}
	if own := list[i].Grant; own != nil {
		g.Stacks = own.Stacks
	}
	if err := g.Validate(); err != nil {
		return nil, err
	}
	return nil, c.administered().GrantMember(c.Context(), name, g)
}

func removeMember(c *call) (any, error) {
	c.entry.Subject = "name=" + c.PathValue("member")
	return nil, c.administered().RemoveMember(c.Context(), c.PathValue("member"), c.PathValue("org"))
}

// assignRole gives a team another role. The stacks that it is limited to stay.
func assignRole(c *call) (any, error) {
	name, role := c.PathValue("team"), deployments.Role(c.PathValue("role"))
	c.entry.Subject = "name=" + name + " role=" + string(role)
	list, err := c.administered().ListTeams(c.Context())
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(t deployments.Team) bool {
		return t.Name == name && t.Grant.Organization == c.PathValue("org")
	})
	if i < 0 {
		return nil, deployments.Errorf(deployments.CodeNotFound, "the organization %s has no team %s: add one with "+
			"`deployctl team add`", c.PathValue("org"), name)
	}
	g := list[i].Grant
	g.Role = role
	if g.Validate() != nil {
		return nil, noRole(string(role))
	}
	return nil, c.administered().GrantTeam(c.Context(), name, g)
}
