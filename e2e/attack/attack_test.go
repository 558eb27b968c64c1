//go:build unix

// Package attack plays the parties that must get nowhere, against the built binary: a hostile client, program, plugin,
// member of another organization, local user and web page, and whoever can read and write Temporal's database or the
// bucket.
//
// Each attack keeps one promise of docs/security.md, which names it. `make attack` plays all of them at full size;
// `make test` plays those that leftToSoak does not name, with the reduced sizes of the flag's default.
package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// size is how often a repeated attack is played: few in make test, all in make attack.
func size(few, all int) int {
	if *soaktest.Full {
		return all
	}
	return few
}

// attack is what a party tries. It fails the test if it gets anywhere.
type attack struct {
	id   string // as docs/security.md names it: PARTY/ATTACK
	play func(t *testing.T, f *field)
}

// leftToSoak are the attacks that `make soak` plays alone: in `make test`, another attack or a test of a package below
// meets the same protection. docs/security.md has them in italics.
var leftToSoak = []string{
	"client/forgotten-kind", "client/malformed-states", "client/slow-targets", "client/secret-words",
	"client/target-of-nothing",
	"lease/malformed-states", "lease/malformed-journals", "lease/malformed-events",
	"flood/many-tokens", "flood/uploads", "flood/pushes", "flood/watchers", "flood/slow-bodies", "flood/written",
	"flood/unfinished-messages", "flood/connections", "flood/unread-answers", "flood/endless-calls",
	"edge/taken-address", "edge/resets", "edge/malformed-calls",
	"member/bodies-at-others", "member/stack-reference", "member/left-schedule", "member/left-queue",
	"member/almost-matching-stacks",
	"program/assets-of-others", "program/fetches", "program/service-bucket", "program/next-start",
	"program/sockets-of-the-user", "program/files-of-processes", "program/user-namespaces", "program/links-in-home",
	"program/pipe-for-the-service", "program/long-urns", "program/endless-tools", "program/ports-of-another-update",
	"program/runtime-path", "program/endless-steps",
	"plugin/processes", "plugin/two-causes", "plugin/deep-names", "plugin/doubling-schema", "plugin/escape-sequences",
	"page/left-script", "lease/another-place", "program/escape-sequences", "edge/held-connections", "member/planted-name",
	"member/log-of-others",
	"temporal/schedule-runs", "temporal/terminated", "temporal/huge-payloads", "temporal/repeated-payloads",
	"temporal/restarted-update", "temporal/repeated-step", "temporal/burnt-versions", "temporal/absent-results",
	"temporal/spliced-signal", "temporal/spliced-start", "temporal/another-payload", "temporal/reset",
	"temporal/forged-ends", "temporal/spliced-request",
	"bucket/moved-object", "bucket/new-objects", "bucket/older-head", "bucket/lost-save", "bucket/foreign-keys",
	"bucket/damage-hides-others", "bucket/taken-places",
}

// parties are the attacks of each party, in the order of docs/security.md.
var parties = [][]attack{clientAttacks, leaseAttacks, floods, edgeAttacks, memberAttacks, programAttacks, pageAttacks,
	temporalAttacks, bucketAttacks}

// field is what a party attacks: a service of its own with a stack whose resources are real.
type field struct {
	*harness.Home
	cloud  *fakecloud.Process
	victim *harness.Tool // in the victim's project directory, stack dev
	calls  context.Context
	conn   *grpc.ClientConn
	root   *testing.T
	parts  *apart // see apart
	vitals string // address of probes and metrics
}

// victims is the program of the stack that is attacked.
const victims = `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: one, type: fake:index:Named, properties: {name: "precious-${stack}"}}
  - {register: two, type: fake:index:Auto,
     properties: {links: ["${one.arn}"], secretText: !secret "needle-in-the-state"}}
outputs:
  arn: ${two.arn}
  password: !secret "needle-in-the-outputs"
`

// needles are secrets of the victim that nobody else may see.
var needles = []string{"needle-in-the-state", "needle-in-the-outputs"}

// newField makes a service with the victim's stack, organization/precious/dev, updated once.
func newField(t *testing.T) *field {
	t.Helper()
	f := &field{Home: harness.NewHome(t, harness.Binary()), root: t, vitals: porttest.Address(t)}
	// The service reads the lock file of plugins, as it does where some may be downloaded; nobody listens there. It is an
	// issuer of tokens for clouds. It collects its garbage as it does where nobody has set GOGC.
	f.Env = append(f.Env, "DEPLOYCTL_METRICS_LISTEN="+f.vitals, "DEPLOYCTL_PLUGINS_DOWNLOAD=http://127.0.0.1:1",
		"DEPLOYCTL_ISSUER=https://deploy.example.com", "GOGC=100")
	f.Start(t)
	cloud, env := harness.Cloud(t)
	f.cloud, f.victim = cloud, f.project(t, "precious", victims, env)
	f.victim.Update(t, "up")
	f.dial(t)
	return f
}

// project makes a project with a stack dev, and returns deployctl in its directory.
func (f *field) project(t *testing.T, name, program string, env ...string) *harness.Tool {
	t.Helper()
	dir := t.TempDir()
	harness.Files{"Pulumi.yaml": "name: " + name + "\nruntime: scenario\n", "scenario.yaml": program}.Write(t, dir)
	tool := f.Deployctl(dir, env...)
	tool.Must(t, "stack", "init", "dev")
	return tool
}

