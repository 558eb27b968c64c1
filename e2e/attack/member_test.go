//go:build unix

package attack

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// memberAttacks are those of people whose token is valid, and is for other stacks or for less.
var memberAttacks = []attack{
	{"member/every-method-elsewhere", everyMethodElsewhere},
	{"member/viewer-changes", viewerChanges},
	{"member/almost-matching-stacks", almostMatchingStacks},
	{"member/own-promotion", ownPromotion},
	{"member/log-of-others", logOfOthers},
	{"member/bodies-at-others", bodiesAtOthers},
	{"member/planted-name", plantedName},
	{"member/worthless-tokens", worthlessTokens},
	{"member/removed-member", removedMember},
	{"member/stack-reference", stackReference},
	{"member/borrowed-profile", borrowedProfile},
	{"member/left-schedule", leftSchedule},
	{"member/left-queue", leftQueue},
	{"member/taken-bundle", takenBundle},
	{"member/taken-ciphertext", takenCiphertext},
	{"member/repeated-request", repeatedRequest},
}

// holder is who holds a token.
type holder struct {
	calls context.Context
	token string
}

// holder makes a token, and returns whoever holds it.
func (f *field) holder(t *testing.T, args ...string) holder {
	t.Helper()
	token := strings.TrimSpace(f.victim.Must(t, append([]string{"token", "create"}, args...)...))
	return holder{metadata.NewOutgoingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+token)), token}
}

// tool is deployctl with the holder's token, in a directory.
func (f *field) tool(t *testing.T, h holder, dir string) *harness.Tool {
	t.Helper()
	return f.Deployctl(dir, "DEPLOYCTL_SERVER="+f.status(t).APIAddress, "DEPLOYCTL_TOKEN="+h.token)
}

// method is one of the API, and whether it names stacks.
type method struct {
	protoreflect.MethodDescriptor
	stacked bool
}

func (m method) path() string { return "/" + string(m.Parent().FullName()) + "/" + string(m.Name()) }

// about is a message of the method in which everything that names a stack names this one.
func (m method) about(s *api.StackName) proto.Message {
	in := dynamicpb.NewMessage(m.Input())
	name(in, s)
	return in
}

// name sets the stacks that a message names, and tells whether there are some.
func name(m protoreflect.Message, s *api.StackName) (named bool) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Message() == nil || field.IsList() || field.IsMap() {
			continue
		}
		if field.Message().FullName() == s.ProtoReflect().Descriptor().FullName() {
			text, err := proto.Marshal(s)
			if err == nil {
				err = proto.Unmarshal(text, m.Mutable(field).Message().Interface())
			}
			if err != nil {
				panic(err)
			}
			named = true
		} else if nested := m.NewField(field); name(nested.Message(), s) {
			m.Set(field, nested)
			named = true
		}
	}
	return named
}

// methods are all of the API.
func methods() (all []method) {
	services := api.File_deployctl_v1_deployctl_proto.Services()
	for i := range services.Len() {
		for j := range services.Get(i).Methods().Len() {
			m := services.Get(i).Methods().Get(j)
			all = append(all, method{m, name(dynamicpb.NewMessage(m.Input()), &api.StackName{Stack: "x"})})
		}
	}
	return all
}

// call makes a call with one message, to its first answer.
func (f *field) call(ctx context.Context, m method, in proto.Message) (out proto.Message, err error) {
	out = dynamicpb.NewMessage(m.Output())
	stream, err := f.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: m.IsStreamingServer(),
		ClientStreams: m.IsStreamingClient()}, m.path())
	if err != nil {
		return out, err
	}
	if err := stream.SendMsg(in); err != nil {
		return out, err
	}
	_ = stream.CloseSend() // the answer tells
	return out, stream.RecvMsg(out)
}

