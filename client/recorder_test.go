package client_test

import (
	"bytes"
	"context"
	"io"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/filltest"
)

// recorder implements deployments.Service.
var _ deployments.Service = (*recorder)(nil)

func (r *recorder) Watch(_ context.Context, u deployments.UpdateName, fn func(deployments.WatchEvent) error) error {
	if err := r.note("Watch", u); err != nil {
		return err
	}
	progress, end := filltest.Of[deployments.Progress](r.t), filltest.Of[deployments.UpdateInfo](r.t)
	for _, e := range []deployments.WatchEvent{
		{Stream: "2/output", Event: &apitype.EngineEvent{Sequence: 7}}, {Progress: &progress}, {End: &end},
	} {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) Audit(_ context.Context, q deployments.AuditQuery, fn func(deployments.AuditEntry) error) error {
	if err := r.note("Audit", q); err != nil {
		return err
	}
	e := filltest.Of[deployments.AuditEntry](r.t)
	e.Refused, e.Party = false, "" // no log has them
	return fn(e)
}

func (r *recorder) Submit(_ context.Context, q deployments.UpdateRequest) (deployments.Accepted, error) {
	return answer[deployments.Accepted](r, "Submit", q)
}

func (r *recorder) Cancel(_ context.Context, u deployments.UpdateName, forced bool) error {
	return r.note("Cancel", u, forced)
}

func (r *recorder) Resolve(_ context.Context, u deployments.UpdateName, urn, id string) error {
	return r.note("Resolve", u, urn, id)
}

func (r *recorder) Ongoing(_ context.Context, organization string) ([]deployments.UpdateInfo, error) {
	return answer[[]deployments.UpdateInfo](r, "Ongoing", organization)
}

func (r *recorder) CreateStack(_ context.Context, s deployments.StackName, tags map[string]string) error {
	return r.note("CreateStack", s, tags)
}

func (r *recorder) ListStacks(_ context.Context, organization, project string) ([]deployments.StackInfo, error) {
	return answer[[]deployments.StackInfo](r, "ListStacks", organization, project)
}

func (r *recorder) RecreateStack(
	_ context.Context, _ deployments.Caller, s deployments.StackName, identity string,
) error {
	return r.note("RecreateStack", s, identity)
}

func (r *recorder) Statuses(
	_ context.Context, _ deployments.Caller, q deployments.StatusQuery,
) (deployments.StatusPage, error) {
	return answer[deployments.StatusPage](r, "Statuses", q)
}

func (r *recorder) Stack(_ context.Context, s deployments.StackName) (deployments.StackInfo, error) {
	return answer[deployments.StackInfo](r, "Stack", s)
}

func (r *recorder) RemoveStack(_ context.Context, s deployments.StackName, force bool) error {
	return r.note("RemoveStack", s, force)
}

func (r *recorder) RenameStack(_ context.Context, q deployments.RenameRequest) error {
	return r.note("RenameStack", q)
}

func (r *recorder) ChangeTags(
	_ context.Context, s deployments.StackName, set map[string]string, removed []string,
) error {
	return r.note("ChangeTags", s, set, removed)
}

func (r *recorder) TagStack(_ context.Context, s deployments.StackName, tags map[string]string) error {
	return r.note("TagStack", s, tags)
}

func (r *recorder) Export(
	_ context.Context, s deployments.StackName, version int, p deployments.SecretsProvider, show bool,
) (apitype.UntypedDeployment, error) {
	return answer[apitype.UntypedDeployment](r, "Export", s, version, p, show)
}

func (r *recorder) ExportRaw(_ context.Context, s deployments.StackName, to io.Writer) error {
	if err := r.note("ExportRaw", s); err != nil {
		return err
	}
	_, err := to.Write(bytes.Repeat([]byte("0123456789"), 1<<18)) // more than one chunk
	return err
}

func (r *recorder) Import(_ context.Context, q deployments.ImportRequest) (int, error) {
	return answer[int](r, "Import", q)
}

func (r *recorder) Restore(_ context.Context, q deployments.RestoreRequest) (int, error) {
	return answer[int](r, "Restore", q)
}

func (r *recorder) EditState(_ context.Context, q deployments.EditRequest) (deployments.Edited, error) {
	return answer[deployments.Edited](r, "EditState", q)
}

func (r *recorder) MoveState(_ context.Context, q deployments.MoveRequest) (deployments.Moved, error) {
	return answer[deployments.Moved](r, "MoveState", q)
}

func (r *recorder) Recover(_ context.Context, q deployments.RecoverRequest) (deployments.UpdateInfo, error) {
	return answer[deployments.UpdateInfo](r, "Recover", q)
}

func (r *recorder) History(_ context.Context, s deployments.StackName, limit int) ([]deployments.UpdateInfo, error) {
	return answer[[]deployments.UpdateInfo](r, "History", s, limit)
}

func (r *recorder) Encrypt(_ context.Context, s deployments.StackName, plain []string) ([]string, error) {
	return answer[[]string](r, "Encrypt", s, plain)
}

func (r *recorder) Decrypt(_ context.Context, s deployments.StackName, sealed []string) ([]string, error) {
	return answer[[]string](r, "Decrypt", s, sealed)
}

func (r *recorder) Missing(_ context.Context, s deployments.StackName, m deployments.Manifest) ([]string, error) {
	return answer[[]string](r, "Missing", s, m)
}

func (r *recorder) PutFile(_ context.Context, s deployments.StackName, digest string, content []byte) error {
	return r.note("PutFile", s, digest, content)
}

func (r *recorder) PutManifest(_ context.Context, s deployments.StackName, m deployments.Manifest) (string, error) {
	return answer[string](r, "PutManifest", s, m)
}

func (r *recorder) CreateToken(_ context.Context, token deployments.Token) (string, error) {
	return answer[string](r, "CreateToken", token)
}

func (r *recorder) ListTokens(context.Context) ([]deployments.Token, error) {
	return answer[[]deployments.Token](r, "ListTokens")
}

func (r *recorder) WhoAmI(_ context.Context, c deployments.Caller) (deployments.Account, error) {
	return answer[deployments.Account](r, "WhoAmI", c)
}

func (r *recorder) RemoveToken(_ context.Context, name string) error {
	return r.note("RemoveToken", name)
}

func (r *recorder) DeriveToken(_ context.Context, token deployments.Token) (string, error) {
	return answer[string](r, "DeriveToken", token)
}

func (r *recorder) GrantTeam(_ context.Context, name string, g deployments.Grant) error {
	return r.note("GrantTeam", name, g)
}

func (r *recorder) ListTeams(context.Context) ([]deployments.Team, error) {
	return answer[[]deployments.Team](r, "ListTeams")
}

func (r *recorder) RemoveTeam(_ context.Context, organization, name string) error {
	return r.note("RemoveTeam", organization, name)
}

func (r *recorder) JoinTeam(_ context.Context, organization, team, member string) error {
	return r.note("JoinTeam", organization, team, member)
}

func (r *recorder) LeaveTeam(_ context.Context, organization, team, member string) error {
	return r.note("LeaveTeam", organization, team, member)
}

func (r *recorder) PutTrust(_ context.Context, t deployments.Trust) error {
	return r.note("PutTrust", t)
}

func (r *recorder) ListTrusts(context.Context) ([]deployments.Trust, error) {
	return answer[[]deployments.Trust](r, "ListTrusts")
}

// What is changed by name is there; the edge asks.

func (r *recorder) Token(_ context.Context, name string) (deployments.Token, error) {
	return deployments.Token{Name: name}, r.err
}

func (r *recorder) AnyMember(_ context.Context, organization, name string) (deployments.Member, error) {
	return deployments.Member{Organization: organization, Name: name, Grant: &grant}, r.err
}

func (r *recorder) AnyTeam(_ context.Context, _, name string) (deployments.Team, error) {
	return deployments.Team{Name: name, Grant: grant}, r.err
}

func (r *recorder) AnyTrust(_ context.Context, organization, name string) (deployments.Trust, error) {
	return deployments.Trust{Organization: organization, Name: name, Grant: grant}, r.err
}

// What is listed is of every organization; the edge asks for those of the caller's.

func (r *recorder) TokensOf(ctx context.Context, _ string) ([]deployments.Token, error) {
	return r.ListTokens(ctx)
}

func (r *recorder) MembersOf(ctx context.Context, _ string) ([]deployments.Member, error) {
	return r.ListMembers(ctx)
}

func (r *recorder) TeamsOf(ctx context.Context, _ string) ([]deployments.Team, error) {
	return r.ListTeams(ctx)
}

func (r *recorder) TrustsOf(ctx context.Context, _ string) ([]deployments.Trust, error) {
	return r.ListTrusts(ctx)
}

func (r *recorder) RemoveTrust(_ context.Context, organization, name string) error {
	return r.note("RemoveTrust", organization, name)
}

func (r *recorder) GrantMember(_ context.Context, name string, g deployments.Grant) error {
	return r.note("GrantMember", name, g)
}

func (r *recorder) ListMembers(context.Context) ([]deployments.Member, error) {
	return answer[[]deployments.Member](r, "ListMembers")
}

func (r *recorder) RemoveMember(_ context.Context, name, organization string) error {
	return r.note("RemoveMember", name, organization)
}

func (r *recorder) CreateSchedule(_ context.Context, s deployments.Schedule) error {
	return r.note("CreateSchedule", s)
}

func (r *recorder) Schedules(_ context.Context, s deployments.StackName) ([]deployments.Schedule, error) {
	list, err := answer[[]deployments.Schedule](r, "Schedules", s)
	for i := range list {
		list[i].Authority = nil // what its maker may do is not told
	}
	return list, err
}

func (r *recorder) Schedule(_ context.Context, n deployments.ScheduleName) (deployments.Schedule, error) {
	s, err := answer[deployments.Schedule](r, "Schedule", n)
	s.Authority = nil
	return s, err
}

func (r *recorder) RemoveSchedule(_ context.Context, n deployments.ScheduleName) error {
	return r.note("RemoveSchedule", n)
}

func (r *recorder) PauseSchedule(_ context.Context, n deployments.ScheduleName, paused bool, initiator string) error {
	return r.note("PauseSchedule", n, paused, initiator)
}

func (r *recorder) RunSchedule(_ context.Context, n deployments.ScheduleName) error {
	return r.note("RunSchedule", n)
}

func (r *recorder) ScheduleRuns(
	_ context.Context, n deployments.ScheduleName, limit int,
) ([]deployments.ScheduleRun, error) {
	return answer[[]deployments.ScheduleRun](r, "ScheduleRuns", n, limit)
}

func (r *recorder) Drift(_ context.Context, s deployments.StackName) (deployments.Drift, error) {
	return answer[deployments.Drift](r, "Drift", s)
}

// Mode is also asked by the edge, before each call that changes something.
func (r *recorder) Mode(context.Context) (deployments.Mode, error) {
	m, err := answer[deployments.Mode](r, "Mode")
	m.Until = moment // it is over
	return m, err
}

func (r *recorder) SetMode(_ context.Context, m deployments.Mode) error {
	return r.note("SetMode", m)
}

func (r *recorder) Quotas(_ context.Context, organization string) ([]deployments.QuotaUse, error) {
	list, err := answer[[]deployments.QuotaUse](r, "Quotas", organization)
	for i := range list {
		list[i].Organization = organization // the edge shows no others
	}
	return list, err
}

func (r *recorder) SetQuota(_ context.Context, c deployments.QuotaChange) error {
	return r.note("SetQuota", c)
}

func (r *recorder) ChangeProfile(_ context.Context, c deployments.ProfileChange) (deployments.Profile, error) {
	return answer[deployments.Profile](r, "ChangeProfile", c)
}

func (r *recorder) Profile(_ context.Context, organization, name string) (deployments.Profile, error) {
	return answer[deployments.Profile](r, "Profile", organization, name)
}

func (r *recorder) Profiles(_ context.Context, organization string) ([]deployments.Profile, error) {
	return answer[[]deployments.Profile](r, "Profiles", organization)
}

func (r *recorder) RemoveProfile(_ context.Context, organization, name string) error {
	return r.note("RemoveProfile", organization, name)
}

func (r *recorder) PutWebhook(_ context.Context, w deployments.Webhook) (deployments.Webhook, error) {
	return answer[deployments.Webhook](r, "PutWebhook", w)
}

func (r *recorder) Webhooks(_ context.Context, s deployments.WebhookScope) ([]deployments.Webhook, error) {
	return answer[[]deployments.Webhook](r, "Webhooks", s)
}

func (r *recorder) RemoveWebhook(_ context.Context, n deployments.WebhookName) error {
	return r.note("RemoveWebhook", n)
}

func (r *recorder) SendWebhook(
	_ context.Context, n deployments.WebhookName, id string,
) (deployments.WebhookDelivery, error) {
	return answer[deployments.WebhookDelivery](r, "SendWebhook", n, id)
}

func (r *recorder) WebhookDeliveries(
	_ context.Context, n deployments.WebhookName,
) ([]deployments.WebhookDelivery, error) {
	return answer[[]deployments.WebhookDelivery](r, "WebhookDeliveries", n)
}
