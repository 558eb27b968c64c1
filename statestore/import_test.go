package statestore_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
	"github.com/klauspost/compress/zstd"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	rootState  = `{"urn":"urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev","custom":false,"type":"pulumi:pulumi:Stack"}`
	thingState = `{"urn":"urn:pulumi:dev::web::cloud:index:Thing::a","custom":true,"type":"cloud:index:Thing","id":"i"}`
)

// deployment has these states and pending operations.
func deployment(states, pending []string) apitype.UntypedDeployment {
	return apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage(
		`{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"resources":[` +
			strings.Join(states, ",") +
			`],"pending_operations":[` + strings.Join(pending, ",") + `]}`)}
}

func TestAnImportThatForgetsEverythingNeedsConsent(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	x := statestore.Exchange{Stack: dev}
	null := apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage("null")}
	if _, err := s.Import(t.Context(), x, null); err != nil {
		t.Fatalf("there is nothing to forget yet: %v", err)
	}
	version, err := s.Import(t.Context(), x, deployment([]string{rootState, thingState}, nil))
	if err != nil {
		t.Fatal(err)
	}
	other := strings.NewReplacer("::a", "::b", `"id":"i"`, `"id":"other"`).Replace(thingState)
	namesake := strings.Replace(thingState, `"id":"i"`, `"id":"other"`, 1)
	for name, empty := range map[string]apitype.UntypedDeployment{
		"something else":                 deployment([]string{rootState, other}, nil),
		"another thing by the same name": deployment([]string{rootState, namesake}, nil),
		"null":                           null, "no deployment": {Version: 3}, "no resources": deployment(nil, nil),
		"the root alone": deployment([]string{rootState}, nil),
	} {
		_, err := s.Import(t.Context(), x, empty)
		if deployments.CodeOf(err) != deployments.CodeUnconfirmed ||
			!strings.Contains(err.Error(), "1 resource of organization/web/dev (such as "+
				"urn:pulumi:dev::web::cloud:index:Thing::a) would be forgotten") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h, err := s.Head(t.Context(), dev); err != nil || h.Version != version || h.Resources != 2 || h.Active != nil {
		t.Errorf("the stack is at %+v, %v", h, err)
	}
	if _, err := s.Import(t.Context(), x, deployment([]string{rootState, strings.Replace(thingState, "::a", "::b", 1)},
		nil)); err != nil {
		t.Errorf("the same thing by another name: %v", err)
	}
	x.Forget = true
	if _, err := s.Import(t.Context(), x, null); err != nil {
		t.Error(err)
	}
}

