package statestore_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// imported imports a deployment with these resources and pending operations, and opens what was written.
func imported(t *testing.T, resources, pending string) *statestore.Checkpoint {
	t.Helper()
	s := newStack(t, &bucket.Memory{})
	d := apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage(
		`{"manifest":{"plugins":[{"name":"cloud","type":"resource","version":"1.2.3"}]},"resources":[` + resources +
			`],"pending_operations":[` + pending + `]}`)}
	version, err := s.Import(t.Context(), statestore.Exchange{Stack: dev}, d)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Checkpoint(t.Context(), dev, version, deployments.SecretsProvider{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const (
	cloudProvider = `{"urn":"urn:pulumi:dev::web::pulumi:providers:cloud::default","custom":true,"id":"p-1",` +
		`"type":"pulumi:providers:cloud","inputs":{"region":"x"}}`
	unprovidedBucket = `{"urn":"urn:pulumi:dev::web::cloud:index:Bucket::b","custom":true,"id":"b-1","type":"cloud:index:Bucket"}`
)

func TestTheInputsOfAProviderAreTakenForItsMissingOutputs(t *testing.T) {
	c := imported(t, cloudProvider, "")
	state := c.States()[0]
	if state.Outputs.Empty() || !state.Outputs.Same(state.Inputs) {
		t.Fatalf("the outputs are %+v", state.Outputs)
	}
	values, err := c.Values(state.Outputs.Ref)
	if err != nil || values["region"].StringValue() != "x" {
		t.Errorf("%v %v", values, err)
	}
}

func TestThePackagesOfResourcesWithoutAProviderAreKnown(t *testing.T) {
	reference := `{"urn":"urn:pulumi:dev::web::pulumi:pulumi:StackReference::r","custom":true,"external":true,"id":"r","type":"pulumi:pulumi:StackReference"}`
	function := `{"urn":"urn:pulumi:dev::web::an::Function::f","custom":true,"id":"f","type":"an::Function"}`
	component := `{"urn":"urn:pulumi:dev::web::my:Comp::c","custom":false,"type":"my:Comp"}`
	c := imported(t, strings.Join([]string{unprovidedBucket, function, component, reference}, ","), "")
	want := []statestore.Plugin{{Package: "an"}, {Package: "cloud", Version: "1.2.3"}}
	if got := c.PackagesWithoutProvider(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestWhetherAPendingCreateWasAnsweredIsStoredAndReadFromOlderStates(t *testing.T) {
	bucket := func(id string) string { return strings.Replace(unprovidedBucket, `"id":"b-1"`, `"id":"`+id+`"`, 1) }
	for name, c := range map[string]struct {
		operation string
		done      bool
	}{
		"a create without an id":                   {`{"type":"creating","resource":` + bucket("") + `}`, false},
		"a create that was stored with its answer": {`{"type":"creating","resource":` + bucket("b-2") + `}`, true},
		"a provider, which has its id beforehand":  {`{"type":"creating","resource":` + cloudProvider + `}`, false},
		"an update": {`{"type":"updating","resource":` + bucket("b-2") + `}`, false},
		"what says that it was not answered": {`{"type":"creating","done":false,"resource":` + bucket("b-2") + `}`,
			false},
		"a provider that was answered": {`{"type":"creating","done":true,"resource":` + cloudProvider + `}`,
			true},
	} {
		t.Run(name, func(t *testing.T) {
			pending := imported(t, "", c.operation).Pending() // what is read was written anew
			if len(pending) != 1 || pending[0].Done != c.done {
				t.Errorf("%+v", pending)
			}
		})
	}
}

func TestACheckpointNeverSaysThatAValueIsNotKnown(t *testing.T) {
	const unknown = `"04da6b54-80e4-46f7-96ec-b56ff0331ba9"`
	s := newStack(t, &bucket.Memory{})
	stack := `{"urn":"urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev","custom":false,"type":"pulumi:pulumi:Stack","outputs":{"n":` +
		unknown + `,"deep":{"list":[1,` + unknown + `]},"kept":"x"}}`
	d := apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage(`{"resources":[` + stack + `]}`)}
	if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev}, d); err != nil {
		t.Fatal(err)
	}
	out, err := s.Export(t.Context(), statestore.Exchange{Stack: dev}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out.Deployment), unknown) || !strings.Contains(string(out.Deployment),
		`"outputs":{"kept":"x"}`) {
		t.Errorf("%s", out.Deployment)
	}
}
