package activities

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/host/engineprovider"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/testkit/peertest"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// runScenario runs a scenario to its end, which must be a success.
func runScenario(t *testing.T, script string, config map[string]deployments.ConfigValue) (*house, *coreRun) {
	t.Helper()
	h := newHouse(t)
	claimed := h.claim(deployments.UpdateRequest{Bundle: h.upload(scenarioProject(script)), Config: config})
	run, out, err := h.play(claimed, nil)
	if err != nil || out.Error != "" || out.Lost {
		t.Fatalf("%+v %v\n%s", out, err, h.log())
	}
	return h, run
}

func TestAComponentIsConstructedByItsProvider(t *testing.T) {
	h, run := runScenario(t, `
steps:
  - register: box
    type: toy:index:Box
    remote: true
    component: true
    properties: {name: inside}
outputs:
  made: ${box.made}
`, nil)
	child, box := run.find("box-child"), run.find("box")
	if child.Parent != box.URN || child.ID != "inside" || child.Provider == "" {
		t.Errorf("child: %+v", child)
	}
	if got := h.values(box.Outputs)["made"]; !got.DeepEquals(resource.NewProperty("inside")) {
		t.Errorf("outputs: %v", h.values(box.Outputs))
	}
	for _, s := range run.states {
		if s.Type == "pulumi:pulumi:Stack" && h.values(s.Outputs)["made"].StringValue() != "inside" {
			t.Errorf("stack outputs: %v", h.values(s.Outputs))
		}
	}
}

func TestAnExplicitProviderIsConfiguredOnItsOwn(t *testing.T) {
	h, run := runScenario(t, `
steps:
  - register: east
    type: pulumi:providers:toy
    properties: {region: east}
  - register: thing
    type: toy:index:Thing
    properties: {name: n}
    options: {provider: east}
`, nil)
	east, thing := run.find("east"), run.find("thing")
	if thing.Provider != string(east.URN)+"::"+east.ID || h.values(thing.Outputs)["region"].StringValue() != "east" {
		t.Errorf("%+v %v", thing, h.values(thing.Outputs))
	}
}

func TestAProviderChangesNothingOfItsConfigurationThatIsTheEngines(t *testing.T) {
	script := func(region string) string {
		return "steps: [{register: east, type: pulumi:providers:toy, options: {version: 1.0.0}, properties: {region: " +
			region + "}}]"
	}
	h, run := runScenario(t, script(keepsInternal), nil)
	if said := h.log(); !strings.Contains(said, "has the key __internal, which is reserved; it is left out") {
		t.Errorf("nothing warns of the key:\n%s", said)
	}
	if inputs := h.values(run.find("east").Inputs); strings.Contains(fmt.Sprint(inputs), "own") {
		t.Errorf("the inputs are %v", inputs)
	}
	h = newHouse(t)
	claimed := h.claim(deployments.UpdateRequest{Bundle: h.upload(scenarioProject(script(changesVersion)))})
	run, _, err := h.play(claimed, nil)
	if told := run.told(); err != nil || !strings.Contains(told, "changed its version from 1.0.0 to 9.9.9") {
		t.Errorf("%q %v", told, err)
	}
}

func TestDefaultProvidersCanBeForbidden(t *testing.T) {
	h := newHouse(t)
	claimed := h.claim(deployments.UpdateRequest{
		Bundle: h.upload(scenarioProject("steps: [{register: thing, type: 'toy:index:Thing'}]")),
		Config: map[string]deployments.ConfigValue{"pulumi:disable-default-providers": {Value: `["toy"]`}},
	})
	run, _, err := h.play(claimed, nil)
	if told := run.told(); err != nil || !strings.Contains(told, "disable-default-providers") {
		t.Errorf("%q %v", told, err)
	}
}

func TestTheSameGoalHasTheSameDigestInEveryRunOfTheProgram(t *testing.T) {
	h := newHouse(t)
	script := `
steps:
  - register: a
    type: toy:index:Thing
    properties: {name: n, list: [1, 2], secret: !secret s}
  - register: b
    type: toy:index:Thing
    properties: {name: "${a.name}2", other: "${a.name}"}
`
	claimed := h.claim(deployments.UpdateRequest{Bundle: h.upload(scenarioProject(script))})
	digests := func(old []engine.State) map[string]string {
		run, out, err := h.play(claimed, old)
		if err != nil || out.Error != "" {
			t.Fatalf("%+v %v", out, err)
		}
		m := map[string]string{}
		for _, heard := range run.heard {
			if heard.Registered != nil {
				m[heard.Registered.Name] = heard.Registered.Digest
			}
		}
		return m
	}
	one := digests(nil)
	two := digests(h.runs.run.(*coreRun).states)
	if !maps.Equal(one, two) || one["a"] == "" || one["a"] == one["b"] {
		t.Errorf("%v, then %v", one, two)
	}
}

