package grpcapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// tokensByText is an authority for tests.
type tokensByText map[string]deployments.Caller

func (t tokensByText) Authenticate(_ context.Context, text string) (deployments.Caller, error) {
	caller, ok := t[text]
	if !ok {
		return caller, deployments.Errorf(deployments.CodeUnauthorized, "unknown")
	}
	return caller, nil
}

// serving serves the API with every method in the place of its own answered by reached, if that is not nil.
func serving(t testing.TB, c Config, reached grpc.StreamHandler) *grpc.ClientConn {
	t.Helper()
	return served(t, c, reached, func(*edge) {})
}

// served is serving with an edge that is changed before it answers, if reached is not nil.
func served(t testing.TB, c Config, reached grpc.StreamHandler, change func(*edge)) *grpc.ClientConn {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if _, _, err := newServer(t.Context(), Config{}); err != nil {
		t.Fatal(err) // such as a method without a rule
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if reached == nil {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- Serve(ctx, listener, c) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	} else {
		edge := &edge{authority: c.Authority, auditor: c.Auditor, log: c.Log, streams: context.Background(),
			bounds: newBounds(nil),
			calls:  NewCalls(), open: NewCalls(), entering: NewCalls(),
			recheckEvery: recheckEvery}
		change(edge)
		server := grpc.NewServer(grpc.StreamInterceptor(edge.serve), grpc.ForceServerCodecV2(newCodec()))
		byService := map[string][]grpc.StreamDesc{}
		for full := range rules {
			service, method, _ := strings.Cut(full[1:], "/")
			byService[service] = append(byService[service], grpc.StreamDesc{StreamName: method, Handler: reached})
		}
		for service, methods := range byService {
			server.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil), Streams: methods},
				nil)
		}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
	}
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(
		insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// messageOf makes the empty first message of a method.
func messageOf(t testing.TB, full string) proto.Message {
	t.Helper()
	service, method, _ := strings.Cut(full[1:], "/")
	described, err := methodOf(service, method)
	if err != nil {
		t.Fatal(err)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(described.Input().FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}

// assign sets the field at a path.
func assign(m protoreflect.Message, path string, value protoreflect.Value) {
	name, rest, deeper := strings.Cut(path, ".")
	field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if deeper && field.IsList() {
		assign(m.Mutable(field).List().AppendMutable().Message(), rest, value)
		return
	}
	if deeper {
		assign(m.Mutable(field).Message(), rest, value)
		return
	}
	m.Set(field, value)
}

// invoke makes a call with one message, and gives its status.
func invoke(t testing.TB, c *grpc.ClientConn, full, token string, m proto.Message) *status.Status {
	t.Helper()
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token))
	defer cancel()
	stream, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, full)
	if err != nil {
		return status.Convert(err)
	}
	if err := stream.SendMsg(m); err != nil && !errors.Is(err, io.EOF) {
		return status.Convert(err)
	}
	_ = stream.CloseSend()
	for {
		if err := stream.RecvMsg(&api.ErrorDetail{}); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return status.Convert(err)
		}
	}
}