// everyMethodElsewhere has an admin of another organization call every method about the victim's stack.
func everyMethodElsewhere(t *testing.T, f *field) {
	rival := f.holder(t, "rival-admin", "--role", "admin", "--organization", "rival")
	called := 0
	for _, m := range methods() {
		out, err := f.call(rival.calls, m, m.about(dev))
		if strings.Contains(out.ProtoReflect().Interface().(*dynamicpb.Message).String(), "precious") {
			t.Errorf("%s shows %v", m.path(), out)
		}
		if m.stacked {
			called++
			answered(t, m.path(), err, codes.NotFound, codes.PermissionDenied)
		}
	}
	if called < 20 {
		t.Errorf("only %d methods name stacks", called)
	}
	own := &api.StackName{Organization: "rival", Project: "precious", Stack: "dev"}
	_, err := f.stacks().CreateStack(rival.calls, &api.CreateStackRequest{Stack: own})
	answered(t, "its own stack", err, codes.OK)
	_, err = f.stacks().RenameStack(rival.calls, &api.RenameStackRequest{From: own,
		To: &api.StackName{Organization: "organization", Project: "precious", Stack: "theirs"}})
	answered(t, "renaming a stack into the other organization", err, codes.PermissionDenied)
	_, err = f.stacks().RenameStack(rival.calls, &api.RenameStackRequest{From: dev,
		To: &api.StackName{Organization: "rival", Project: "precious", Stack: "mine"}})
	answered(t, "renaming the victim's stack into its own", err, codes.NotFound)
}

// readable are the methods that a viewer may call.
var readable = []string{
	"Watch", "ListOngoing", "ListStacks", "ListStatuses", "GetStack", "Export", "History", "ListSchedules", "GetSchedule",
	"ScheduleRuns", "GetDrift",
	"DeriveToken",  // which has no more rights than the caller's own
	"ListProfiles", // their names, of the organizations that a caller sees anything of
	"ListQuotas",   // of the organizations that a caller sees anything of
	"GetMode",      // why the service begins nothing, which is told to everybody who is refused
	"WhoAmI",
}

// viewerChanges has a viewer of the victim's stack call every other method, and ask for secrets.
func viewerChanges(t *testing.T, f *field) {
	viewer := f.holder(t, "viewer", "--role", "viewer", "--organization", "organization")
	for _, m := range methods() {
		if !slices.Contains(readable, string(m.Name())) {
			_, err := f.call(viewer.calls, m, m.about(dev))
			answered(t, m.path(), err, codes.PermissionDenied)
		}
	}
	export, err := f.stacks().Export(viewer.calls, &api.ExportRequest{Stack: dev, ShowSecrets: true})
	if err == nil {
		_, err = export.Recv()
	}
	answered(t, "secrets in clear", err, codes.PermissionDenied)
	tool := f.tool(t, viewer, f.victim.Dir)
	noSecrets(t, "the viewer's export", tool.Must(t, "stack", "export"))
	noSecrets(t, "the viewer's outputs", tool.Run(t, "stack", "output", "--show-secrets").Said())
}

// almostMatchingStacks has the holders of globs look at and destroy what they nearly name.
func almostMatchingStacks(t *testing.T, f *field) {
	for i, glob := range []string{"precious/de", "preciou?/de?x", "*/prod", "recious/dev", "precious/dev2",
		"PRECIOUS/DEV", "precious*/d", "?/dev"} {
		h := f.holder(t, "glob-"+string(rune('a'+i)), "--role", "admin", "--organization", "organization", "--stacks",
			glob)
		_, err := f.stacks().GetStack(h.calls, &api.GetStackRequest{Stack: dev})
		answered(t, "a token for "+glob, err, codes.NotFound)
		_, err = f.stacks().RemoveStack(h.calls, &api.RemoveStackRequest{Stack: dev, Force: true})
		answered(t, "a removal with a token for "+glob, err, codes.NotFound)
	}
	// a name is not a pattern
	for _, organization := range []string{"Organization", "organizatio", "organization2", "o*"} {
		end := f.victim.Run(t, "token", "create", "near-"+strings.Trim(organization, "*"), "--role", "admin",
			"--organization", organization)
		if end.Code != 0 {
			continue
		}
		calls := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("authorization",
			"Bearer "+strings.TrimSpace(end.Stdout)))
		_, err := f.stacks().GetStack(calls, &api.GetStackRequest{Stack: dev})
		answered(t, "a token for the organization "+organization, err, codes.NotFound)
	}
}