func TestProgramsNeverSeeTheServicesOwnCredentials(t *testing.T) {
	env := process.Inherit(
		[]string{"AWS_PROFILE=mine", "DEPLOYCTL_TOKEN=t0ken", "FOO=bar"},
		[]string{"AWS_SECRET_ACCESS_KEY=s", "TEMPORAL_API_KEY=k", "DEPLOYCTL_MASTER=m", "PATH=/bin", "HOME=/root"},
	)
	text := strings.Join(env, "\n")
	for _, hidden := range []string{"AWS_SECRET_ACCESS_KEY", "TEMPORAL_API_KEY", "DEPLOYCTL_"} {
		if strings.Contains(text, hidden) {
			t.Errorf("%s is in %v", hidden, env)
		}
	}
	for _, kept := range []string{"AWS_PROFILE=mine", "FOO=bar", "PATH=/bin"} {
		if !slices.Contains(env, kept) {
			t.Errorf("%s is not in %v", kept, env)
		}
	}
}

func TestAStackReferenceReadsTheOutputsOfAnotherStack(t *testing.T) {
	h, run := runScenario(t, "steps: [{register: thing, type: 'toy:index:Thing', properties: {name: "+
		"shared}}]\noutputs: {name: '${thing.name}'}", nil)
	h.settle(run)
	claimed := h.claim(deployments.UpdateRequest{Bundle: h.upload(scenarioProject(`
steps:
  - read: other
    type: pulumi:pulumi:StackReference
    id: organization/test/dev
    properties: {name: organization/test/dev}
  - register: copy
    type: toy:index:Thing
    properties: {name: "copy-${other.outputs.name}"}
`))})
	run, out, err := h.play(claimed, nil)
	if err != nil || out.Error != "" {
		t.Fatalf("%+v %v", out, err)
	}
	if got := run.find("copy"); got.ID != "copy-shared" {
		t.Errorf("%+v", got)
	}
}

// TestSecretsUnderAnotherKeyAreLeftOutOfAStackReference reads the outputs of a stack under a passphrase without that,
// and with another one. Nothing about it is damaged.
func TestSecretsUnderAnotherKeyAreLeftOutOfAStackReference(t *testing.T) {
	passphrase := func(salt string) deployments.SecretsProvider {
		return deployments.SecretsProvider{Type: deployments.SecretsPassphrase, Salt: salt,
			Key: bytes.Repeat([]byte(salt[:1]), 32)}
	}
	h := newHouse(t)
	run, out, err := h.play(h.claim(deployments.UpdateRequest{Secrets: passphrase("one"), Bundle: h.upload(scenarioProject(
		"steps: [{register: thing, type: 'toy:index:Thing', properties: {name: shared, secret: !secret hush}}]\n" +
			"outputs: {name: '${thing.name}', secret: '${thing.secret}'}"))}), nil)
	if err != nil || out.Error != "" {
		t.Fatalf("%+v %v\n%s", out, err, h.log())
	}
	h.settle(run)
	for name, c := range map[string]struct {
		secrets deployments.SecretsProvider
		want    string
	}{
		"the same":           {passphrase("one"), "[name secret]"},
		"another passphrase": {passphrase("two"), "[name]"},
		"the service's own":  {deployments.SecretsProvider{}, "[name]"},
	} {
		shown := &collected{}
		log := eventlog.NewOutput(shown, h.update, nil)
		p := engineprovider.New(h.update, deployments.UpdateRequest{Secrets: c.secrets}, h.store, printing(log))
		if got, err := invoked(t, p, "readStackOutputs", testStack); err != nil || got != c.want {
			t.Errorf("%s: %s, and not %s; %v", name, got, c.want, err)
		}
		log.Close(t.Context())
		if warned := len(shown.events) == 1; warned != (c.want == "[name]") {
			t.Errorf("%s: it is told what is left out: %v", name, warned)
		}
		if all, err := invoked(t, p, "readStackResourceOutputs", testStack); err != nil || all == "[]" {
			t.Errorf("%s: the resources are %v, %v", name, all, err)
		}
	}
}

// printing prints warnings to a log.
func printing(log *eventlog.Output) func(pluginhost.Message) {
	return func(m pluginhost.Message) {
		log.Print("", apitype.DiagnosticEvent{Message: m.Text, Severity: string(m.Severity)})
	}
}

// invoked returns the names of the outputs that a function of the engine's own package reads of a stack.
func invoked(
	t *testing.T, p pulumirpc.ResourceProviderServer, function string, stack deployments.StackName,
) (string, error) {
	t.Helper()
	key := "name"
	if function == "readStackResourceOutputs" {
		key = "stackName"
	}
	args, err := structpb.NewStruct(map[string]any{key: stack.String()})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.Invoke(t.Context(), &pulumirpc.InvokeRequest{Tok: "pulumi:pulumi:" + function, Args: args})
	if err != nil {
		return "", err
	}
	return fmt.Sprint(slices.Sorted(maps.Keys(resp.GetReturn().GetFields()["outputs"].GetStructValue().GetFields()))), nil
}