func TestARestoreThatForgetsEverythingNeedsConsent(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	x := statestore.Exchange{Stack: dev}
	for _, states := range [][]string{{rootState}, {rootState, thingState},
		{rootState, thingState, strings.NewReplacer("::a", "::b", `"i"`, `"j"`).Replace(thingState)}} {
		if _, err := s.Import(t.Context(), x, deployment(states, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Restore(t.Context(), x, 2); err != nil {
		t.Errorf("a version that has one of them: %v", err)
	}
	_, err := s.Restore(t.Context(), x, 1)
	if deployments.CodeOf(err) != deployments.CodeUnconfirmed || !strings.Contains(err.Error(),
		"1 resource of organization/web/dev") {
		t.Errorf("a version that has none: %v", err)
	}
	x.Forget = true
	if _, err := s.Restore(t.Context(), x, 1); err != nil {
		t.Error(err)
	}
}

func TestAnImportKeepsResourcesThatAnUpdateMadeMeanwhile(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	x := statestore.Exchange{Stack: dev}
	meanwhile := x
	x.Reserve = func(context.Context, deployments.StackName) (int, error) {
		version, err := s.Import(t.Context(), meanwhile, deployment([]string{rootState, thingState}, nil))
		return version + 1, err
	}
	if _, err := s.Import(t.Context(), x, deployment(nil, nil)); deployments.CodeOf(
		err) != deployments.CodeUnconfirmed {
		t.Errorf("got %v", err)
	}
	if h, err := s.Head(t.Context(), dev); err != nil || h.Resources != 2 || h.Active != nil {
		t.Errorf("the stack is at %+v, %v", h, err)
	}
}

func TestAnImportOverADamagedStateNeedsConsentToForgetEverything(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	x := statestore.Exchange{Stack: dev}
	if _, err := s.Import(t.Context(), x, deployment([]string{rootState, thingState}, nil)); err != nil {
		t.Fatal(err)
	}
	const key = "stacks/organization/web/dev/checkpoints/1.json.zst"
	if _, err := objects.Put(t.Context(), key, []byte("damaged"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), x, deployment(nil, nil)); deployments.CodeOf(
		err) != deployments.CodeUnconfirmed {
		t.Errorf("got %v", err)
	}
	if _, err := s.Import(t.Context(), x, deployment([]string{rootState, thingState}, nil)); err != nil {
		t.Errorf("a good state cannot be put in its place: %v", err)
	}
}

// refusedStates are states that no update could carry, and what is said of each.
var refusedStates = map[string]struct {
	states, pending []string
	says            string
}{
	"no URN": {states: []string{strings.Replace(thingState,
		"urn:pulumi:dev::web::cloud:index:Thing::a", "", 1)},
		says: `resource number 1 (of type "cloud:index:Thing", id "i"): it has no URN`},
	"a URN that is none": {states: []string{strings.Replace(thingState, "urn:pulumi:dev::", "", 1)},
		says: "its URN is not valid"},
	"a custom type of two": {states: []string{strings.ReplaceAll(thingState, "cloud:index:Thing", "cloud:Thing")},
		says: `Thing::a: it is a custom resource, and its type "cloud:Thing" is not of the form`},
	"no type": {states: []string{strings.Replace(thingState, `"type":"cloud:index:Thing"`,
		`"type":""`, 1)}, says: "Thing::a: it has no type"},
	"a provider that is none": {states: []string{strings.Replace(thingState, `"id"`, `"provider":"cloud","id"`, 1)},
		says: "Thing::a: its provider"},
	"a provider by another URN": {states: []string{thingState, strings.Replace(
		strings.ReplaceAll(thingState, "::a", "::b"), `"id"`,
		`"provider":"urn:pulumi:dev::web::cloud:index:Thing::a::i","id"`, 1)}, says: "Thing::b: its provider"},
	"an unknown operation": {pending: []string{`{"type":"repairing","resource":` + thingState + `}`},
		says: `Thing::a: "repairing" is no kind of operation`},
	"an operation on nothing": {pending: []string{
		`{"type":"creating","resource":{"type":"cloud:index:Thing","custom":true}}`},
		says: "pending operation on resource number 1"},
	"an operation of two": {pending: []string{`{"type":"updating","resource":` +
		strings.ReplaceAll(thingState, "cloud:index:Thing", "a:b") + `}`}, says: `"a:b" is not of the form`},
}

func TestAStateThatNoUpdateCouldHandleIsRejectedAtImportAndAtLoad(t *testing.T) {
	for name, c := range refusedStates {
		t.Run(name, func(t *testing.T) {
			objects := &bucket.Memory{}
			s := newStack(t, objects)
			bad := deployment(append([]string{rootState}, c.states...), c.pending)
			says := strings.ReplaceAll(c.says, "resource number 1 (of", "resource number 2 (of")
			if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev},
				bad); deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), says) {
				t.Errorf("import: %v", err)
			}
			if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev},
				deployment([]string{rootState}, nil)); err != nil {
				t.Fatal(err)
			}
			const key = "stacks/organization/web/dev/checkpoints/1.json.zst"
			stored, err := json.Marshal(bad)
			if err != nil {
				t.Fatal(err)
			}
			writer, _ := zstd.NewWriter(nil)
			if _, err := objects.Put(t.Context(), key, writer.EncodeAll(stored, nil),
				bucket.Condition{}); err != nil {
				t.Fatal(err)
			}
			fresh, err := statestore.New(objects, statestore.Options{Master: storetest.Master})
			if err != nil {
				t.Fatal(err)
			}
			if err := fresh.AdoptStack(t.Context(), dev); err != nil {
				t.Fatal(err)
			}
			_, err = fresh.Checkpoint(t.Context(), dev, 1, deployments.SecretsProvider{})
			if deployments.CodeOf(err) != deployments.CodeFormat || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), key) {
				t.Errorf("load: %v", err)
			}
		})
	}
}

func TestAnImportWithImpossibleValuesIsRejected(t *testing.T) {
	with := func(field string) []string {
		return []string{rootState, strings.Replace(thingState, `"id"`, field+`,"id"`, 1)}
	}
	for name, states := range map[string][]string{
		"a timeout before it begins": with(`"customTimeouts":{"create":-1}`),
		"a timeout without end":      with(`"customTimeouts":{"delete":1e300}`),
		"a number out of range":      with(`"customTimeouts":{"create":1e999}`),
		"an alias that is no URN":    with(`"aliases":["a"]`),
		"an unknown id":              {strings.Replace(thingState, `"i"`, `"04da6b54-80e4-46f7-96ec-b56ff0331ba9"`, 1)},
		"a line break":               {strings.Replace(thingState, `Thing::a"`, `Thing::a\nb"`, 1)},
	} {
		s := newStack(t, &bucket.Memory{})
		if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev},
			deployment(states, nil)); deployments.CodeOf(err) != deployments.CodeInvalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAComponentMayHaveATypeOfTwoParts(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	component := `{"urn":"urn:pulumi:dev::web::my:Comp::c","custom":false,"type":"my:Comp"}`
	if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev},
		deployment([]string{rootState, component}, nil)); err != nil {
		t.Error(err)
	}
}

func TestAPendingOperationOfAnotherStackIsNotImported(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	pending := `{"type":"creating","resource":` + strings.Replace(thingState, "dev::web", "prod::web", 1) + `}`
	_, err := s.Import(t.Context(), statestore.Exchange{Stack: dev}, deployment([]string{rootState}, []string{pending}))
	if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), "another stack") {
		t.Errorf("got %v", err)
	}
}