// ownPromotion has those who may do little give themselves more.
func ownPromotion(t *testing.T, f *field) {
	everything := &api.Grant{Role: "admin", Organization: "*"}
	for _, role := range []string{"viewer", "deployer", "admin"} {
		h := f.holder(t, "climber-"+role, "--role", role, "--organization", "rival", "--stacks", "shop/*")
		tokens, members := api.NewTokensClient(f.conn), api.NewMembersClient(f.conn)
		for _, grant := range []*api.Grant{everything, {Role: "admin", Organization: "organization"},
			{Role: "admin", Organization: "rival"}} {
			_, err := tokens.CreateToken(h.calls, &api.CreateTokenRequest{Name: "promoted", Grant: grant})
			answered(t, role+" makes a token of "+grant.String(), err, codes.PermissionDenied)
			_, err = members.GrantMember(h.calls, &api.GrantMemberRequest{Name: "promoted", Grant: grant})
			answered(t, role+" makes a member of "+grant.String(), err, codes.PermissionDenied)
		}
		_, err := tokens.RemoveToken(h.calls, &api.RemoveTokenRequest{Name: "viewer"})
		answered(t, role+" removes another's token", err, codes.PermissionDenied, codes.NotFound)
	}
}

// worthlessTokens are tokens that were never good, or are not any more.
func worthlessTokens(t *testing.T, f *field) {
	short := f.holder(t, "short", "--role", "admin", "--organization", "*", "--expires", "1s")
	removed := f.holder(t, "removed", "--role", "admin", "--organization", "*")
	_, err := f.stacks().GetStack(removed.calls, &api.GetStackRequest{Stack: dev})
	answered(t, "the token before its removal", err, codes.OK)
	f.victim.Must(t, "token", "rm", "removed")
	again := f.holder(t, "removed", "--role", "viewer", "--organization", "rival") // another of its name
	texts := map[string]string{
		"none": "", "an expired one": short.token, "a removed one": removed.token,
		"one of another's name":      "dctl.local." + strings.Repeat("0", 64),
		"one with a letter too many": again.token + "0", "one in capitals": strings.ToUpper(again.token),
		"a path":      "dctl.../../x." + strings.Repeat("0", 64),
		"only a name": "dctl.removed", "a very long one": "dctl.removed." + strings.Repeat("0", 7000),
	}
	harness.Eventually(t, "the token has expired", func() bool {
		_, err := f.stacks().GetStack(short.calls, &api.GetStackRequest{Stack: dev})
		return err != nil
	})
	for what, text := range texts {
		calls := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+text))
		_, err := f.stacks().GetStack(calls, &api.GetStackRequest{Stack: dev})
		answered(t, what, err, codes.Unauthenticated, codes.ResourceExhausted) // wrong ones are slowed
	}
	both := metadata.NewOutgoingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+removed.token,
		"authorization", "Bearer "+again.token))
	_, err = f.stacks().GetStack(both, &api.GetStackRequest{Stack: dev})
	answered(t, "two at once", err, codes.Unauthenticated, codes.ResourceExhausted)
}

// removedMember goes on with the token of a member who was removed, also once somebody else has the name.
func removedMember(t *testing.T, f *field) {
	f.victim.Must(t, "member", "add", "ann", "--role", "admin", "--organization", "organization")
	h := f.holder(t, "anns", "--member", "ann", "--organization", "organization")
	_, err := f.stacks().GetStack(h.calls, &api.GetStackRequest{Stack: dev})
	answered(t, "a member", err, codes.OK)
	f.victim.Must(t, "member", "rm", "ann", "--organization", "organization")
	_, err = f.stacks().GetStack(h.calls, &api.GetStackRequest{Stack: dev})
	answered(t, "a removed member", err, codes.Unauthenticated)
	f.victim.Must(t, "member", "add", "ann", "--role", "admin", "--organization", "organization")
	_, err = f.stacks().GetStack(h.calls, &api.GetStackRequest{Stack: dev})
	answered(t, "the token of an earlier member of that name", err, codes.Unauthenticated)
}

// stackReference has a program of another organization read the victim's outputs.
func stackReference(t *testing.T, f *field) {
	rival := f.holder(t, "rival-reader", "--role", "deployer", "--organization", "rival")
	tool := f.tool(t, rival, t.TempDir())
	harness.Files{"Pulumi.yaml": "name: reader\nruntime: scenario\n", "scenario.yaml": `
steps:
  - {read: theirs, type: "pulumi:pulumi:StackReference", id: organization/precious/dev,
     properties: {name: organization/precious/dev}}
outputs:
  stolen: ${theirs.outputs}
`}.Write(t, tool.Dir)
	tool.Must(t, "stack", "init", "rival/reader/dev")
	end := tool.Run(t, "up", "--yes", "--skip-preview", "--stack", "rival/reader/dev")
	if end.Code == 0 || !strings.Contains(end.Said(), "there is no stack organization/precious/dev") {
		t.Errorf("the program ends with %d: %s", end.Code, end.Said())
	}
	shown := tool.Run(t, "stack", "output", "--show-secrets", "--json", "--stack", "rival/reader/dev").Said()
	noSecrets(t, "the program's outputs", end.Said()+shown)
	if strings.Contains(shown, "arn") {
		t.Errorf("the program has read %s", shown)
	}
}

