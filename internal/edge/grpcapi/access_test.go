package grpcapi

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// staffed is a service with members and a token of each, by name: root administers all, acme's and initech's admins
// theirs.
func staffed(t *testing.T) (*memory.Service, *grpc.ClientConn, map[string]string) {
	t.Helper()
	service, texts := memory.New(), map[string]string{}
	for name, g := range map[string]deployments.Grant{
		"root": {Role: admin, Organization: "*"}, "acme": {Role: admin, Organization: "acme"},
		"initech": {Role: admin, Organization: "initech"},
		"shop":    {Role: admin, Organization: "acme", Stacks: []string{"shop/*"}},
		"ann":     {Role: deployer, Organization: "acme"},
	} {
		if err := service.GrantMember(t.Context(), name, g); err != nil {
			t.Fatal(err)
		}
		text, err := service.CreateToken(t.Context(), deployments.Token{Name: name, Member: name,
			Organization: g.Organization})
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = text
	}
	return service, serving(t, Config{Service: service, Authority: service, Auditor: service}, nil), texts
}

func as(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func TestNobodyGivesTakesOrSeesMoreThanTheyAdminister(t *testing.T) {
	_, connection, texts := staffed(t)
	tokens, members := api.NewTokensClient(connection), api.NewMembersClient(connection)
	create := func(by string, token deployments.Token) codes.Code {
		_, err := tokens.CreateToken(as(t.Context(), texts[by]), wire.FromNewToken(token))
		return status.Code(err)
	}
	acme := deployments.Grant{Role: admin, Organization: "acme"}
	for _, c := range []struct {
		name string
		got  codes.Code
		want codes.Code
	}{
		{"an admin makes a token for their organization", create("acme", deployments.Token{Name: "a1", Grant: &acme}),
			codes.OK},
		{"not for another", create("initech", deployments.Token{Name: "a2", Grant: &acme}), codes.PermissionDenied},
		{"not for all", create("acme", deployments.Token{Name: "a3",
			Grant: &deployments.Grant{Role: viewer, Organization: "*"}}), codes.PermissionDenied},
		{"not one of a member of all", create("acme", deployments.Token{Name: "a4", Member: "root", Organization: "*"}),
			codes.PermissionDenied},
		{"nor one in the name of that member, within their organization", create("acme",
			deployments.Token{Name: "a5", Member: "root", Organization: "*", Grant: &acme}), codes.InvalidArgument},
		{"an admin of some stacks does not make one of a member of all stacks",
			create("shop", deployments.Token{Name: "a9", Member: "ann", Organization: "acme"}), codes.PermissionDenied},
		{"nor one that may do on these stacks what the admin may give, in the name of that member", create("shop",
			deployments.Token{Name: "b1", Member: "ann", Organization: "acme", Grant: &deployments.Grant{Role: deployer,
				Organization: "acme", Stacks: []string{"shop/*"}}}), codes.PermissionDenied},
		{"an admin of some stacks does not make one for the organization",
			create("shop", deployments.Token{Name: "a6", Grant: &acme}), codes.PermissionDenied},
		{"a deployer makes none", create("ann", deployments.Token{Name: "a7", Grant: &acme}), codes.PermissionDenied},
		{"a token without a role is refused", create("root", deployments.Token{Name: "a8"}), codes.InvalidArgument},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s", c.name, c.got)
		}
	}
	list, err := tokens.ListTokens(as(t.Context(), texts["acme"]), &api.ListTokensRequest{})
	var seen []string
	for _, m := range list.GetTokens() {
		seen = append(seen, m.GetName())
	}
	if want := []string{"a1", "acme", "ann", "shop"}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("acme's admin sees %v, %v; want %v", seen, err, want)
	}
	if _, err := tokens.RemoveToken(as(t.Context(), texts["acme"]),
		&api.RemoveTokenRequest{Name: "root"}); status.Code(err) != codes.NotFound {
		t.Errorf("another's token: %v", err)
	}
	grant := func(by, member string, g deployments.Grant) codes.Code {
		_, err := members.GrantMember(as(t.Context(), texts[by]), &api.GrantMemberRequest{Name: member,
			Grant: wire.FromGrant(g)})
		return status.Code(err)
	}
	if code := grant("initech", "ann", deployments.Grant{Role: viewer,
		Organization: "acme"}); code != codes.PermissionDenied {
		t.Errorf("another organization's member was changed: %s", code)
	}
	if code := grant("shop", "ann", deployments.Grant{Role: viewer, Organization: "acme",
		Stacks: []string{"shop/*"}}); code != codes.PermissionDenied {
		t.Errorf("an admin of some stacks took a member's role on all: %s", code)
	}
	if code := grant("initech", "ann", deployments.Grant{Role: viewer, Organization: "initech"}); code != codes.OK {
		t.Errorf("two organizations have members of one name: %s", code)
	}
	if _, err := members.RemoveMember(as(t.Context(), texts["initech"]),
		&api.RemoveMemberRequest{Name: "ann"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a member of no organization: %v", err)
	}
}

