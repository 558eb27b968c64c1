package grpcapi

import (
	"strings"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// validate refuses a request that nobody could carry out, as CodeInvalid, before its handler sees it. Every request
// type of the API has its rule here; one without is refused, too.
func validate(request any) error {
	switch m := request.(type) {
	case *api.SubmitRequest:
		return wire.ToRequest(m).Validate()
	case *api.WatchRequest:
		return wire.ToUpdate(m.GetUpdate()).Validate()
	case *api.CancelRequest:
		return wire.ToUpdate(m.GetUpdate()).Validate()
	case *api.ResolveRequest:
		return deployments.ValidateResolution(wire.ToUpdate(m.GetUpdate()), m.GetUrn(), m.GetId())
	case *api.CreateTokenRequest:
		return wire.ToNewToken(m).Validate()
	case *api.GrantMemberRequest:
		return first(deployments.ValidateName("member", m.GetName()), wire.ToGrant(m.GetGrant()).Validate())
	case *api.RemoveMemberRequest:
		return deployments.ValidateMember(m.GetOrganization(), m.GetName())
	case *api.ReadAuditRequest:
		return first(organization(m.GetOrganization()), optional("user", m.GetUser()), stackParts(m.GetStack()))
	case *api.SetModeRequest:
		return wire.ToMode(m.GetMode()).Validate(time.Now())
	case *api.ListQuotasRequest:
		return optional("organization", m.GetOrganization())
	case *api.SetQuotaRequest:
		return wire.ToQuotaChange(m).Validate()
	case *api.RemoveTokenRequest:
		return deployments.ValidateName("token", m.GetName())
	case *api.DeriveTokenRequest:
		return deployments.ValidateName("token", m.GetName())
	case *api.GrantTeamRequest:
		return deployments.Team{Name: m.GetName(), Grant: wire.ToGrant(m.GetGrant())}.Validate()
	case *api.RemoveTeamRequest:
		return named(m.GetOrganization(), "team", m.GetName())
	case interface{ GetTeam() string }:
		return validateTeam(m)
	case *api.PutTrustRequest:
		return wire.ToTrust(m.GetTrust()).Validate()
	case *api.RemoveTrustRequest:
		return named(m.GetOrganization(), "trust", m.GetName())
	case *api.ChangeProfileRequest, *api.GetProfileRequest, *api.RemoveProfileRequest, *api.ListProfilesRequest:
		return validateProfile(m)
	case *api.ListTeamsRequest, *api.ListTrustsRequest, *api.ListTokensRequest, *api.ListMembersRequest,
		*api.WhoAmIRequest, *api.GetModeRequest,
		*grpc_health_v1.HealthCheckRequest,
		*grpc_health_v1.HealthListRequest:
		return nil
	case *api.EditStateRequest:
		return wire.ToEdit(m).Validate()
	case *api.MoveStateRequest:
		return wire.ToMove(m).Validate()
	case *api.PutWebhookRequest:
		return wire.ToWebhook(m.GetWebhook()).Validate()
	case *api.ListWebhooksRequest:
		return wire.ToScope(m.GetScope()).Validate()
	case interface{ GetName() *api.WebhookName }:
		return wire.ToWebhookName(m.GetName()).Validate()
	case interface{ GetName() *api.ScheduleName }:
		return validateScheduleName(m)
	case *api.CreateScheduleRequest:
		return wire.ToSchedule(m.GetSchedule()).Validate()
	}
	return validateStack(request)
}

// named checks a name within an organization.
func named(of, what, name string) error {
	return first(deployments.ValidateName("organization", of), deployments.ValidateName(what, name))
}

// validateProfile checks requests about profiles.
func validateProfile(request any) error {
	switch m := request.(type) {
	case *api.ChangeProfileRequest:
		return wire.ToProfileChange(m).Validate()
	case *api.ListProfilesRequest:
		return deployments.ValidateName("organization", m.GetOrganization())
	case interface {
		GetOrganization() string
		GetName() string
	}:
		return named(m.GetOrganization(), "profile", m.GetName())
	}
	return deployments.Errorf(deployments.CodeInternal, "%T names no profile", request)
}

// validateTeam checks requests about who is in a team.
func validateTeam(m interface{ GetTeam() string }) error {
	of, ok := m.(interface{ GetOrganization() string })
	who, has := m.(interface{ GetMember() string })
	if !ok || !has {
		return deployments.Errorf(deployments.CodeInternal, "%T names no member of a team", m)
	}
	return first(named(of.GetOrganization(), "team", m.GetTeam()), deployments.ValidateName("member", who.GetMember()))
}

// validateScheduleName checks requests about one schedule.
func validateScheduleName(m interface{ GetName() *api.ScheduleName }) error {
	name := wire.ToScheduleName(m.GetName()).Validate()
	switch m := m.(type) {
	case *api.ScheduleRunsRequest:
		return first(name, atLeast(0, int64(m.GetLimit()), "number of runs"))
	case *api.PauseScheduleRequest:
		return first(name, deployments.ValidateInitiator(m.GetInitiator()))
	}
	return name
}

// validateStack checks requests about one stack, or a list of them.
func validateStack(request any) error {
	switch m := request.(type) {
	case *api.ListStacksRequest:
		return first(optional("organization", m.GetOrganization()), optional("project", m.GetProject()))
	case *api.ListStatusesRequest:
		return wire.ToStatusQuery(m).Validate()
	case *api.ListOngoingRequest:
		return optional("organization", m.GetOrganization())
	case *api.RenameStackRequest:
		return first(wire.ToStack(m.GetFrom()).Validate(), wire.ToStack(m.GetTo()).Validate(),
			deployments.ValidateInitiator(m.GetInitiator()))
	case interface{ GetStack() *api.StackName }:
		return first(wire.ToStack(m.GetStack()).Validate(), validateRest(request))
	}
	return deployments.Errorf(deployments.CodeInternal, "the service has no rule for what a %T may say", request)
}

// validateRest checks what a request says beside its stack's name.
func validateRest(request any) error {
	switch m := request.(type) {
	case *api.GetStackRequest, *api.RemoveStackRequest, *api.RecoverRequest, *api.ListSchedulesRequest,
		*api.GetDriftRequest, *api.ExportRawRequest:
		return nil
	case *api.CreateStackRequest:
		return deployments.ValidateTags(m.GetTags())
	case *api.RecreateStackRequest:
		_, err := deployments.ParseIdentity(m.GetIdentity())
		return err
	case *api.TagStackRequest:
		return deployments.ValidateTags(m.GetTags())
	case *api.ChangeTagsRequest:
		return first(deployments.ValidateTags(m.GetSet()), deployments.ValidateTagCount(len(m.GetRemoved())))
	case *api.ExportRequest:
		return first(atLeast(0, m.GetVersion(), "version"), wire.ToSecrets(m.GetSecrets()).Validate())
	case *api.ImportRequest:
		return first(wire.ToSecrets(m.GetSecrets()).Validate(), deployments.ValidateInitiator(m.GetInitiator()),
			atLeast(0, m.GetBaseVersion(), "version"))
	case *api.RestoreRequest:
		return first(atLeast(1, m.GetVersion(), "version"), wire.ToSecrets(m.GetSecrets()).Validate(),
			deployments.ValidateInitiator(m.GetInitiator()))
	case *api.HistoryRequest:
		return atLeast(0, int64(m.GetLimit()), "number of updates")
	case *api.EncryptRequest:
		return deployments.ValidateValues(len(m.GetPlain()))
	case *api.DecryptRequest:
		return deployments.ValidateValues(len(m.GetSealed()))
	case *api.MissingRequest:
		return wire.ToManifest(m.GetManifest()).Validate()
	case *api.PutFileRequest:
		return deployments.ValidateDigest(m.GetDigest())
	case *api.PutManifestRequest:
		return wire.ToManifest(m.GetManifest()).Validate()
	}
	return deployments.Errorf(deployments.CodeInternal, "the service has no rule for what a %T may say", request)
}

// first gives the first error that is one.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// organization checks the name of an organization, or of every one.
func organization(name string) error {
	if name == deployments.AnyOrganization {
		return nil
	}
	return deployments.ValidateName("organization", name)
}

// stackParts checks STACK, PROJECT/STACK or ORG/PROJECT/STACK; it may be left out.
func stackParts(text string) error {
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, "/") {
		if err := deployments.ValidateName("stack", part); err != nil {
			return err
		}
	}
	return nil
}

func atLeast(least, n int64, what string) error {
	if n < least || n > maxNumber {
		return deployments.Errorf(deployments.CodeInvalid, "%d is not a %s", n, what)
	}
	return nil
}

// maxNumber bounds versions and counts.
const maxNumber = 1<<31 - 1

// optional checks a name that may be left out.
func optional(what, name string) error {
	if name == "" {
		return nil
	}
	return deployments.ValidateName(what, name)
}