// reached is a method that answers that its message came through.
func reached(srv any, s grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(s)
	service, method, _ := strings.Cut(full[1:], "/")
	described, err := methodOf(service, method)
	if err != nil {
		return err
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(described.Input().FullName())
	if err != nil {
		return err
	}
	if err := s.RecvMsg(kind.New().Interface()); err != nil {
		return err
	}
	return status.Error(codes.Aborted, "reached")
}

var (
	own     = deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	sister  = deployments.StackName{Organization: "acme", Project: "pay", Stack: "dev"}
	foreign = deployments.StackName{Organization: "initech", Project: "shop", Stack: "dev"}
)

// callers have each role on shop/* of acme.
func callers() tokensByText {
	known := tokensByText{"nothing": {Token: "nothing"}}
	for _, role := range []deployments.Role{viewer, deployer, admin} {
		grant := deployments.Grant{Role: role, Organization: "acme", Stacks: []string{"shop/*"}}
		known[string(role)] = deployments.Caller{Token: string(role),
			Authority: deployments.Authority{Grants: [][]deployments.Grant{{grant}}}}
	}
	return known
}

func TestEachMethodIsForThoseWhomItsRuleNames(t *testing.T) {
	known := callers()
	connection := serving(t, Config{Authority: known}, reached)
	for full, r := range rules {
		if r.scope == open {
			continue
		}
		for _, raised := range []bool{false, r.raised != ""} {
			for token, caller := range known {
				for _, name := range []deployments.StackName{own, sister, foreign} {
					m := messageOf(t, full)
					for _, path := range r.touches {
						assign(m.ProtoReflect(), path, protoreflect.ValueOfMessage(wire.FromStack(name).ProtoReflect()))
					}
					if raised {
						assign(m.ProtoReflect(), r.raised, protoreflect.ValueOfBool(true))
					}
					got := invoke(t, connection, full, token, m).Code()
					if got == codes.InvalidArgument {
						got = codes.Aborted // it was admitted, and then the message had nothing else in it
					}
					if want := expected(r, caller, name, raised); got != want {
						t.Errorf("%s of %s by %s (raised %v): %s, want %s", shortMethod(full), name, token, raised, got,
							want)
					}
				}
			}
		}
	}
}

// expected is what becomes of a call, worked out from the caller's one grant by hand: shop/* of acme.
func expected(r rule, caller deployments.Caller, name deployments.StackName, raised bool) codes.Code {
	has, needs := slices.Index([]string{"nothing", "viewer", "deployer", "admin"}, caller.Token),
		map[deployments.Role]int{viewer: 1, deployer: 2, admin: 3}[r.role]
	if raised {
		needs = map[deployments.Role]int{viewer: 1, deployer: 2, admin: 3}[r.to]
	}
	switch {
	case r.scope == onAny && has < needs:
		return codes.PermissionDenied
	case r.scope == onAny:
		return codes.Aborted
	case name != own || has == 0:
		if r.scope == onNewStack && len(r.touches) == 1 {
			return codes.PermissionDenied // there is nothing to be hidden
		}
		return codes.NotFound
	case has < needs:
		return codes.PermissionDenied
	}
	return codes.Aborted
}

func TestAMethodThatAnswersBeforeItReceivesRunsOnlyForThoseWhoMayCallIt(t *testing.T) {
	var ran atomic.Int64
	connection := serving(t, Config{Authority: callers()}, func(_ any, s grpc.ServerStream) error {
		ran.Add(1)
		return s.SendMsg(&api.ImportResponse{})
	})
	for full, r := range rules {
		if r.scope == open {
			continue
		}
		m := messageOf(t, full)
		for _, path := range r.touches {
			assign(m.ProtoReflect(), path, protoreflect.ValueOfMessage(wire.FromStack(own).ProtoReflect()))
		}
		if s := invoke(t, connection, full, "nothing", m); s.Code() != codes.PermissionDenied &&
			s.Code() != codes.NotFound {
			t.Errorf("%s answers somebody without a role: %v", full, s)
		}
	}
	if n := ran.Load(); n != 0 {
		t.Errorf("%d methods have run", n)
	}
}

// TestWhichRoleAMethodNeeds is the table once more, in words: a rule that is weakened is noticed.
func TestWhichRoleAMethodNeeds(t *testing.T) {
	want := map[deployments.Role]string{
		viewer: "Deployments/ListOngoing Deployments/Watch Modes/GetMode Profiles/ListProfiles " +
			"Quotas/ListQuotas Schedules/GetDrift " +
			"Schedules/GetSchedule " +
			"Schedules/ListSchedules " +
			"Schedules/ScheduleRuns " +
			"Stacks/Export Stacks/GetStack Stacks/History Stacks/ListStacks Stacks/ListStatuses Tokens/DeriveToken " +
			"Tokens/WhoAmI",
		deployer: "Bundles/Missing Bundles/PutFile Bundles/PutManifest Deployments/Cancel Deployments/Resolve " +
			"Deployments/Submit " +
			"Schedules/CreateSchedule Schedules/PauseSchedule Schedules/RemoveSchedule Schedules/RunSchedule " +
			"Stacks/ChangeTags Stacks/CreateStack Stacks/Decrypt Stacks/EditState Stacks/Encrypt Stacks/Import " +
			"Stacks/MoveState Stacks/Recover Stacks/RemoveStack " +
			"Stacks/RenameStack " +
			"Stacks/Restore Stacks/TagStack Webhooks/ListWebhooks Webhooks/PutWebhook Webhooks/RemoveWebhook " +
			"Webhooks/SendWebhook Webhooks/WebhookDeliveries",
		admin: "Audit/ReadAudit Members/GrantMember Members/ListMembers Members/RemoveMember Modes/SetMode " +
			"Profiles/ChangeProfile Profiles/GetProfile Profiles/RemoveProfile " +
			"Quotas/SetQuota Stacks/ExportRaw Stacks/RecreateStack " +
			"Teams/GrantTeam Teams/JoinTeam Teams/LeaveTeam Teams/ListTeams Teams/RemoveTeam " +
			"Tokens/CreateToken " +
			"Tokens/ListTokens Tokens/RemoveToken Trusts/ListTrusts Trusts/PutTrust Trusts/RemoveTrust",
		"": "Health/Check Health/List Health/Watch",
	}
	got := map[deployments.Role][]string{}
	for _, full := range slices.Sorted(maps.Keys(rules)) {
		got[rules[full].role] = append(got[rules[full].role], shortMethod(full))
	}
	for role, methods := range want {
		if have := strings.Join(got[role], " "); have != methods {
			t.Errorf("%s:\n%s\nwant\n%s", role, have, methods)
		}
	}
	for full, to := range map[string]deployments.Role{
		api.Stacks_Export_FullMethodName: deployer, api.Stacks_RemoveStack_FullMethodName: admin,
		api.Stacks_Import_FullMethodName:  admin,
		api.Stacks_Restore_FullMethodName: admin, api.Stacks_EditState_FullMethodName: admin,
		api.Stacks_MoveState_FullMethodName: admin, api.Stacks_Recover_FullMethodName: admin,
	} {
		if rules[full].to != to || rules[full].raised == "" {
			t.Errorf("%s is raised to %q by %q", full, rules[full].to, rules[full].raised)
		}
	}
}

// TestWhatAMethodDoes is the same for what the audit log has: every method that is not named here changes something.
func TestWhatAMethodDoes(t *testing.T) {
	want := map[effect]string{
		reads: "Bundles/Missing Deployments/ListOngoing Deployments/Watch Members/ListMembers Modes/GetMode " +
			"Profiles/GetProfile Profiles/ListProfiles " +
			"Quotas/ListQuotas Schedules/GetDrift " +
			"Schedules/GetSchedule " +
			"Schedules/ListSchedules " +
			"Schedules/ScheduleRuns Stacks/Encrypt Stacks/GetStack Stacks/History Stacks/ListStacks Stacks/ListStatuses " +
			"Teams/ListTeams " +
			"Tokens/ListTokens Tokens/WhoAmI Trusts/ListTrusts Webhooks/ListWebhooks Webhooks/WebhookDeliveries",
		uploads:   "Bundles/PutFile Bundles/PutManifest",
		discloses: "Audit/ReadAudit Stacks/Decrypt Stacks/Export Stacks/ExportRaw",
	}
	got := map[effect][]string{}
	for _, full := range slices.Sorted(maps.Keys(rules)) {
		if r := rules[full]; r.scope != open && r.does != changes {
			got[r.does] = append(got[r.does], shortMethod(full))
		}
	}
	for does := range got {
		if have := strings.Join(got[does], " "); have != want[does] {
			t.Errorf("%d:\n%s\nwant\n%s", does, have, want[does])
		}
	}
}

func TestARuleSaysWhatItsMethodDoesAndWhatMemoryItsStreamsNeed(t *testing.T) {
	for full, r := range rules {
		service, method, _ := strings.Cut(full[1:], "/")
		silent := r
		silent.does = 0
		if err := silent.check(service, method); r.scope != open &&
			(err == nil || !strings.Contains(err.Error(), "what the method does")) {
			t.Errorf("%s may be kept from the audit log: %v", full, err)
		}
		silent.does, silent.room = r.does, ofMessage
		if err := silent.check(service, method); r.room != ofMessage &&
			(err == nil || !strings.Contains(err.Error(), "what memory")) {
			t.Errorf("%s may take any memory: %v", full, err)
		}
	}
	want := map[string]room{
		api.Stacks_Import_FullMethodName: ofParsed, api.Stacks_Export_FullMethodName: ofExport,
		api.Stacks_ExportRaw_FullMethodName:  ofExport,
		api.Bundles_PutFile_FullMethodName:   ofContent,
		api.Deployments_Watch_FullMethodName: ofParts, api.Audit_ReadAudit_FullMethodName: ofPages,
	}
	for full, r := range rules {
		if r.room != want[full] {
			t.Errorf("%s needs the room %d, want %d", full, r.room, want[full])
		}
	}
}

func TestAMethodWithoutARuleIsNotServed(t *testing.T) {
	left := rules[api.Stacks_Export_FullMethodName]
	delete(rules, api.Stacks_Export_FullMethodName)
	defer func() { rules[api.Stacks_Export_FullMethodName] = left }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	err = Serve(t.Context(), listener, Config{Service: memory.New(), Authority: callers()})
	if err == nil || !strings.Contains(err.Error(), "Stacks/Export has no rule") {
		t.Errorf("got %v", err)
	}
}

func TestARuleNamesEveryStackOfItsRequest(t *testing.T) {
	for name, c := range map[string]struct {
		full string
		rule rule
	}{
		"on anything, with a stack in the request": {api.Stacks_GetStack_FullMethodName,
			rule{role: viewer, scope: onAny}},
		"open, with a stack in the request": {api.Stacks_GetStack_FullMethodName, rule{scope: open}},
		"one of two stacks": {api.Stacks_RenameStack_FullMethodName,
			rule{role: viewer, touches: stack("from")}},
		"not those of a list": {api.Schedules_CreateSchedule_FullMethodName,
			rule{role: viewer, touches: stack("schedule.name.stack")}},
		"a field that is no stack": {api.Stacks_TagStack_FullMethodName,
			rule{role: viewer, touches: stack("stack", "tags")}},
	} {
		service, method, _ := strings.Cut(c.full[1:], "/")
		if c.rule.scope != open {
			c.rule.does = reads
		}
		if err := c.rule.check(service, method); err == nil || !strings.Contains(err.Error(), "has stacks at") {
			t.Errorf("%s: %v", name, err)
		}
	}
	listed := rule{role: viewer, touches: stack("schedule.last.updates.stack")}
	request, caller := &api.CreateScheduleRequest{}, callers()["viewer"]
	if err := listed.allow(caller, "List", request); deployments.CodeOf(err) != deployments.CodeInvalid || err == nil {
		t.Errorf("an empty list of stacks: %v", err)
	}
	for _, name := range []deployments.StackName{own, foreign} {
		assign(request.ProtoReflect(), "schedule.last.updates.stack",
			protoreflect.ValueOfMessage(wire.FromStack(name).ProtoReflect()))
	}
	if err := listed.allow(caller, "List", request); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("a list with a stack of others: %v", err)
	}
}