func TestAnUpdateCarriesTheAuthorityOfItsCallerAndNotWhatTheClientSays(t *testing.T) {
	service, connection, texts := staffed(t)
	if err := service.CreateStack(t.Context(), own, nil); err != nil {
		t.Fatal(err)
	}
	_, err := api.NewDeploymentsClient(connection).Submit(as(t.Context(), texts["ann"]),
		wire.FromRequest(deployments.UpdateRequest{
			Stack: own, RequestID: "r", Kind: "up", Initiator: "root", OnBusy: deployments.OnBusyQueue,
			Secrets: plainSecrets,
		}))
	if err != nil {
		t.Fatal(err)
	}
	r := service.Requests[0]
	if r.Initiator != "ann" || r.Authority == nil || !r.MayRead(viewer, sister) || r.MayRead(viewer, foreign) {
		t.Errorf("it is %s's and carries %+v", r.Initiator, r.Authority)
	}
}

func TestTheAuditLogSaysWhoDidWhatAndWhoWasRefused(t *testing.T) {
	service, connection, texts := staffed(t)
	stacks := api.NewStacksClient(connection)
	calls := []func() error{
		func() error {
			_, err := stacks.CreateStack(as(t.Context(), texts["ann"]),
				&api.CreateStackRequest{Stack: wire.FromStack(own)})
			return err
		},
		func() error {
			_, err := stacks.Decrypt(as(t.Context(), texts["ann"]), &api.DecryptRequest{Stack: wire.FromStack(own)})
			return err
		},
		func() error {
			// is not recorded
			_, err := stacks.GetStack(as(t.Context(), texts["ann"]), &api.GetStackRequest{Stack: wire.FromStack(own)})
			return err
		},
		func() error {
			_, err := stacks.GetStack(as(t.Context(), texts["initech"]),
				&api.GetStackRequest{Stack: wire.FromStack(own)})
			return err
		},
		func() error {
			_, err := stacks.GetStack(as(t.Context(), "guess"), &api.GetStackRequest{Stack: wire.FromStack(own)})
			return err
		},
	}
	for _, call := range calls {
		_ = call() // their codes are in the log
	}
	var told []string
	for _, e := range service.Audited {
		told = append(told, strings.TrimSpace(strings.Join([]string{e.Member, e.Method, e.Organization, e.Stack,
			string(e.Code)}, " ")))
		if e.Peer == "" || e.Request == "" || e.Time.IsZero() {
			t.Errorf("an entry does not say from where, which or when: %+v", e)
		}
	}
	want := []string{"ann Stacks/CreateStack acme shop/dev", "ann Stacks/Decrypt acme shop/dev",
		"initech Stacks/GetStack acme shop/dev not-found", "Stacks/GetStack   unauthorized"}
	if !slices.Equal(told, want) || !service.Audited[1].Secrets {
		t.Errorf("it says\n%q, want\n%q", told, want)
	}
	read := func(by string) int {
		stream, err := api.NewAuditClient(connection).ReadAudit(as(t.Context(), texts[by]),
			&api.ReadAuditRequest{Organization: "*"})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for {
			m, err := stream.Recv()
			if err != nil {
				return n
			}
			n += len(m.GetEntries())
		}
	}
	if root, acme, initech, ann := read("root"), read("acme"), read("initech"), read("ann"); root != 4 || acme != 3 ||
		initech != 0 || ann != 0 {
		t.Errorf("root sees %d entries, acme's admin %d, initech's %d, a deployer %d", root, acme, initech, ann)
	}
}

