package grpcapi

import (
	"strings"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// scope says what the role of a rule is needed on.
type scope int

const (
	// onStack: on each stack that the fields of touches name. A stack that the caller may not even see looks not found.
	onStack scope = iota
	// onNewStack: the same, and the last of touches names a stack that is to be made, which is refused as forbidden.
	onNewStack
	// onAny: on anything. The method answers with what the caller may see, and touches only that.
	onAny
	// open: no token is needed.
	open
)

// effect is what a method does, and so when the audit log has a call of it. Every rule says one.
type effect int

const (
	_ effect = iota
	// reads: a call is in the audit log only when it is refused, because the caller may not make it.
	reads
	// uploads: the same. It keeps content that has no effect before another call names it.
	uploads
	// discloses: it shows secrets or the audit log, and is recorded within a second.
	discloses
	// changes: it is recorded before the caller is answered.
	changes
)

// room is the memory that a call needs beside its first message. A rule says it of each method that streams; what
// others need is known from their message.
type room int

const (
	ofMessage room = iota
	ofContent      // the chunks of the call, gathered; the first message says their size
	ofParsed       // the same, parsed
	ofExport       // a whole deployment, or one object of it at a time
	ofParts        // one part of the answer at a time
	ofPages        // the same, of which each takes its memory by itself
)

// rule is what the API demands of a call of one method. A method without a rule is not served.
type rule struct {
	role    deployments.Role
	scope   scope
	touches []string // paths of all fields of its first message that are a StackName, also in lists
	// raised is a field that, when it is true, makes the call need the role to.
	raised string
	to     deployments.Role
	does   effect
	modes  inModes
	room   room
	// subject are paths of fields that the audit log has, and answered those of its only answer.
	subject  []string
	answered []string
	// secrets says that the call asks for secrets in plain text: every call, or only one that is raised when there is
	// such a field.
	secrets bool
}

const (
	viewer   = deployments.RoleViewer
	deployer = deployments.RoleDeployer
	admin    = deployments.RoleAdmin
)

func stack(paths ...string) []string   { return paths }
func subject(paths ...string) []string { return paths }

// rules has a line for each method of the API: from it the check and its test are made.
var rules = map[string]rule{
	api.Deployments_Submit_FullMethodName: {
		role: deployer, touches: stack("stack"), does: changes, modes: begins,
		subject:  subject("kind", "request_id", "dry_run"),
		answered: subject("update.version"),
	},
	api.Deployments_Watch_FullMethodName: {role: viewer, touches: stack("update.stack"), does: reads, room: ofParts},
	api.Deployments_Cancel_FullMethodName: {
		role: deployer, touches: stack("update.stack"), does: changes, modes: goesOn,
		subject: subject("update.version", "forced"),
	},
	api.Deployments_Resolve_FullMethodName: {
		role: deployer, touches: stack("update.stack"), does: changes, modes: goesOn,
		subject: subject("update.version", "urn"),
	},
	api.Deployments_ListOngoing_FullMethodName: {role: viewer, scope: onAny, does: reads},

	api.Stacks_CreateStack_FullMethodName: {role: deployer, scope: onNewStack, touches: stack("stack"), does: changes},
	api.Stacks_RecreateStack_FullMethodName: {
		role: admin, scope: onNewStack, touches: stack("stack"), does: changes, subject: subject("identity"),
	},
	api.Stacks_ListStacks_FullMethodName:   {role: viewer, scope: onAny, does: reads},
	api.Stacks_ListStatuses_FullMethodName: {role: viewer, scope: onAny, does: reads},
	api.Stacks_GetStack_FullMethodName:     {role: viewer, touches: stack("stack"), does: reads},
	api.Stacks_RemoveStack_FullMethodName: {
		role: deployer, touches: stack("stack"), raised: "force", to: admin, does: changes, subject: subject("force"),
	},
	api.Stacks_RenameStack_FullMethodName: {
		role: deployer, scope: onNewStack, touches: stack("from", "to"), does: changes,
		subject: subject("to.project", "to.stack"),
	},
	api.Stacks_TagStack_FullMethodName: {role: deployer, touches: stack("stack"), does: changes},
	api.Stacks_ChangeTags_FullMethodName: {
		role: deployer, touches: stack("stack"), does: changes, subject: subject("set", "removed"),
	},
	api.Stacks_Export_FullMethodName: {
		role: viewer, touches: stack("stack"), raised: "show_secrets", to: deployer, secrets: true, does: discloses,
		room:    ofExport,
		subject: subject("version"),
	},
	api.Stacks_ExportRaw_FullMethodName: {role: admin, touches: stack("stack"), does: discloses, room: ofExport},
	api.Stacks_Import_FullMethodName: {
		role: deployer, touches: stack("stack"), raised: "forget", to: admin, does: changes, room: ofParsed,
		subject: subject("forget"),
	},
	api.Stacks_Restore_FullMethodName: {
		role: deployer, touches: stack("stack"), raised: "forget", to: admin, does: changes,
		subject: subject("version", "forget"),
	},
	api.Stacks_EditState_FullMethodName: {
		role: deployer, touches: stack("stack"), raised: "forget", to: admin, does: changes,
		subject: subject("edit", "resources", "all", "name", "force", "dependents", "forget", "dry_run"),
	},
	api.Stacks_MoveState_FullMethodName: {
		role: deployer, touches: stack("from", "to"), raised: "forget", to: admin, does: changes,
		subject: subject("to.project", "to.stack", "resources", "parents", "forget", "dry_run"),
	},
	api.Stacks_Recover_FullMethodName: {
		role: deployer, touches: stack("stack"), raised: "discard", to: admin, does: changes, modes: goesOn,
		subject:  subject("discard"),
		answered: subject("update.update.version"),
	},
	api.Stacks_History_FullMethodName: {role: viewer, touches: stack("stack"), does: reads},
	api.Stacks_Encrypt_FullMethodName: {role: deployer, touches: stack("stack"), does: reads},
	api.Stacks_Decrypt_FullMethodName: {role: deployer, touches: stack("stack"), secrets: true, does: discloses},

	api.Bundles_Missing_FullMethodName:     {role: deployer, touches: stack("stack"), does: reads},
	api.Bundles_PutFile_FullMethodName:     {role: deployer, touches: stack("stack"), does: uploads, room: ofContent},
	api.Bundles_PutManifest_FullMethodName: {role: deployer, touches: stack("stack"), does: uploads},

	api.Tokens_CreateToken_FullMethodName: {
		role: admin, scope: onAny, does: changes, subject: subject("name", "member", "grant.role",
			"grant.organization", "grant.stacks", "expires"),
	},
	api.Tokens_DeriveToken_FullMethodName: {role: viewer, scope: onAny, does: changes, subject: subject("name")},
	api.Tokens_WhoAmI_FullMethodName:      {role: viewer, scope: onAny, does: reads},
	api.Tokens_ListTokens_FullMethodName:  {role: admin, scope: onAny, does: reads},
	api.Tokens_RemoveToken_FullMethodName: {role: admin, scope: onAny, does: changes, subject: subject("name")},
	api.Members_GrantMember_FullMethodName: {
		role: admin, scope: onAny, does: changes, subject: subject("name", "grant.role", "grant.organization",
			"grant.stacks"),
	},
	api.Members_ListMembers_FullMethodName: {role: admin, scope: onAny, does: reads},
	api.Members_RemoveMember_FullMethodName: {
		role: admin, scope: onAny, does: changes, subject: subject("name", "organization"),
	},
	api.Teams_GrantTeam_FullMethodName: {
		role: admin, scope: onAny, does: changes, subject: subject("name", "grant.role", "grant.stacks"),
	},
	api.Teams_ListTeams_FullMethodName:  {role: admin, scope: onAny, does: reads},
	api.Teams_RemoveTeam_FullMethodName: {role: admin, scope: onAny, does: changes, subject: subject("name")},
	api.Teams_JoinTeam_FullMethodName:   {role: admin, scope: onAny, does: changes, subject: subject("team", "member")},
	api.Teams_LeaveTeam_FullMethodName:  {role: admin, scope: onAny, does: changes, subject: subject("team", "member")},
	api.Trusts_PutTrust_FullMethodName: {
		role: admin, scope: onAny, does: changes, subject: subject("trust.name", "trust.issuer", "trust.audiences",
			"trust.conditions", "trust.lifetime", "trust.grant.role", "trust.grant.stacks"),
	},
	api.Trusts_ListTrusts_FullMethodName:  {role: admin, scope: onAny, does: reads},
	api.Trusts_RemoveTrust_FullMethodName: {role: admin, scope: onAny, does: changes, subject: subject("name")},

	api.Audit_ReadAudit_FullMethodName: {role: admin, scope: onAny, does: discloses, room: ofPages,
		subject: subject("organization", "user", "stack")},

	api.Schedules_CreateSchedule_FullMethodName: {
		role: deployer, touches: stack("schedule.name.stack", "schedule.last.updates.stack"), does: changes,
		subject: subject("schedule.name.name", "schedule.kind"),
	},
	api.Schedules_ListSchedules_FullMethodName: {role: viewer, touches: stack("stack"), does: reads},
	api.Schedules_GetSchedule_FullMethodName:   {role: viewer, touches: stack("name.stack"), does: reads},
	api.Schedules_RemoveSchedule_FullMethodName: {
		role: deployer, touches: stack("name.stack"), does: changes, subject: subject("name.name"),
	},
	api.Schedules_PauseSchedule_FullMethodName: {
		role: deployer, touches: stack("name.stack"), does: changes, subject: subject("name.name", "paused"),
	},
	api.Schedules_RunSchedule_FullMethodName: {
		role: deployer, touches: stack("name.stack"), does: changes, modes: begins, subject: subject("name.name"),
	},
	api.Schedules_ScheduleRuns_FullMethodName: {role: viewer, touches: stack("name.stack"), does: reads},
	api.Schedules_GetDrift_FullMethodName:     {role: viewer, touches: stack("stack"), does: reads},

	api.Webhooks_PutWebhook_FullMethodName: {
		role: deployer, scope: onAny, does: changes, subject: subject("webhook.name.name"),
		answered: subject("webhook.name.name"),
	},
	api.Webhooks_ListWebhooks_FullMethodName: {role: deployer, scope: onAny, does: reads},
	api.Webhooks_RemoveWebhook_FullMethodName: {
		role: deployer, scope: onAny, does: changes, subject: subject("name.name"),
	},
	api.Webhooks_SendWebhook_FullMethodName: {
		role: deployer, scope: onAny, does: changes, subject: subject("name.name", "event"),
	},
	api.Webhooks_WebhookDeliveries_FullMethodName: {role: deployer, scope: onAny, does: reads},

	api.Profiles_ChangeProfile_FullMethodName: {
		role: admin, scope: onAny, does: changes, subject: subject("name", "base", "stacks.stacks", "set.name", "removed"),
		answered: subject("profile.version"),
	},
	api.Profiles_GetProfile_FullMethodName:   {role: admin, scope: onAny, does: reads},
	api.Profiles_ListProfiles_FullMethodName: {role: viewer, scope: onAny, does: reads},
	api.Profiles_RemoveProfile_FullMethodName: {
		role: admin, scope: onAny, does: changes, subject: subject("name"),
	},

	api.Modes_GetMode_FullMethodName: {role: viewer, scope: onAny, does: reads},
	api.Modes_SetMode_FullMethodName: {
		role: admin, scope: onAny, does: changes, modes: goesOn,
		subject: subject("mode.kind", "mode.reason"),
	},

	api.Quotas_ListQuotas_FullMethodName: {role: viewer, scope: onAny, does: reads},
	api.Quotas_SetQuota_FullMethodName: {
		role: admin, scope: onAny, does: changes, subject: subject("set", "removed"),
	},

	grpc_health_v1.Health_Check_FullMethodName: {scope: open},
	grpc_health_v1.Health_List_FullMethodName:  {scope: open},
	grpc_health_v1.Health_Watch_FullMethodName: {scope: open},
}

// needs gives the role that a call with this first message needs.
func (r rule) needs(m proto.Message) deployments.Role {
	if r.isRaised(m) {
		return r.to
	}
	return r.role
}

func (r rule) isRaised(m proto.Message) bool {
	return r.raised != "" && m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByName(
		protoreflect.Name(r.raised))).Bool()
}

