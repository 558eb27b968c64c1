//go:build unix

package attack

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/harness"
)

// clientAttacks are those of a client that holds a valid token and speaks the API by itself.
var clientAttacks = []attack{
	{"client/forgotten-kind", forgottenKind},
	{"client/request-id-path", requestIDPath},
	{"client/name-path", namePath},
	{"client/version-path", versionPath},
	{"client/bundle-digest", bundleDigest},
	{"client/manifest-overlap", manifestOverlap},
	{"client/escape-sequences", escapeSequences},
	{"client/target-of-nothing", targetOfNothing},
	{"client/malformed-calls", malformedCalls},
	{"client/malformed-states", malformedStates},
	{"client/slow-targets", slowTargets},
	{"client/secret-words", secretWords},
}

// answered fails the test unless the call ended with one of the codes.
func answered(t *testing.T, what string, err error, want ...codes.Code) {
	t.Helper()
	if got := status.Code(err); !slices.Contains(want, got) {
		t.Errorf("%s: the answer is %v (%v), not one of %v", what, got, err, want)
	}
}

func forgottenKind(t *testing.T, f *field) {
	for _, kind := range []string{"", "restore", "preview", "importt", "UP", "up "} {
		_, err := f.deployments().Submit(f.calls, &api.SubmitRequest{
			Stack: dev, RequestId: "forgotten-kind", Kind: kind, Secrets: &api.SecretsProvider{Type: "service"},
		})
		answered(t, fmt.Sprintf("kind %q", kind), err, codes.InvalidArgument)
	}
}

func requestIDPath(t *testing.T, f *field) {
	for _, id := range []string{
		"x/../../../vic/updates/1", "x/../../../../../../tokens/evil", "..", ".", "a/b", "a\\b", "a\x00b", "",
		strings.Repeat("a", 200),
	} {
		for _, dryRun := range []bool{true, false} {
			_, err := f.deployments().Submit(f.calls, &api.SubmitRequest{
				Stack: dev, RequestId: id, Kind: "refresh", DryRun: dryRun,
				Secrets: &api.SecretsProvider{Type: "service"},
			})
			answered(t, fmt.Sprintf("request id %q", id), err, codes.InvalidArgument)
		}
	}
}

// hostileNames leave their place in the store, or cannot be shown.
var hostileNames = []string{
	"..", ".", "a/b", "../tokens", "a\x00b", "a\nb", "\x1b]0;x\x07", "", strings.Repeat("n", 1000), "a b", "%2e%2e",
	"\xff\xfe", "ａ",
}

func namePath(t *testing.T, f *field) {
	stacks := f.stacks()
	for _, name := range hostileNames {
		for _, s := range []*api.StackName{
			{Organization: name, Project: "p", Stack: "s"}, {Organization: "o", Project: name, Stack: "s"},
			{Organization: "o", Project: "p", Stack: name},
		} {
			if !validUTF8(s) {
				continue // the encoder of the client refuses it
			}
			_, err := stacks.CreateStack(f.calls, &api.CreateStackRequest{Stack: s})
			answered(t, fmt.Sprintf("create %v", s), err, codes.InvalidArgument)
			_, err = stacks.GetStack(f.calls, &api.GetStackRequest{Stack: s})
			answered(t, fmt.Sprintf("get %v", s), err, codes.InvalidArgument, codes.NotFound)
			_, err = stacks.RemoveStack(f.calls, &api.RemoveStackRequest{Stack: s, Force: true})
			answered(t, fmt.Sprintf("remove %v", s), err, codes.InvalidArgument, codes.NotFound)
			_, err = stacks.RenameStack(f.calls, &api.RenameStackRequest{From: dev, To: s})
			answered(t, fmt.Sprintf("rename to %v", s), err, codes.InvalidArgument)
		}
	}
	f.victim.Must(t, "token", "ls")
	f.victim.Must(t, "stack", "ls", "--all")
}

func validUTF8(s *api.StackName) bool {
	_, err := proto.Marshal(s)
	return err == nil
}

func versionPath(t *testing.T, f *field) {
	for _, version := range []string{"../1", "..", "1/../../x", "", "-1", "1e9", "1\x00", strings.Repeat("9", 400),
		"head.json"} {
		u := &api.UpdateName{Stack: dev, Version: version}
		_, err := f.deployments().Cancel(f.calls, &api.CancelRequest{Update: u})
		answered(t, fmt.Sprintf("cancel %q", version), err, codes.InvalidArgument, codes.NotFound)
		watch, err := f.deployments().Watch(f.calls, &api.WatchRequest{Update: u})
		if err == nil {
			_, err = watch.Recv()
		}
		answered(t, fmt.Sprintf("watch %q", version), err, codes.InvalidArgument, codes.NotFound)
	}
}

func bundleDigest(t *testing.T, f *field) {
	for _, bundle := range []string{"..", "sha256:../../x", "sha256:", "sha256:" + strings.Repeat("z", 64), "md5:00",
		strings.Repeat("a", 10_000)} {
		_, err := f.deployments().Submit(f.calls, &api.SubmitRequest{
			Stack: dev, RequestId: "bundle-digest", Kind: "up", Bundle: bundle,
			Secrets: &api.SecretsProvider{Type: "service"},
		})
		answered(t, fmt.Sprintf("bundle %.40q", bundle), err, codes.InvalidArgument)
	}
}