func TestTheAuditLogHasTheVersionOfAnUpdate(t *testing.T) {
	service, connection, texts := staffed(t)
	if err := service.CreateStack(t.Context(), own, nil); err != nil {
		t.Fatal(err)
	}
	bundle, err := service.PutManifest(t.Context(), own, deployments.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	service.Audited = nil
	m := &api.SubmitRequest{Stack: wire.FromStack(own), Kind: "up", RequestId: "one", Bundle: bundle, Parallel: 1}
	if s := invoke(t, connection, api.Deployments_Submit_FullMethodName, texts["ann"], m); s.Code() != codes.OK {
		t.Fatal(s)
	}
	if len(service.Audited) != 1 || service.Audited[0].Subject != "kind=up request_id=one version=1" {
		t.Errorf("the audit log has %+v", service.Audited)
	}
}

func TestOnlyAnAdminImportsWhatForgetsAllResources(t *testing.T) {
	service, connection, texts := staffed(t)
	if err := service.CreateStack(t.Context(), own, nil); err != nil {
		t.Fatal(err)
	}
	m := &api.ImportRequest{Stack: wire.FromStack(own), Chunk: []byte(`{"version":3,"deployment":{}}`), Forget: true}
	for by, want := range map[string]codes.Code{"ann": codes.PermissionDenied, "shop": codes.OK} {
		service.Audited = nil
		if s := invoke(t, connection, api.Stacks_Import_FullMethodName, texts[by], m); s.Code() != want {
			t.Errorf("by %s: %v, want %s", by, s, want)
		}
		if len(service.Audited) != 1 || service.Audited[0].Subject != "forget=true" ||
			(service.Audited[0].Code == "") != (want == codes.OK) {
			t.Errorf("the audit log has of the import by %s: %+v", by, service.Audited)
		}
	}
	m.Forget = false
	if s := invoke(t, connection, api.Stacks_Import_FullMethodName, texts["ann"], m); s.Code() != codes.OK {
		t.Errorf("a deployer's import that asks to forget nothing: %v", s)
	}
}

// withAdmin is an authority that knows nobody, and whether there is an admin.
type withAdmin struct {
	tokensByText
	is bool
}

func (w withAdmin) HasAdmin(context.Context) (bool, error) { return w.is, nil }

func TestTheTokenOfTheSettingsMakesTheFirstAdminAndThenManagesTokensOnly(t *testing.T) {
	var log bytes.Buffer
	for _, is := range []bool{false, true} {
		authority := BootstrapToken("first", withAdmin{is: is}, slog.New(slog.NewTextHandler(&log, nil)))
		connection := serving(t, Config{Service: memory.New(), Authority: authority}, nil)
		_, err := api.NewStacksClient(connection).ListStacks(as(t.Context(), "first"), &api.ListStacksRequest{})
		if want := map[bool]codes.Code{false: codes.OK, true: codes.PermissionDenied}[is]; status.Code(err) != want {
			t.Errorf("with an admin (%v) it lists stacks: %v", is, err)
		}
		grant := deployments.Grant{Role: admin, Organization: "*"}
		_, err = api.NewTokensClient(connection).CreateToken(as(t.Context(), "first"),
			wire.FromNewToken(deployments.Token{Name: "root", Grant: &grant}))
		if err != nil {
			t.Errorf("with an admin (%v) it makes a token: %v", is, err)
		}
	}
	if !strings.Contains(log.String(), "start serve without it") {
		t.Errorf("the log says %q", log.String())
	}
}

func TestAPanicEndsItsCallAlone(t *testing.T) {
	var log bytes.Buffer
	service := memory.New()
	service.BeforeSubmit = func(deployments.UpdateRequest) { panic("my:Comp is missing a module") }
	if err := service.CreateStack(t.Context(), own, nil); err != nil {
		t.Fatal(err)
	}
	connection := serving(t, Config{
		Service: service, Authority: OneToken("local", nil), Log: slog.New(slog.NewTextHandler(&log, nil)),
	}, nil)
	_, err := api.NewDeploymentsClient(connection).Submit(as(t.Context(), "local"),
		wire.FromRequest(deployments.UpdateRequest{
			Stack: own, RequestID: "r", Kind: "up", OnBusy: deployments.OnBusyQueue, Secrets: plainSecrets,
		}))
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "(request ") ||
		strings.Contains(err.Error(), "my:Comp") {
		t.Errorf("got %v", err)
	}
	_, request, _ := strings.Cut(strings.TrimSuffix(err.Error(), ")"), "(request ")
	if text := log.String(); !strings.Contains(text, "call panicked") || !strings.Contains(text, request) ||
		!strings.Contains(text, "memory.(*Service).Submit") {
		t.Errorf("the log does not tell of request %s with a stack trace: %s", request, text)
	}
	if _, err := api.NewStacksClient(connection).ListStacks(as(t.Context(), "local"),
		&api.ListStacksRequest{}); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestTheLineOfACallThatFailedHasItsReason(t *testing.T) {
	var log bytes.Buffer
	connection := serving(t, Config{Service: memory.New(), Authority: OneToken("local", nil),
		Log: slog.New(slog.NewJSONHandler(&log, nil))}, nil)
	_, err := api.NewStacksClient(connection).GetStack(as(t.Context(), "local"),
		&api.GetStackRequest{Stack: wire.FromStack(own)})
	var line struct{ Msg, Method, Code, Error string }
	if json.Unmarshal(log.Bytes(), &line) != nil || line.Msg != "call" || line.Method != "Stacks/GetStack" ||
		line.Code != "NotFound" || line.Error != status.Convert(err).Message() {
		t.Errorf("%v is logged as %s", err, log.String())
	}
}

func TestControlCharactersAreRefusedWhereSomebodyWouldBeShownThem(t *testing.T) {
	service := memory.New()
	if err := service.CreateStack(t.Context(), own, nil); err != nil {
		t.Fatal(err)
	}
	connection := serving(t, Config{Service: service, Authority: OneToken("local", nil)}, nil)
	good := deployments.UpdateRequest{Stack: own, RequestID: "r", Kind: "up", OnBusy: deployments.OnBusyQueue,
		Secrets: plainSecrets, Message: "two\nlines"}
	for name, change := range map[string]func(*deployments.UpdateRequest){
		"a message that sets the terminal's title": func(r *deployments.UpdateRequest) { r.Message = "\x1b]0;PWNED\a" },
		"a message with an eight-bit escape":       func(r *deployments.UpdateRequest) { r.Message = "\u009b31m" },
		"an initiator":                             func(r *deployments.UpdateRequest) { r.Initiator = "ann\r" },
		"a target":                                 func(r *deployments.UpdateRequest) { r.Targets = []string{"\x00"} },
		"a configuration key": func(r *deployments.UpdateRequest) {
			r.Config = map[string]deployments.ConfigValue{"a:\x1b": {}}
		},
	} {
		r := good
		change(&r)
		_, err := api.NewDeploymentsClient(connection).Submit(as(t.Context(), "local"), wire.FromRequest(r))
		if status.Code(err) != codes.InvalidArgument || strings.ContainsAny(err.Error(), "\x1b\x00\r\u009b") {
			t.Errorf("%s: %v", name, err)
		}
	}
	good.Config = map[string]deployments.ConfigValue{"a:b": {Value: "\x1b any bytes"}}
	if _, err := api.NewDeploymentsClient(connection).Submit(as(t.Context(), "local"),
		wire.FromRequest(good)); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// plainSecrets are under the service's own key.
var plainSecrets = deployments.SecretsProvider{Type: "service"}