// stacks gives the stacks that a first message names.
func (r rule) stacks(m proto.Message) []deployments.StackName {
	var names []deployments.StackName
	for _, path := range r.touches {
		names = append(names, stacksAt(m.ProtoReflect(), path)...)
	}
	return names
}

// stacksAt gives the stacks at a path; with a list or a map on the way there may be any number.
func stacksAt(m protoreflect.Message, path string) (names []deployments.StackName) {
	name, rest, deeper := strings.Cut(path, ".")
	visit := func(value protoreflect.Value) {
		if deeper {
			names = append(names, stacksAt(value.Message(), rest)...)
			return
		}
		named, _ := value.Message().Interface().(*api.StackName)
		names = append(names, wire.ToStack(named))
	}
	field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	switch value := m.Get(field); {
	case field.IsList():
		for i := range value.List().Len() {
			visit(value.List().Get(i))
		}
	case field.IsMap():
		value.Map().Range(func(_ protoreflect.MapKey, one protoreflect.Value) bool {
			visit(one)
			return true
		})
	default:
		visit(value)
	}
	return names
}

// allow reports why the caller may not make the call, if so: CodeForbidden, or CodeNotFound for a stack that they may
// not see.
func (r rule) allow(caller deployments.Caller, method string, m proto.Message) error {
	role := r.needs(m)
	if r.scope == onAny {
		if err := allowAny(caller, method, role); err != nil {
			return err
		}
		return allowIn(caller, method, role, organizationOf(m))
	}
	if len(r.stacks(m)) == 0 {
		return deployments.Errorf(deployments.CodeInvalid, "%s names no stack: name one", method)
	}
	for i, path := range r.touches {
		made := r.scope == onNewStack && i == len(r.touches)-1
		for _, name := range stacksAt(m.ProtoReflect(), path) {
			if err := allowOn(caller, method, role, name, made); err != nil {
				return err
			}
		}
	}
	return nil
}

