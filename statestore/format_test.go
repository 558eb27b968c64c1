package statestore_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	thingURN    = "urn:pulumi:dev::web::cloud:index:Thing::"
	providerURN = "urn:pulumi:dev::web::pulumi:providers:cloud::p"
	// provided is a provider; a resource names it as providerRef.
	provided    = `{"urn":"` + providerURN + `","custom":true,"type":"pulumi:providers:cloud","id":"1"}`
	providerRef = providerURN + "::1"
)

// everyField has a value of each field of apitype.ResourceV3, by its JSON name.
var everyField = map[string]string{
	"urn": `"` + thingURN + `x"`, "custom": `true`, "delete": `true`, "id": `"i-x"`, "type": `"cloud:index:Thing"`,
	"inputs": `{"size":1}`, "outputs": `{"size":1,"arn":"x"}`,
	"parent":  `"urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev"`,
	"protect": `true`, "taint": `true`, "external": `true`, "dependencies": `["` + thingURN + `a"]`,
	"initErrors": `["not ready"]`, "provider": `"` + providerRef + `"`,
	"propertyDependencies": `{"size":["` + thingURN + `a"]}`, "pendingReplacement": `true`,
	"additionalSecretOutputs": `["arn"]`, "aliases": `["` + thingURN + `old"]`,
	"customTimeouts": `{"create":90,"delete":5,"read":3,"update":60}`, "importID": `"imported"`,
	"retainOnDelete": `true`, "deletedWith": `"` + thingURN + `a"`, "replaceWith": `["` + thingURN + `a"]`,
	"created": `"2024-05-06T07:08:09.1Z"`, "modified": `"2024-05-06T07:08:10Z"`,
	"sourcePosition": `"project:///index.ts#1,2"`, "stackTrace": `[{"sourcePosition":"project:///index.ts#3,4"}]`,
	"ignoreChanges": `["tags"]`, "hideDiff": `["a.b[0]"]`, "replaceOnChanges": `["name"]`,
	"replacementTrigger": `{"t":1}`, "refreshBeforeUpdate": `true`, "viewOf": `"` + thingURN + `a"`,
	"resourceHooks": `{"before-create":["h"]}`, "extensionRef": `"ext"`, "snippetID": `"s1"`,
}

// everyPart has a value of each field of apitype.DeploymentV3 but its resources, which have a test of their own, and
// what the writer of a deployment sets itself.
var everyPart = map[string]string{
	"manifest": `{"time":"2026-01-02T03:04:05Z","magic":"","version":"","plugins":[{"name":"cloud","path":"","type":` +
		`"resource","version":"1.2.3"}]}`,
	"snippets": `[{"uuid":"s1","name":"n","type":"cloud:index:Thing","code":"size = 1","descriptor":{"name":"cloud"},` +
		`"references":{"a":"` + thingURN + `a"}}]`,
	"extensions": `{"ext":{"name":"cloud","version":"1.2.3","value":"AQI="}}`,
}