// leftSchedule has a schedule of a member's go on, whose program reads the victim's outputs, once the member may not
// any more.
func leftSchedule(t *testing.T, f *field) {
	of := []string{"--organization", "organization"}
	for _, command := range [][]string{
		{"member", "add", "leaver", "--role", "deployer", "--stacks", "left/*"},
		{"team", "add", "readers", "--role", "viewer", "--stacks", "precious/*"},
		{"team", "join", "readers", "leaver"},
	} {
		f.victim.Must(t, append(command, of...)...)
	}
	tool := f.tool(t, f.holder(t, append([]string{"leavers", "--member", "leaver"}, of...)...), t.TempDir())
	harness.Files{"Pulumi.yaml": "name: left\nruntime: scenario\n", "scenario.yaml": `
steps:
  - {read: theirs, type: "pulumi:pulumi:StackReference", id: organization/precious/dev,
     properties: {name: organization/precious/dev}}
`}.Write(t, tool.Dir)
	tool.Must(t, "stack", "init", "organization/left/dev")
	tool.Must(t, "up", "--yes", "--skip-preview", "--stack", "organization/left/dev")
	tool.Must(t, "schedule", "new", "update", "--every", "1d", "--stack", "organization/left/dev")
	asAdmin := func(args ...string) string {
		return f.victim.Must(t, append(args, "--stack", "organization/left/dev")...)
	}
	for run, left := range []struct {
		how  []string
		want string
	}{
		{nil, "succeeded"},
		{append([]string{"team", "leave", "readers", "leaver"}, of...),
			"there is no stack organization/precious/dev"},
		{[]string{"token", "rm", "leavers"}, "the token was removed"},
	} {
		if left.how != nil {
			f.victim.Must(t, left.how...)
		}
		asAdmin("schedule", "run", "update")
		said := ""
		harness.Eventually(t, fmt.Sprintf("run %d has ended", run+1), func() bool {
			said = asAdmin("schedule", "runs", "update", "--json")
			return strings.Count(said, `"ended"`) > run
		})
		if !strings.Contains(said, left.want) {
			t.Errorf("after %v the runs are\n%s", left.how, said)
		}
	}
	// Temporal pauses it a moment later
	harness.Eventually(t, "the list of schedules says that the token was removed", func() bool {
		return strings.Contains(asAdmin("schedule", "ls"), "the token was removed")
	})
	if said := f.victim.Must(t, "audit", "--organization", "organization", "--user", "leaver"); !strings.Contains(said,
		"Schedules/RunSchedule") {
		t.Errorf("the audit log has\n%s", said)
	}
}

// leftQueue has an update wait in the victim's queue until its caller's token is removed.
func leftQueue(t *testing.T, f *field) {
	h := f.holder(t, "queued", "--role", "deployer", "--organization", "organization")
	gate, err := f.hold(t)
	harness.Must(t, err)
	submitted, err := f.deployments().Submit(h.calls, &api.SubmitRequest{
		Stack: dev, RequestId: "left-queue", Kind: "destroy", Secrets: &api.SecretsProvider{Type: "service"},
	})
	harness.Must(t, err)
	f.victim.Must(t, "token", "rm", "queued")
	gate(t)
	end := f.end(t, holder{calls: f.calls}, submitted.GetUpdate())
	if end.GetStatus() != "failed" || !strings.Contains(end.GetError(),
		"the update does not begin: the token queued may not do this any more") {
		t.Errorf("it ends as %v", end)
	}
	if said := f.victim.Must(t, "stack", "history", "--limit", "1"); !strings.Contains(said, "failed") {
		t.Errorf("the history says\n%s", said)
	}
	if said := f.victim.Must(t, "audit", "--organization", "organization", "--user", "queued"); !strings.Contains(said,
		"forbidden") {
		t.Errorf("the audit log has\n%s", said)
	}
}