// allowAny reports why the caller may not make a call that is onAny.
func allowAny(caller deployments.Caller, method string, role deployments.Role) error {
	if caller.Has(role) {
		return nil
	}
	return deployments.Errorf(deployments.CodeForbidden, "%s needs the role %s, which this token does not have", method,
		role)
}

// allowIn reports why the caller may not make a call about an organization, of which they have nothing with this role.
// A viewer is answered with what they see, which may be nothing.
func allowIn(caller deployments.Caller, method string, role deployments.Role, organization string) error {
	if role == viewer || organization == "" || organization == deployments.AnyOrganization ||
		caller.HasIn(role, organization) {
		return nil
	}
	return deployments.Errorf(deployments.CodeForbidden, "%s needs the role %s in %.200q, which this token does not "+
		"have: ask an admin of that organization for it", method, role, organization)
}

// allowOn reports why the caller may not make the call on one stack; a stack that is to be made has nothing to hide.
func allowOn(
	caller deployments.Caller, method string, role deployments.Role, name deployments.StackName, made bool,
) error {
	switch err := name.Validate(); {
	case err != nil:
		return err
	case caller.May(role, name):
		return nil
	case made || caller.May(viewer, name):
		return deployments.Errorf(deployments.CodeForbidden,
			"%s needs the role %s on %s, which this token does not have: ask an admin of %s for it", method, role, name,
			name.Organization)
	}
	return deployments.NoStack(name)
}