// collected is an event log in memory.
type collected struct{ events []deployments.WatchEvent }

func (c *collected) AppendEvents(_ context.Context, _ updates.Part, data []byte) error {
	events, err := eventlog.Decode(data)
	c.events = append(c.events, events...)
	return err
}

func TestAStackReferenceShowsWhatWhoeverAskedForTheUpdateMaySee(t *testing.T) {
	h, run := runScenario(t, "steps: [{register: thing, type: 'toy:index:Thing', properties: {name: shared, secret: "+
		"!secret hush}}]\n"+
		"outputs: {name: '${thing.name}', secret: '${thing.secret}'}", nil)
	h.settle(run)
	grant := func(role deployments.Role, stacks ...string) *deployments.Authority {
		return &deployments.Authority{Grants: [][]deployments.Grant{
			{{Role: role, Organization: testStack.Organization, Stacks: stacks}}}}
	}
	_, err := h.store.Access.CreateToken(t.Context(), deployments.Token{Name: "ci",
		Grant: &deployments.Grant{Role: deployments.RoleViewer, Organization: "*"}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := h.store.Access.ListTokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held := func(token string) *deployments.Authority {
		a := grant(deployments.RoleDeployer)
		a.Holders = []deployments.Holder{{Token: token, Made: list[0].Created}}
		return a
	}
	missing := testStack
	missing.Stack = "missing"
	for _, c := range []struct {
		name      string
		authority *deployments.Authority
		stack     deployments.StackName
		want      string
	}{
		{"a request of the time before authorities", nil, testStack, "[name secret]"},
		{"a deployer", grant(deployments.RoleDeployer), testStack, "[name secret]"},
		{"a viewer", grant(deployments.RoleViewer), testStack, "[name]"},
		{"somebody with a role elsewhere", grant(deployments.RoleAdmin, "other/*"), testStack,
			deployments.NoStack(testStack).Error()},
		{"somebody with no role at all", &deployments.Authority{}, testStack, deployments.NoStack(testStack).Error()},
		{"a deployer who is only a viewer now", held("ci"), testStack, "[name]"},
		{"the user of the embedded service", held(deployments.LocalToken), testStack, "[name secret]"},
		{"somebody whose token was removed", held("gone"), testStack,
			"the token gone may not do this any more: the token was removed; run `deployctl up` with a token that " +
				"may read it"},
		{"an admin of a stack that is not there", grant(deployments.RoleAdmin), missing,
			deployments.NoStack(missing).Error()},
	} {
		shown := &collected{}
		log := eventlog.NewOutput(shown, h.update, nil)
		p := engineprovider.New(h.update, deployments.UpdateRequest{Authority: c.authority}, h.store, printing(log))
		got, err := invoked(t, p, "readStackOutputs", c.stack)
		if err != nil {
			_, got, _ = strings.Cut(status.Convert(err).Message(), "stack "+c.stack.String()+": ")
		}
		if got != c.want {
			t.Errorf("%s sees %s, want %s", c.name, got, c.want)
		}
		log.Close(t.Context())
		if warned := len(shown.events) == 1; warned != (c.want == "[name]") {
			t.Errorf("%s is warned of what is left out: %v", c.name, warned)
		}
	}
}

func TestAYAMLProgramRunsThroughTheRealLanguageHost(t *testing.T) {
	host := peertest.Path(t, "pulumi-language-yaml")
	h := newHouse(t)
	h.env = append(h.env, "PATH="+pluginDir(t)+string(os.PathListSeparator)+filepath.Dir(host))
	claimed := h.claim(deployments.UpdateRequest{Bundle: h.upload(map[string]string{"Pulumi.yaml": `
name: test
runtime: yaml
resources:
  thing:
    type: toy:Thing
    properties: {name: n}
outputs:
  name: ${thing.name}
`})})
	run, out, err := h.play(claimed, nil)
	if err != nil || out.Error != "" {
		t.Fatalf("%+v %v\n%s", out, err, h.log())
	}
	if thing := run.find("thing"); thing.ID != "n" {
		t.Errorf("%+v", thing)
	}
}

func TestThoseThatAreMadeFromSomethingCondemnedAreReplacedIfTheirProviderSaysSo(t *testing.T) {
	h := bench(t, nil)
	state := func(name, property string, from urn.URN) engine.State {
		u := urn.New("dev", "test", "", thingType, name)
		s := *h.thing("id-"+name, texts("name", "n", "size", "1", "note", "x"), texts("name", "n"))
		s.URN, s.Key = u, engine.Key("b"+name)
		if property != "" {
			s.PropertyDependencies = []engine.PropertyDependency{{Property: property, URNs: []urn.URN{from}}}
		}
		s.Dependencies = []urn.URN{from}
		return s
	}
	root := state("root", "", "")
	byName := state("byName", "name", root.URN)
	bySize := state("bySize", "size", root.URN)
	below := state("below", "name", byName.URN)
	after := state("after", "", root.URN)
	planned, err := call[engine.CascadePlanned](h, h.acts.PlanCascade, deployments.CascadeInput{
		Update: h.update, Base: h.base, Cascade: engine.Cascade{
			Op: 7, Root: root, Candidates: []engine.State{byName, bySize, below, after},
			Providers: map[string]engine.Provider{h.toy().Ref: *h.toy()},
		},
	})
	if err != nil || planned.Op != 7 || planned.Error != "" || len(planned.Members) != 2 {
		t.Fatalf("%+v %v", planned, err)
	}
	if planned.Members[0].Key != "bbyName" || planned.Members[1].Key != "bbelow" ||
		planned.Members[0].Keys[0] != "name" {
		t.Errorf("%+v", planned.Members)
	}
}

func TestAPlanSeesChangesThroughTheOptions(t *testing.T) {
	h := bench(t, nil)
	old := h.thing("n", texts("name", "n", "size", "1", "zone", "a"), texts("name", "n"))
	for name, c := range map[string]struct {
		news   resource.PropertyMap
		set    func(*engine.Registration, *engine.State)
		change engine.ChangeKind
		inputs resource.PropertyMap
	}{
		"nothing changed": {texts("name", "n", "size", "1", "zone", "a"), nil, engine.ChangeNone, nil},
		"an update":       {texts("name", "n", "size", "2", "zone", "a"), nil, engine.ChangeUpdate, nil},
		"a replacement, checked without the olds": {
			texts("size", "1", "zone", "b"), nil, engine.ChangeReplace,
			texts("size", "1", "zone", "b", "name", "thing-"+seedText()),
		},
		"an ignored change": {texts("name", "n", "size", "2", "zone", "a"),
			func(g *engine.Registration, _ *engine.State) {
				g.IgnoreChanges = []string{"size"}
			}, engine.ChangeNone, texts("name", "n", "size", "1", "zone", "a")},
		"a change that forces a replacement": {texts("name", "n", "size", "2", "zone", "a"),
			func(g *engine.Registration, _ *engine.State) {
				g.ReplaceOnChanges = []string{"size"}
			}, engine.ChangeReplace, nil},
		"a failed initialisation": {texts("name", "n", "size", "1", "zone", "a"),
			func(_ *engine.Registration, s *engine.State) {
				s.InitErrors = []string{"not ready"}
			}, engine.ChangeUpdate, nil},
	} {
		t.Run(name, func(t *testing.T) {
			state := *old
			goal := engine.Registration{Type: thingType, Name: "thing", Custom: true, Inputs: h.bag(c.news)}
			if c.set != nil {
				c.set(&goal, &state)
			}
			out, err := call[deployments.PlanOutput](h, h.acts.PlanResources, deployments.PlanInput{
				Update: h.update, Base: h.base, Plans: []engine.Plan{{
					Op: 3, URN: thingURN, Goal: goal, Old: &state, Provider: h.toy(), Seed: seedOf(thingURN),
				}},
			})
			planned := out.Plans
			if err != nil || len(planned) != 1 || planned[0].Error != "" || planned[0].Diff.Change != c.change ||
				planned[0].Op != 3 {
				t.Fatalf("%+v %v", planned, err)
			}
			if c.inputs != nil && !h.values(planned[0].Inputs).DeepEquals(c.inputs) {
				t.Errorf("inputs: %v", h.values(planned[0].Inputs))
			}
		})
	}
}

func seedText() string {
	const hex = "0123456789abcdef"
	var text []byte
	for _, b := range seedOf(thingURN)[:4] {
		text = append(text, hex[b>>4], hex[b&15])
	}
	return string(text)
}

func TestANewProviderSaysWhetherItCanGoOn(t *testing.T) {
	h := bench(t, nil)
	old, same, other := *h.toy(), *h.toy(), *h.toy()
	same.Ref = strings.Replace(same.Ref, "1234", "5678", 1)
	other.Ref, other.Inputs = same.Ref, h.bag(texts("region", "south"))
	for want, new := range map[bool]engine.Provider{false: same, true: other} {
		got, err := call[engine.ProviderDiffed](h, h.acts.CompareProviders, deployments.CompareInput{
			Update: h.update, Base: h.base, Compare: engine.Compare{Op: 1, Old: old, New: new},
		})
		if err != nil || got.Replace != want || got.Error != "" {
			t.Errorf("%v: %+v %v", want, got, err)
		}
	}
}