// empty is the digest of an empty file.
const empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// bundle is the digest of the victim's project, which somebody may have seen.
func (f *field) bundle(t *testing.T) string {
	t.Helper()
	put, err := f.bundles().PutFile(f.calls)
	harness.Must(t, err)
	harness.Must(t, put.Send(&api.PutFileRequest{Stack: dev, Digest: empty}))
	_, err = put.CloseAndRecv()
	harness.Must(t, err)
	made, err := f.bundles().PutManifest(f.calls, &api.PutManifestRequest{Stack: dev, Manifest: &api.Manifest{
		Files: []*api.File{{Path: "Pulumi.yaml", Digest: empty, Mode: 0o600}},
	}})
	harness.Must(t, err)
	return made.GetBundle()
}

// takenBundle names the digests of the victim's files as one's own.
func takenBundle(t *testing.T, f *field) {
	bundle := f.bundle(t)
	rival := f.holder(t, "rival-bundles", "--role", "admin", "--organization", "rival")
	own := &api.StackName{Organization: "rival", Project: "bundles", Stack: "dev"}
	_, err := f.stacks().CreateStack(rival.calls, &api.CreateStackRequest{Stack: own})
	harness.Must(t, err)
	m := &api.Manifest{Files: []*api.File{{Path: "Pulumi.yaml", Digest: empty, Mode: 0o600}}}
	missing, err := f.bundles().Missing(rival.calls, &api.MissingRequest{Stack: own, Manifest: m})
	if answered(t, "the question which files there are", err, codes.OK); len(missing.GetDigests()) != 1 {
		t.Errorf("the service tells that another stack has the file: %v", missing)
	}
	_, err = f.bundles().PutManifest(rival.calls, &api.PutManifestRequest{Stack: own, Manifest: m})
	if status.Code(err) == codes.OK {
		t.Error("a project of another's files is taken")
	}
	submitted, err := f.deployments().Submit(rival.calls, &api.SubmitRequest{
		Stack: own, RequestId: "taken-bundle", Kind: "up", Bundle: bundle,
		Secrets: &api.SecretsProvider{Type: "service"},
	})
	if err != nil {
		return
	}
	if end := f.end(t, rival, submitted.GetUpdate()); end.GetError() == "" {
		t.Errorf("an update with another's project ends as %v", end)
	}
}

// end waits for the end of an update.
func (f *field) end(t *testing.T, h holder, u *api.UpdateName) *api.UpdateInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(h.calls, waittest.Patience)
	defer cancel()
	watch, err := f.deployments().Watch(ctx, &api.WatchRequest{Update: u})
	harness.Must(t, err)
	for {
		e, err := watch.Recv()
		harness.Must(t, err)
		if e.GetEnd() != nil {
			return e.GetEnd()
		}
	}
}

// takenCiphertext has a stack of one's own decrypt what was encrypted for the victim's.
func takenCiphertext(t *testing.T, f *field) {
	sealed, err := f.stacks().Encrypt(f.calls, &api.EncryptRequest{Stack: dev, Plain: []string{needles[0]}})
	harness.Must(t, err)
	rival := f.holder(t, "rival-decrypts", "--role", "admin", "--organization", "rival")
	own := &api.StackName{Organization: "rival", Project: "decrypts", Stack: "dev"}
	_, err = f.stacks().CreateStack(rival.calls, &api.CreateStackRequest{Stack: own})
	harness.Must(t, err)
	out, err := f.stacks().Decrypt(rival.calls, &api.DecryptRequest{Stack: own, Sealed: sealed.GetSealed()})
	noSecrets(t, "the answer", out.String())
	if err == nil {
		t.Error("a secret of another stack is decrypted")
	}
}

// repeatedRequest asks once more, for another stack, with a request id that was used.
func repeatedRequest(t *testing.T, f *field) {
	other := f.project(t, "repeated", "steps: []\n")
	other.Update(t, "up")
	submit := func(s *api.StackName) *api.SubmitResponse {
		out, err := f.deployments().Submit(f.calls, &api.SubmitRequest{
			Stack: s, RequestId: "the-same-request", Kind: "refresh", Secrets: &api.SecretsProvider{Type: "service"},
		})
		harness.Must(t, err)
		return out
	}
	first := submit(dev)
	second := submit(&api.StackName{Organization: "organization", Project: "repeated", Stack: "dev"})
	if second.GetUpdate().GetStack().GetProject() != "repeated" {
		t.Errorf("the request of another stack is answered with %v", second)
	}
	if again := submit(dev); again.GetUpdate().GetVersion() != first.GetUpdate().GetVersion() {
		t.Errorf("the same request is update %s, and then %s", first.GetUpdate().GetVersion(),
			again.GetUpdate().GetVersion())
	}
}
