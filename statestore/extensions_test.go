package statestore_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// extended is a deployment whose resource belongs to an extension; the deployment has that and another one.
func extended(t *testing.T) apitype.UntypedDeployment {
	t.Helper()
	other := strings.NewReplacer("::a", "::b", `"id":"i"`, `"id":"j"`).Replace(thingState)
	in := deployment([]string{rootState, strings.Replace(thingState, `"id":"i"`, `"id":"i","extensionRef":"e1"`, 1),
		other}, nil)
	in.Version, in.Features = 4, []string{"extensionParameterization"}
	in.Deployment = json.RawMessage(strings.Replace(string(in.Deployment), `"resources"`, `"extensions":{`+
		`"e1":{"name":"gateway","version":"1.2.3","value":"AQI="},"e2":{"name":"x","version":"1.0.0","value":""}},`+
		`"resources"`, 1))
	return in
}

// extensionsOf lists the extensions of a stack's newest state.
func extensionsOf(t *testing.T, s *statestore.Store, x statestore.Exchange) []string {
	t.Helper()
	out, err := s.Export(t.Context(), x, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	var d apitype.DeploymentV3
	decode(t, string(out.Deployment), &d)
	var refs []string
	for ref := range maps.Keys(d.Extensions) {
		refs = append(refs, string(ref))
	}
	slices.Sort(refs)
	return refs
}

func TestAStateKeepsTheExtensionsThatItsResourcesName(t *testing.T) {
	s, x := newStack(t, &bucket.Memory{}), statestore.Exchange{Stack: dev}
	version, err := s.Import(t.Context(), x, extended(t))
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := s.Checkpoint(t.Context(), dev, version, x.Secrets)
	if err != nil {
		t.Fatal(err)
	}
	bag := checkpoint.States()[1].Extension
	if values, err := checkpoint.Values(bag.Ref); err != nil || bag.Digest != "e1" ||
		values["name"].StringValue() != "gateway" || values["value"].StringValue() != "AQI=" {
		t.Errorf("%+v is %v: %v", bag, values, err)
	}
	change := func(states []engine.State) ([]engine.State, error) {
		states[1].Protect = true
		return states, nil
	}
	if _, err := s.Edit(t.Context(), x, change); err != nil {
		t.Fatal(err)
	}
	if got := extensionsOf(t, s, x); !slices.Equal(got, []string{"e1"}) {
		t.Errorf("the state has the extensions %q", got)
	}
}

func TestAStateThatLacksAnExtensionSaysSoWhereItIsNeeded(t *testing.T) {
	s, x := newStack(t, &bucket.Memory{}), statestore.Exchange{Stack: dev}
	in := extended(t)
	in.Deployment = json.RawMessage(strings.Replace(string(in.Deployment), `"e1":{`, `"e3":{`, 1))
	version, err := s.Import(t.Context(), x, in)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint, err := s.Checkpoint(t.Context(), dev, version, x.Secrets)
	if err != nil {
		t.Fatal(err)
	}
	_, err = checkpoint.Values(checkpoint.States()[1].Extension.Ref)
	if deployments.CodeOf(err) != deployments.CodeFormat || !strings.Contains(err.Error(), `no extension "e1"`) {
		t.Errorf("it says %v", err)
	}
}

func TestAMovedResourceTakesItsExtensionAlong(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	prod := deployments.StackName{Organization: "organization", Project: "web", Stack: "prod"}
	if err := s.CreateStack(t.Context(), prod, nil); err != nil {
		t.Fatal(err)
	}
	from, to := statestore.Exchange{Stack: dev}, statestore.Exchange{Stack: prod}
	if _, err := s.Import(t.Context(), from, extended(t)); err != nil {
		t.Fatal(err)
	}
	request := deployments.MoveRequest{From: dev, To: prod,
		Resources: []string{"urn:pulumi:dev::web::cloud:index:Thing::a"}}
	if _, err := s.Move(t.Context(), from, to, request); err != nil {
		t.Fatal(err)
	}
	if got := extensionsOf(t, s, to); !slices.Equal(got, []string{"e1"}) {
		t.Errorf("the other stack has the extensions %q", got)
	}
	if got := extensionsOf(t, s, from); len(got) > 0 {
		t.Errorf("the first stack still has the extensions %q", got)
	}
}