func manifestOverlap(t *testing.T, f *field) {
	put, err := f.bundles().PutFile(f.calls)
	harness.Must(t, err)
	harness.Must(t, put.Send(&api.PutFileRequest{Stack: dev, Digest: empty}))
	_, err = put.CloseAndRecv()
	answered(t, "an empty file", err, codes.OK)
	for name, paths := range map[string][]string{
		"a file that is a directory": {"a", "a/b"}, "a path outside": {"../a"}, "an absolute path": {"/a"},
		"the same twice": {"a", "a"}, "NUL": {"a\x00"},
	} {
		m := &api.Manifest{}
		for _, path := range paths {
			m.Files = append(m.Files, &api.File{Path: path, Digest: empty, Mode: 0o600})
		}
		_, err := f.bundles().PutManifest(f.calls, &api.PutManifestRequest{Stack: dev, Manifest: m})
		answered(t, name, err, codes.InvalidArgument)
	}
	m := &api.Manifest{}
	for i := range 150_000 {
		m.Files = append(m.Files, &api.File{Path: fmt.Sprintf("f%06d", i), Digest: empty, Mode: 0o600})
	}
	_, err = f.bundles().PutManifest(f.calls, &api.PutManifestRequest{Stack: dev, Manifest: m})
	answered(t, "150,000 files", err, codes.InvalidArgument, codes.ResourceExhausted)
}

func escapeSequences(t *testing.T, f *field) {
	const message = "\x1b]0;PWNED\x07 \x1b[31mred \u009b31m \x08\x08"
	f.victim.Run(t, "refresh", "--yes", "--skip-preview", "-m", message) // refused or carried: both will do
	for _, command := range [][]string{{"stack", "history"}, {"stack", "ls", "--all"}, {"stack"}} {
		end := f.victim.Run(t, command...)
		if said := end.Stdout + end.Stderr; strings.ContainsAny(said, "\x1b\x07\x08\u009b") {
			t.Errorf("%v prints control characters: %q", command, said)
		}
	}
}

func targetOfNothing(t *testing.T, f *field) {
	for _, args := range [][]string{
		{"up", "--target", "urn:pulumi:dev::precious::fake:index:Named::nope"}, {"up", "--replace", "nothere"},
		{"up", "--target", "nope"},
		{"destroy", "--target", "urn:pulumi:dev::precious::fake:index:Named::nope"},
		{"refresh", "--target", "urn:pulumi:dev::precious::x:y:Z::nope"},
	} {
		if end := f.victim.Run(t, append(args, "--yes", "--skip-preview")...); end.Code == 0 {
			t.Errorf("%v succeeds: %s", args, end.Said())
		}
	}
}

// malformedCalls calls every unary method with random messages: valid protobuf, senseless values.
func malformedCalls(t *testing.T, f *field) {
	random := rand.New(rand.NewPCG(15, 1))
	var methods []grpcMethod
	for _, service := range []string{"Deployments", "Stacks", "Bundles", "Tokens", "Schedules"} {
		s := api.File_deployctl_v1_deployctl_proto.Services().ByName(protoreflect.Name(service))
		for i := range s.Methods().Len() {
			if m := s.Methods().Get(i); !m.IsStreamingClient() && !m.IsStreamingServer() {
				methods = append(methods, grpcMethod{"/" + string(s.FullName()) + "/" + string(m.Name()), m.Input(),
					m.Output()})
			}
		}
	}
	for range size(2_000, 100_000) {
		m := methods[random.IntN(len(methods))]
		in, out := messageOf(m.in), messageOf(m.out)
		fill(random, in.ProtoReflect(), 0)
		if err := f.conn.Invoke(f.calls, m.name, in, out); err != nil && status.Code(err) == codes.Unavailable {
			t.Fatalf("%s of %v: the service is gone: %v", m.name, in, err)
		} else if status.Code(err) == codes.Internal && strings.Contains(err.Error(), "panic") {
			t.Errorf("%s of %v: %v", m.name, in, err)
		}
	}
}

type grpcMethod struct {
	name    string
	in, out protoreflect.MessageDescriptor
}

// malformedStates imports deployments that are no deployments; each is refused with a sentence, or carried by a
// refresh.
func malformedStates(t *testing.T, f *field) {
	prey := f.project(t, "prey", "steps: []\n")
	good := map[string]any{}
	harness.Must(t, json.Unmarshal([]byte(f.victim.Must(t, "stack", "export")), &good))
	random := rand.New(rand.NewPCG(15, 2))
	for i := range size(40, 1_000) {
		text, err := json.Marshal(mutate(random, good))
		harness.Must(t, err)
		stdin := *prey
		stdin.Stdin = string(text)
		end := stdin.Run(t, "stack", "import", "--force")
		if end.Code != 0 && !strings.Contains(end.Stderr, "error: ") {
			t.Errorf("state %d: it is refused without a sentence: %s\n%s", i, end.Said(), text)
		}
		if end.Code != 0 || i%10 != 0 {
			continue
		}
		if end := prey.Run(t, "preview"); end.Code < 0 || strings.Contains(end.Said(), "panic") {
			t.Errorf("state %d: a preview over it ends with %d: %s\n%s", i, end.Code, end.Said(), text)
		}
	}
}
