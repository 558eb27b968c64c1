package statestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func taintAll(states []engine.State) ([]engine.State, error) {
	for i := range states {
		states[i].Taint = states[i].Custom
	}
	return states, nil
}

// untainted returns a deployment without the marks of tainted resources.
func untainted(t *testing.T, d apitype.UntypedDeployment) apitype.UntypedDeployment {
	t.Helper()
	fields := decoded(t, string(d.Deployment)).(map[string]any)
	for _, r := range fields["resources"].([]any) {
		delete(r.(map[string]any), "taint")
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	d.Deployment = text
	return d
}

func TestAnEditKeepsCiphertextsAndWhatItDoesNotChange(t *testing.T) {
	s, stock := newStack(t, &bucket.Memory{}), golden(t, "stock.json")
	x := statestore.Exchange{Stack: dev, Secrets: provider(t, stock)}
	if _, err := s.Import(t.Context(), x, stock); err != nil {
		t.Fatal(err)
	}
	version, err := s.Edit(t.Context(), x, taintAll)
	if err != nil || version != 2 {
		t.Fatalf("version %d, %v", version, err)
	}
	got, err := s.Export(t.Context(), x, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got.Features, "taint") || !strings.Contains(string(got.Deployment), `"taint":true`) {
		t.Errorf("nothing is tainted: %s", got.Deployment)
	}
	wantSame(t, untainted(t, got), untainted(t, stock)) // ciphertexts included

	if version, err := s.Edit(t.Context(), x, taintAll); err != nil || version != 2 {
		t.Errorf("an edit that changes nothing makes version %d, %v", version, err)
	}
}

func TestASecretThatDoesNotChangeKeepsItsCiphertextBesideOnesThatDo(t *testing.T) {
	s, x := newStack(t, &bucket.Memory{}), statestore.Exchange{Stack: dev}
	const secret = `{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","plaintext":"\"sesame\""}`
	thing := strings.Replace(thingState, `"id":"i"`, `"id":"i","inputs":{"size":1,"password":`+secret+`}`, 1)
	if _, err := s.Import(t.Context(), x, deployment([]string{rootState, thing}, nil)); err != nil {
		t.Fatal(err)
	}
	ciphertexts := func() map[string]any {
		d, err := s.Export(t.Context(), x, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		resources := decoded(t, string(d.Deployment)).(map[string]any)["resources"].([]any)
		out := map[string]any{}
		for name, value := range resources[1].(map[string]any)["inputs"].(map[string]any) {
			if fields, ok := value.(map[string]any); ok {
				out[name] = fields["ciphertext"]
			}
		}
		return out
	}
	before := ciphertexts()
	codec := bags.Codec{Key: make([]byte, 32)}
	inputs, err := codec.Encode(t.Context(), resource.PropertyMap{
		"size": resource.NewProperty(2.0), "password": resource.MakeSecret(resource.NewProperty("sesame")),
		"other": resource.MakeSecret(resource.NewProperty("another")),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Edit(t.Context(), x, func(states []engine.State) ([]engine.State, error) {
		states[1].Inputs = inputs
		return states, nil
	}); err != nil {
		t.Fatal(err)
	}
	after := ciphertexts()
	if before["password"] == nil || after["password"] != before["password"] {
		t.Errorf("its ciphertext is %v, and was %v", after["password"], before["password"])
	}
	if after["other"] == nil || after["other"] == after["password"] {
		t.Errorf("the ciphertexts are %v", after)
	}
}

func TestARenameFollowsReferencesInValuesAndViews(t *testing.T) {
	const (
		named  = "urn:pulumi:dev::web::cloud:index:Thing::a"
		former = `"` + named + `"`
	)
	reference := func(quote string) string {
		return strings.ReplaceAll(`{"4dabf18193072939515e22adb298388d":"5cf8f73096256a8f31e491e813e4eb8e","urn":`+former+
			`,"id":"i"}`, `"`, quote)
	}
	hidden := `{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","plaintext":"` +
		reference(`\"`) + `"}`
	other := strings.NewReplacer(`Thing::a"`, `Thing::b","viewOf":`+former,
		`"id":"i"`, `"id":"j","inputs":{"of":`+reference(`"`)+`,"hidden":`+hidden+`}`).Replace(thingState)
	s, x := newStack(t, &bucket.Memory{}), statestore.Exchange{Stack: dev}
	if _, err := s.Import(t.Context(), x, deployment([]string{rootState, thingState, other}, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Edit(t.Context(), x, func(states []engine.State) ([]engine.State, error) {
		states[1].URN = states[1].URN.Rename("renamed")
		states[2].ViewOf = states[1].URN
		return states, nil
	}); err != nil {
		t.Fatal(err)
	}
	d, err := s.Export(t.Context(), x, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	text := string(d.Deployment)
	if strings.Contains(text, "Thing::a") || strings.Count(text, "Thing::renamed") != 4 {
		t.Errorf("the state is %s", text)
	}
}

func TestAnEditThatWouldBreakTheStateIsRefused(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	x := statestore.Exchange{Stack: dev}
	if _, err := s.Import(t.Context(), x, deployment([]string{rootState, thingState}, nil)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func([]engine.State) ([]engine.State, error)
		code   deployments.Code
	}{
		"listed twice": {func(s []engine.State) ([]engine.State, error) { return append(s, s[1]), nil },
			deployments.CodeInvalid},
		"forgets all": {func(s []engine.State) ([]engine.State, error) { return s[:1], nil },
			deployments.CodeUnconfirmed},
		"fails": {func([]engine.State) ([]engine.State, error) {
			return nil, deployments.Errorf(deployments.CodeNotFound, "no such resource")
		}, deployments.CodeNotFound},
	} {
		if _, err := s.Edit(t.Context(), x, c.change); deployments.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h, err := s.Head(t.Context(), dev); err != nil || h.Version != 1 || h.Active != nil {
		t.Errorf("the stack is at %+v, %v", h, err)
	}
}

// TestAChangeOfAnOlderVersionNeverReplacesANewerOne makes a version at each moment at which an edit or an import could
// overwrite it.
func TestAChangeOfAnOlderVersionNeverReplacesANewerOne(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	plain := statestore.Exchange{Stack: dev}
	both := deployment([]string{rootState, thingState}, nil)
	first, err := s.Import(t.Context(), plain, both)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Edit(t.Context(), plain, taintAll); err != nil {
		t.Fatal(err)
	}
	stale := plain
	stale.Base = &first
	if _, err := s.Edit(t.Context(), stale, taintAll); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("an edit of an old version: %v", err)
	}
	if _, err := s.Import(t.Context(), stale, both); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("an import made from an old version: %v", err)
	}
	late := plain
	late.Reserve = func(context.Context, deployments.StackName) (int, error) {
		version, err := s.Import(t.Context(), plain, both)
		return version + 1, err
	}
	clear := func(states []engine.State) ([]engine.State, error) {
		states[1].Protect = true
		return states, nil
	}
	if _, err := s.Edit(t.Context(), late, clear); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("an edit while another version is made: %v", err)
	}
	if h, err := s.Head(t.Context(), dev); err != nil || h.Version != 3 || h.Active != nil {
		t.Errorf("the stack is at %+v, %v", h, err)
	}
}

// TestAMoveThatIsRefusedWritesNeitherStack has moves that only the second of the two stacks refuses.
func TestAMoveThatIsRefusedWritesNeitherStack(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	prod := deployments.StackName{Organization: "organization", Project: "web", Stack: "prod"}
	if err := s.CreateStack(t.Context(), prod, nil); err != nil {
		t.Fatal(err)
	}
	from, to := statestore.Exchange{Stack: dev}, statestore.Exchange{Stack: prod}
	if _, err := s.Import(t.Context(), from, deployment([]string{rootState, thingState}, nil)); err != nil {
		t.Fatal(err)
	}
	request := deployments.MoveRequest{From: dev, To: prod,
		Resources: []string{"urn:pulumi:dev::web::cloud:index:Thing::a"}}
	gone := errors.New("its workflow cannot be reached")
	unreachable := func(context.Context, deployments.StackName) (int, error) { return 0, gone }
	for name, c := range map[string]struct {
		from, to statestore.Exchange
		refused  func(error) bool
	}{
		"the last resources of the source": {from, to, func(err error) bool {
			return deployments.CodeOf(err) == deployments.CodeUnconfirmed
		}},
		"the source has no version": {statestore.Exchange{Stack: dev, Forget: true, Reserve: unreachable}, to, nil},
		"the destination has no version": {statestore.Exchange{Stack: dev, Forget: true},
			statestore.Exchange{Stack: prod, Reserve: unreachable}, nil},
	} {
		if c.refused == nil {
			c.refused = func(err error) bool { return errors.Is(err, gone) }
		}
		if _, err := s.Move(t.Context(), c.from, c.to, request); !c.refused(err) {
			t.Errorf("%s: %v", name, err)
		}
		for stack, want := range map[deployments.StackName]int{dev: 1, prod: 0} {
			if h, err := s.Head(t.Context(), stack); err != nil || h.Version != want || h.Active != nil {
				t.Errorf("%s: %s is at %+v, %v", name, stack, h, err)
			}
		}
	}
	from.Forget = true
	if moved, err := s.Move(t.Context(), from, to, request); err != nil || moved.FromVersion == 0 || moved.ToVersion == 0 {
		t.Errorf("%+v %v", moved, err)
	}
}

func TestAMoveEncryptsSecretsForTheOtherStack(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	prod := deployments.StackName{Organization: "organization", Project: "web", Stack: "prod"}
	if err := s.CreateStack(t.Context(), prod, nil); err != nil {
		t.Fatal(err)
	}
	secret := strings.Replace(thingState, `"id":"i"`, `"id":"i","inputs":{"password":{`+
		`"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","plaintext":"\"sesame\""}}`, 1)
	other := strings.NewReplacer("::a", "::b", `"id":"i"`, `"id":"j"`).Replace(thingState)
	from, to := statestore.Exchange{Stack: dev}, statestore.Exchange{Stack: prod}
	if _, err := s.Import(t.Context(), from, deployment([]string{rootState, secret, other}, nil)); err != nil {
		t.Fatal(err)
	}
	request := deployments.MoveRequest{From: dev, To: prod,
		Resources: []string{"urn:pulumi:dev::web::cloud:index:Thing::a"}}
	for range 2 { // the second time there is nothing left to move, as after an interruption between the two
		moved, err := s.Move(t.Context(), from, to, request)
		if err != nil {
			t.Fatal(err)
		}
		if moved.ToVersion != 1 {
			t.Errorf("it is version %d of the other stack", moved.ToVersion)
		}
		if _, err := s.Restore(t.Context(), from, 1); err != nil {
			t.Fatal(err)
		}
	}
	for show, want := range map[bool]string{true: `sesame`, false: `ciphertext`} {
		d, err := s.Export(t.Context(), to, 0, show)
		if err != nil || !strings.Contains(string(d.Deployment), want) ||
			!strings.Contains(string(d.Deployment), "urn:pulumi:prod::web::cloud:index:Thing::a") {
			t.Errorf("with secrets %v: %s, %v", show, d.Deployment, err)
		}
	}
	if _, err := s.Move(t.Context(), from, to, request); err != nil {
		t.Fatal(err)
	}
	if d, err := s.Export(t.Context(), from, 0, false); err != nil || strings.Contains(string(d.Deployment), "::a") {
		t.Errorf("the first stack still has it: %s, %v", d.Deployment, err)
	}
}