// asked is a service that notes of which organizations it was asked what they have.
type asked struct {
	Service
	organizations []string
}

func (a *asked) Ongoing(_ context.Context, organization string) ([]deployments.UpdateInfo, error) {
	a.organizations = append(a.organizations, organization)
	return nil, nil
}

func (a *asked) ListStacks(_ context.Context, organization, _ string) ([]deployments.StackInfo, error) {
	a.organizations = append(a.organizations, organization)
	return nil, nil
}

func TestWhatOtherOrganizationsHaveIsNotLookedFor(t *testing.T) {
	service := &asked{Service: memory.New()}
	connection := serving(t, Config{Service: service, Authority: callers()}, nil)
	for _, organization := range []string{"", own.Organization, foreign.Organization} {
		if s := invoke(t, connection, api.Deployments_ListOngoing_FullMethodName, "viewer",
			&api.ListOngoingRequest{Organization: organization}); s.Code() != codes.OK {
			t.Errorf("of %q: %v", organization, s)
		}
		if s := invoke(t, connection, api.Stacks_ListStacks_FullMethodName, "viewer",
			&api.ListStacksRequest{Organization: organization}); s.Code() != codes.OK {
			t.Errorf("the stacks of %q: %v", organization, s)
		}
	}
	if want := slices.Repeat([]string{own.Organization}, 4); !slices.Equal(service.organizations, want) {
		t.Errorf("it was looked at %q, not at %q", service.organizations, want)
	}
}