// dial connects to the API with the local user's token.
func (f *field) dial(t *testing.T) {
	t.Helper()
	status := f.status(t)
	token, err := os.ReadFile(status.TokenFile)
	harness.Must(t, err)
	secure, err := credentials.NewClientTLSFromFile(status.Certificate, "")
	harness.Must(t, err)
	f.conn, err = grpc.NewClient(status.APIAddress, grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	harness.Must(t, err)
	t.Cleanup(func() { _ = f.conn.Close() })
	f.calls = metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+strings.TrimSpace(string(token)))
}

// unharmed is what attacks leave: the service answers, the victim's resources are there, and an update of its
// stack has nothing to do.
func (f *field) unharmed(t *testing.T) {
	t.Helper()
	found, err := f.cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	if len(found) != 2 {
		t.Errorf("the cloud holds %d objects of the victim, not 2", len(found))
	}
	f.victim.Expect(t, harness.Changes{"same": 3}, "up")
}

// patient is a context for what must end.
func patient(t *testing.T) context.Context {
	t.Helper()
	return waittest.Context(t)
}

// sharing are the parties that attack one service in `make test`; each has its own in `make attack`.
var sharing = [][][]attack{{clientAttacks, leaseAttacks, floods, edgeAttacks},
	{memberAttacks, programAttacks, pageAttacks}, {temporalAttacks, bucketAttacks}}

func TestNobodyGetsAnywhere(t *testing.T) {
	t.Parallel()
	groups := sharing
	if *soaktest.Full {
		groups = nil
		for _, attacks := range parties {
			groups = append(groups, [][]attack{attacks})
		}
	}
	for _, group := range groups {
		var names []string
		for _, attacks := range group {
			names = append(names, partyOf(attacks))
		}
		t.Run(strings.Join(names, "+"), func(t *testing.T) {
			t.Parallel()
			f := newField(t)
			for _, attacks := range group {
				f.attackedBy(t, attacks)
			}
			f.unharmed(t)
		})
	}
}

func partyOf(attacks []attack) string {
	party, _, _ := strings.Cut(attacks[0].id, "/")
	return party
}

// attackedBy plays the attacks of a party.
func (f *field) attackedBy(t *testing.T, attacks []attack) {
	party := partyOf(attacks)
	for _, a := range attacks {
		t.Run(strings.TrimPrefix(a.id, path.Base(t.Name())+"/"), func(t *testing.T) {
			if slices.Contains(leftToSoak, a.id) {
				soaktest.Only(t)
			}
			a.play(t, f)
			// make test looks once for all attacks that cannot change what the next one finds
			if *soaktest.Full || party == "temporal" || party == "bucket" {
				f.unharmed(t)
			}
		})
	}
}

// TestEachPromiseHasItsAttack compares docs/security.md with the attacks that are played, both ways, and with those
// that `make soak` plays alone.
func TestEachPromiseHasItsAttack(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "security.md"))
	harness.Must(t, err)
	var promised []string
	for _, id := range regexp.MustCompile("(\\*?)`attack:([a-z]+/[a-z0-9-]+)`").FindAllStringSubmatch(string(text), -1) {
		promised = append(promised, id[2])
		if soaked := slices.Contains(leftToSoak, id[2]); soaked != (id[1] != "") {
			t.Errorf("docs/security.md has %s in italics: %t; make soak plays it alone: %t", id[2], id[1] != "", soaked)
		}
	}
	var played []string
	for _, party := range parties {
		for _, a := range party {
			played = append(played, a.id)
		}
	}
	for _, name := range regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z]+)`").FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(tests(t), name[1]) {
			t.Errorf("docs/security.md names the test %s, which does not exist", name[1])
		}
	}
	for _, id := range played {
		if !slices.Contains(promised, id) {
			t.Errorf("docs/security.md does not name the attack %s", id)
		}
	}
	for _, id := range slices.Concat(promised, leftToSoak) {
		if !slices.Contains(played, id) {
			t.Errorf("docs/security.md or leftToSoak names the attack %s, which is not played", id)
		}
	}
}

// api are the clients of the attacked service.
func (f *field) deployments() api.DeploymentsClient { return api.NewDeploymentsClient(f.conn) }
func (f *field) stacks() api.StacksClient           { return api.NewStacksClient(f.conn) }
func (f *field) bundles() api.BundlesClient         { return api.NewBundlesClient(f.conn) }

var dev = &api.StackName{Organization: "organization", Project: "precious", Stack: "dev"}

// noSecrets fails the test if a text shows a secret of the victim.
func noSecrets(t *testing.T, where, text string) {
	t.Helper()
	for _, needle := range needles {
		if strings.Contains(text, needle) {
			t.Errorf("%s shows %s", where, fmt.Sprintf("%.4s…", needle))
		}
	}
}

// status is where the service of the field is.
func (f *field) status(t *testing.T) (s struct {
	APIAddress, Certificate, PulumiAddress, ConsoleAddress, TokenFile, TemporalAddress, Namespace, UIURL string
	PID                                                                                                  int
}) {
	t.Helper()
	harness.Must(t, json.Unmarshal([]byte(f.Deployctl(f.Dir).Must(t, "dev", "status", "--json")), &s))
	return s
}

// tests are the names of all tests of the repository.
var tests = func() func(t *testing.T) []string {
	var names []string
	return func(t *testing.T) []string {
		t.Helper()
		if names != nil {
			return names
		}
		declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
		harness.Must(t, filepath.WalkDir(harness.Root(), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, name := range declared.FindAllStringSubmatch(string(text), -1) {
				names = append(names, name[1])
			}
			return err
		}))
		return names
	}
}()