// about fills an entry of the audit log from the first message.
func (r rule) about(m proto.Message, e *deployments.AuditEntry) {
	if names := r.stacks(m); len(names) > 0 {
		e.Organization, e.Stack = names[0].Organization, names[0].Project+"/"+names[0].Stack
	} else {
		e.Organization = organizationOf(m)
		if scope := scopeOf(m); wire.ToScope(scope).OfStack() {
			e.Stack = scope.GetProject() + "/" + scope.GetStack()
		}
	}
	if deployments.ValidateName("organization", e.Organization) != nil {
		e.Organization = ""
	}
	e.Secrets = r.secrets && (r.raised == "" || r.isRaised(m))
	e.Subject = fields(m, r.subject)
}

// organizationOf returns the organization that a first message without stacks is about; empty if it names none.
func organizationOf(m proto.Message) string {
	switch m := m.(type) {
	case *api.CreateTokenRequest:
		return wire.ToNewToken(m).Within()
	case *api.GrantMemberRequest:
		return m.GetGrant().GetOrganization()
	case *api.GrantTeamRequest:
		return m.GetGrant().GetOrganization()
	case *api.PutTrustRequest:
		return m.GetTrust().GetOrganization()
	case interface{ GetOrganization() string }: // RemoveMember, ReadAudit, and others about one organization
		return m.GetOrganization()
	}
	return scopeOf(m).GetOrganization()
}