func TestAForbiddenStackLooksLikeOneThatIsNotThere(t *testing.T) {
	service := memory.New()
	for _, name := range []deployments.StackName{own, sister, foreign} {
		if err := service.CreateStack(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	connection := serving(t, Config{Service: service, Authority: callers()}, nil)
	gone := foreign
	gone.Stack = "gone"
	for full, r := range rules {
		if len(r.touches) == 0 || r.scope == onNewStack {
			continue
		}
		text := func(name deployments.StackName) string {
			m := messageOf(t, full)
			for _, path := range r.touches {
				assign(m.ProtoReflect(), path, protoreflect.ValueOfMessage(wire.FromStack(name).ProtoReflect()))
			}
			s := invoke(t, connection, full, "admin", m)
			return s.Code().String() + " " + strings.ReplaceAll(s.Message(), name.String(), "NAME")
		}
		if there, not := text(foreign), text(gone); there != not ||
			!strings.HasPrefix(there, "NotFound there is no stack NAME") {
			t.Errorf("%s says %q of a stack that is there, %q of one that is not", full, there, not)
		}
	}
	list, err := api.NewStacksClient(connection).ListStacks(metadata.AppendToOutgoingContext(t.Context(),
		"authorization", "Bearer viewer"), &api.ListStacksRequest{})
	if err != nil || len(list.GetStacks()) != 1 || wire.ToStack(list.GetStacks()[0].GetStack()) != own {
		t.Errorf("the list shows %v, %v", list.GetStacks(), err)
	}
	page, err := api.NewStacksClient(connection).ListStatuses(metadata.AppendToOutgoingContext(t.Context(),
		"authorization", "Bearer viewer"), &api.ListStatusesRequest{Limit: 1})
	if err != nil || len(page.GetStacks()) != 1 || wire.ToStack(page.GetStacks()[0].GetStack().GetStack()) != own ||
		page.GetNext() != "" {
		t.Errorf("the statuses are %v, %v", page, err)
	}
	for _, name := range []deployments.StackName{own, sister, foreign} {
		if _, err := service.Submit(t.Context(), deployments.UpdateRequest{Stack: name, Kind: "up",
			RequestID: name.Organization + name.Project}); err != nil {
			t.Fatal(err)
		}
	}
	ongoing, err := api.NewDeploymentsClient(connection).ListOngoing(metadata.AppendToOutgoingContext(t.Context(),
		"authorization", "Bearer viewer"), &api.ListOngoingRequest{})
	if err != nil || len(ongoing.GetUpdates()) != 1 ||
		wire.ToUpdate(ongoing.GetUpdates()[0].GetUpdate()).StackName != own {
		t.Errorf("what runs is %v, %v", ongoing.GetUpdates(), err)
	}
}

// TestTheAuditLogSaysWhatFieldsHave has fields of each kind that rules name.
func TestTheAuditLogSaysWhatFieldsHave(t *testing.T) {
	for want, m := range map[string]proto.Message{
		"edit=delete resources=a,b force=true": &api.EditStateRequest{Edit: "delete", Resources: []string{"a", "b"},
			Force: true},
		"set=color,size removed=old": &api.ChangeTagsRequest{Set: map[string]string{"size": "3", "color": "red"},
			Removed: []string{"old"}},
		"name=ci role=deployer organization=acme stacks=shop/*,b expires=2026-01-02T00:00:00Z": &api.CreateTokenRequest{
			Name: "ci", Grant: &api.Grant{Role: "deployer", Organization: "acme", Stacks: []string{"shop/*", "b"}},
			Expires: timestamppb.New(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))},
		"name=g issuer=i audiences=a conditions=repo:acme/*,ref:main lifetime=1h0m0s role=admin": &api.PutTrustRequest{
			Trust: &api.Trust{Name: "g", Issuer: "i", Audiences: []string{"a"}, Lifetime: durationpb.New(time.Hour),
				Conditions: []*api.Condition{{Claim: "repo", Pattern: "acme/*"}, {Claim: "ref", Pattern: "main"}},
				Grant:      &api.Grant{Role: "admin"}}},
		"name=aws base=3 stacks=shop/* set=REGION,KEY removed=OLD": &api.ChangeProfileRequest{Name: "aws",
			Base: proto.Int64(3), Stacks: &api.ProfileStacks{Stacks: []string{"shop/*"}}, Removed: []string{"OLD"},
			Set: []*api.ProfileVariable{{Name: "REGION", Value: "eu"}, {Name: "KEY", Value: "hush", Secret: true}}},
		"": &api.CreateTokenRequest{},
	} {
		method := map[string]string{"EditStateRequest": api.Stacks_EditState_FullMethodName,
			"ChangeTagsRequest":    api.Stacks_ChangeTags_FullMethodName,
			"ChangeProfileRequest": api.Profiles_ChangeProfile_FullMethodName,
			"CreateTokenRequest":   api.Tokens_CreateToken_FullMethodName,
			"PutTrustRequest":      api.Trusts_PutTrust_FullMethodName}[string(m.ProtoReflect().Descriptor().Name())]
		if got := fields(m, rules[method].subject); got != want {
			t.Errorf("it says %q, not %q", got, want)
		}
	}
	long := &api.EditStateRequest{Resources: []string{strings.Repeat("ä", longestField)}}
	if got := fields(long, []string{"resources"}); len(got) > longestField+20 || !utf8.ValidString(got) {
		t.Errorf("a long field takes %d bytes", len(got))
	}
}