// jsonNames lists the fields of a struct by their JSON names.
func jsonNames(of reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// object writes a JSON object.
func object(fields map[string]string) string {
	var out []string
	for name, value := range fields {
		out = append(out, fmt.Sprintf("%q:%s", name, value))
	}
	slices.Sort(out)
	return "{" + strings.Join(out, ",") + "}"
}

func TestEveryFieldOfADeploymentIsKeptWhenItsResourcesChange(t *testing.T) {
	for _, name := range jsonNames(reflect.TypeFor[apitype.ResourceV3]()) {
		if everyField[name] == "" {
			t.Fatalf("there is no value for the field %s of a resource", name)
		}
	}
	for _, name := range jsonNames(reflect.TypeFor[apitype.DeploymentV3]()) {
		written := slices.Contains([]string{"resources", "pending_operations", "secrets_providers", "metadata"}, name)
		if everyPart[name] == "" && !written {
			t.Fatalf("there is no value for the part %s of a deployment", name)
		}
	}
	whole := object(everyField)
	a := strings.Replace(thingState, `"id":"i"`, `"id":"i","provider":"`+providerRef+`"`, 1)
	parts := map[string]string{
		"resources":          "[" + strings.Join([]string{rootState, provided, a, whole}, ",") + "]",
		"pending_operations": `[{"resource":` + whole + `,"type":"updating"}]`,
	}
	for name, value := range everyPart {
		parts[name] = value
	}
	s, x := newStack(t, &bucket.Memory{}), statestore.Exchange{Stack: dev}
	in := apitype.UntypedDeployment{Version: 4, Features: allFeatures(), Deployment: json.RawMessage(object(parts))}
	if _, err := s.Import(t.Context(), x, in); err != nil {
		t.Fatal(err)
	}
	// the resource and all others are written anew, in all their fields
	change := func(states []engine.State) ([]engine.State, error) {
		for i := range states {
			states[i].SourcePosition += "#"
		}
		return states, nil
	}
	if _, err := s.Edit(t.Context(), x, change); err != nil {
		t.Fatal(err)
	}
	out, err := s.Export(t.Context(), x, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if out.Version != 4 || !slices.Equal(out.Features, allFeatures()) {
		t.Errorf("it has version %d and the features %q", out.Version, out.Features)
	}
	var got map[string]any
	decode(t, string(out.Deployment), &got)
	resource := got["resources"].([]any)[3].(map[string]any)
	operation := got["pending_operations"].([]any)[0].(map[string]any)["resource"].(map[string]any)
	for name, value := range everyField {
		want := decoded(t, value)
		if !reflect.DeepEqual(operation[name], want) {
			t.Errorf("the field %s of a pending operation is %v, and was %v", name, operation[name], want)
		}
		if name == "sourcePosition" {
			want = want.(string) + "#"
		}
		if !reflect.DeepEqual(resource[name], want) {
			t.Errorf("the field %s is %v, and was %v", name, resource[name], want)
		}
	}
	if plugins := got["manifest"].(map[string]any)["plugins"]; !reflect.DeepEqual(plugins,
		decoded(t, everyPart["manifest"]).(map[string]any)["plugins"]) {
		t.Errorf("the plugins are %v", plugins)
	}
	for _, name := range []string{"snippets", "extensions"} {
		if want := decoded(t, everyPart[name]); !reflect.DeepEqual(got[name], want) {
			t.Errorf("the %s are %v, and were %v", name, got[name], want)
		}
	}
}

func decode(t *testing.T, text string, value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), value); err != nil {
		t.Fatal(err)
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	decode(t, text, &value)
	return value
}

// featureFields has the field of a resource that needs a feature of its readers, by feature. "byteString" belongs to
// values.
var featureFields = map[string]string{
	"refreshBeforeUpdate": "refreshBeforeUpdate", "views": "viewOf", "hooks": "resourceHooks", "taint": "taint",
	"replaceWith": "replaceWith", "snippets-prototype": "snippetID", "extensionParameterization": "extensionRef",
}

// allFeatures are the features that everyField needs, sorted.
func allFeatures() (names []string) {
	for name := range featureFields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestADeploymentNamesTheFeaturesThatItsReaderNeeds(t *testing.T) {
	s, x := newStack(t, &bucket.Memory{}), statestore.Exchange{Stack: dev}
	if known := slices.Sorted(slices.Values(statestore.FeatureNames())); !slices.Equal(known,
		slices.Sorted(slices.Values(append(allFeatures(), "byteString")))) {
		t.Errorf("the features are %q", known)
	}
	for _, feature := range append(allFeatures(), "") {
		with := map[string]string{"urn": everyField["urn"], "type": everyField["type"], "custom": "true", "id": `"i-x"`}
		in := deployment([]string{rootState, thingState}, nil)
		if feature != "" {
			field := featureFields[feature]
			with[field] = everyField[field]
			in.Version, in.Features = 4, []string{feature}
		}
		in.Deployment = deployment([]string{rootState, thingState, object(with)}, nil).Deployment
		if _, err := s.Import(t.Context(), x, in); err != nil {
			t.Fatalf("%s: %v", feature, err)
		}
		out, err := s.Export(t.Context(), x, 0, false)
		if err != nil || out.Version != in.Version || !slices.Equal(out.Features, in.Features) {
			t.Errorf("%q: it has version %d and the features %q: %v", feature, out.Version, out.Features, err)
		}
		in.Features = append(in.Features, "teleport")
		if _, err := s.Import(t.Context(), x, in); deployments.CodeOf(err) != deployments.CodeInvalid ||
			!strings.Contains(err.Error(), `"teleport"`) {
			t.Errorf("%q: with an unknown feature: %v", feature, err)
		}
	}
}

func TestAStringThatIsNoUTF8StaysAsItIsAndNamesItsFeature(t *testing.T) {
	const inputs = `{"key":{"4dabf18193072939515e22adb298388d":"803fd3297a5875dc03ca845dda5d2a98","value":"/wB4"}}`
	with := map[string]string{"urn": everyField["urn"], "type": everyField["type"], "custom": "true", "id": `"i-x"`,
		"inputs": inputs}
	s, x := newStack(t, &bucket.Memory{}), statestore.Exchange{Stack: dev}
	in := deployment([]string{rootState, thingState, object(with)}, nil)
	in.Version, in.Features = 4, []string{"byteString"}
	if _, err := s.Import(t.Context(), x, in); err != nil {
		t.Fatal(err)
	}
	change := func(states []engine.State) ([]engine.State, error) {
		states[2].SourcePosition = "project:///main.ts#1"
		return states, nil
	}
	if _, err := s.Edit(t.Context(), x, change); err != nil {
		t.Fatal(err)
	}
	out, err := s.Export(t.Context(), x, 0, false)
	if err != nil || out.Version != 4 || !slices.Equal(out.Features, in.Features) {
		t.Errorf("it has version %d and the features %q: %v", out.Version, out.Features, err)
	}
	var got struct {
		Resources []struct{ Inputs any } `json:"resources"`
	}
	if decode(t, string(out.Deployment), &got); !reflect.DeepEqual(got.Resources[2].Inputs, decoded(t, inputs)) {
		t.Errorf("the inputs are %v", got.Resources[2].Inputs)
	}
}

// TestAWholeDeploymentIsValidOrRefused has a deployment for each invariant of a state, and for each exception.
func TestAWholeDeploymentIsValidOrRefused(t *testing.T) {
	thing := func(name string, more ...string) string {
		fields := map[string]string{"urn": `"` + thingURN + name + `"`, "type": `"cloud:index:Thing"`, "custom": "true",
			"id": `"` + name + `"`}
		for i := 0; i < len(more); i += 2 {
			if fields[more[i]] = more[i+1]; more[i+1] == "" {
				delete(fields, more[i])
			}
		}
		return object(fields)
	}
	uses := func(name string) string { return `"` + thingURN + name + `"` }
	creating := func(r string) string { return `{"type":"creating","resource":` + r + `}` }
	list := func(items ...string) []string { return items }
	for name, c := range map[string]struct {
		states, pending []string
		says            string // empty: it is valid
	}{
		"no URN":         {states: list(thing("a", "urn", "")), says: "no URN"},
		"an invalid URN": {states: list(thing("a", "urn", `"urn:pulumi:dev"`)), says: "URN is not valid"},
		"no type":        {states: list(thing("a", "type", "")), says: "no type"},
		"a type unlike its URN's": {states: list(thing("a", "type", `"cloud:index:Other"`)),
			says: "URN does not say"},
		"a component with an id":     {states: list(thing("a", "custom", "false")), says: "it is a component"},
		"no id":                      {states: list(thing("a", "id", "")), says: "it has no id"},
		"none, pending replacement":  {states: list(thing("a", "id", "", "pendingReplacement", "true"))},
		"a provider":                 {states: list(provided, thing("a", "provider", `"`+providerRef+`"`))},
		"a provider that is missing": {states: list(thing("a", "provider", `"`+providerRef+`"`)), says: "its provider"},
		"a provider that stands after": {states: list(thing("a", "provider", `"`+providerRef+`"`), provided),
			says: "its provider"},
		"a provider with another id": {states: list(provided, thing("a", "provider", `"`+providerURN+`::2"`)),
			says: "its provider"},
		"no provider, pending replacement": {states: list(thing("a", "provider", `"`+providerRef+`"`,
			"pendingReplacement", "true"))},
		"a reference that is no provider's": {states: list(thing("a", "provider", `"x"`)), says: "its provider"},
		"a parent":                          {states: list(thing("a"), thing("b", "parent", uses("a")))},
		"a parent that is missing":          {states: list(thing("b", "parent", uses("a"))), says: "it refers to"},
		"a parent that stands after": {states: list(thing("b", "parent", uses("a")), thing("a")),
			says: "it refers to"},
		"itself as parent": {states: list(thing("a", "parent", uses("a"))), says: "it refers to"},
		"a dependency that is missing": {states: list(thing("b", "dependencies", "["+uses("a")+"]")),
			says: "it refers to"},
		"a dependency that stands after": {states: list(thing("b", "dependencies", "["+uses("a")+"]"), thing("a")),
			says: "it refers to"},
		"a dependency of a property that is missing": {states: list(thing("b", "propertyDependencies",
			`{"size":[`+uses("a")+"]}")), says: "it refers to"},
		"deletedWith what is missing": {states: list(thing("b", "deletedWith", uses("a"))), says: "it refers to"},
		"replaceWith what is missing": {states: list(thing("b", "replaceWith", "["+uses("a")+"]")),
			says: "it refers to"},
		"two live copies": {states: list(thing("a"), thing("a", "id", `"other"`)), says: "more than once"},
		"copies that wait for their deletion": {states: list(thing("a"), thing("a", "id", `"old"`, "delete", "true"),
			thing("a", "id", `"older"`, "delete", "true"))},
		"only such copies": {states: list(thing("a", "id", `"old"`, "delete", "true"),
			thing("a", "id", `"older"`, "delete", "true"))},
		"a copy is enough for a reference": {states: list(thing("a", "delete", "true"),
			thing("b", "parent", uses("a")))},
		"a pending create of what needs what is missing": {states: list(thing("a")),
			pending: list(creating(thing("b", "id", "", "dependencies", "["+uses("gone")+"]")))},
		"a pending operation of no kind": {states: list(thing("a")),
			pending: list(`{"type":"repairing","resource":` + thing("a") + `}`), says: "no kind of operation"},
		"a pending operation on nothing": {states: list(thing("a")), pending: list(creating(thing("a", "urn", ""))),
			says: "no URN"},
		"a timeout that cannot be": {states: list(thing("a", "customTimeouts", `{"create":-1}`)),
			says: "custom timeout"},
		"an alias that is no URN": {states: list(thing("a", "aliases", `["old"]`)), says: "not a valid URN"},
	} {
		t.Run(name, func(t *testing.T) {
			s, x := newStack(t, &bucket.Memory{}), statestore.Exchange{Stack: dev}
			version, err := s.Import(t.Context(), x, deployment(c.states, c.pending))
			if c.says != "" {
				if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkpoint, err := s.Checkpoint(t.Context(), dev, version, x.Secrets)
			if err != nil {
				t.Fatal(err)
			}
			if err := snapshot.Verify(checkpoint.States()); err != nil || checkpoint.CheckIntegrity() != nil {
				t.Errorf("it was taken, and is not valid: %v, %v", err, checkpoint.CheckIntegrity())
			}
		})
	}
}
