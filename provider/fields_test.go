package provider

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestATagSaysWhatAPropertyIs(t *testing.T) {
	type embedded struct {
		Base string `pulumi:"base"`
	}
	type tagged struct {
		embedded
		Plain     string         `pulumi:"plain" doc:"A text."`
		Optional  string         `pulumi:"optional,optional"`
		Secret    string         `pulumi:"secret,secret"`
		Replace   string         `pulumi:"replace,replace"`
		Name      string         `pulumi:"name,autoname,replace"`
		Stable    string         `pulumi:"stable,stable"`
		Inherit   string         `pulumi:"inherit,inherit,secret,optional"`
		Color     string         `pulumi:"color" default:"red"`
		Limits    map[string]int `pulumi:"limits" default:"{\"a\": 1}"`
		Elsewhere string
	}
	want := []field{
		{name: "base"}, {name: "plain", doc: "A text."}, {name: "optional", optional: true},
		{name: "secret", secret: true},
		{name: "replace", replace: true}, {name: "name", autoname: true, replace: true, optional: true},
		{name: "stable", stable: true}, {name: "inherit", inherit: true, secret: true, optional: true},
		{name: "color", def: "red", optional: true}, {name: "limits", def: `{"a": 1}`, optional: true},
	}
	got := objectOf[tagged]().fields
	for i := range got {
		got[i].index, got[i].typ = nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the tags say\n%+v\nand not\n%+v", got, want)
	}
}

// panicOf returns what a function panics with.
func panicOf(f func()) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

func TestATagThatCannotMeanAnythingIsRefusedWhereItIsDeclared(t *testing.T) {
	for name, c := range map[string]struct {
		declare func()
		says    string
	}{
		"no struct": {func() { objectOf[string]() }, "string is not a struct"},
		"an unknown option": {func() {
			objectOf[struct {
				A string `pulumi:"a,optoinal"`
			}]()
		}, `unknown option "optoinal" in tag "a,optoinal"`},
		"no name": {func() {
			objectOf[struct {
				A string `pulumi:",optional"`
			}]()
		}, "names no property"},
		"a name twice": {func() {
			objectOf[struct {
				A string `pulumi:"a"`
				B string `pulumi:"a"`
			}]()
		}, `two fields of struct`},
		"a field that is not exported": {func() {
			objectOf[struct {
				a string `pulumi:"a"`
			}]()
		}, "has a tag and is not exported"},
		"a type without a form": {func() {
			objectOf[struct {
				A chan int `pulumi:"a"`
			}]()
		}, "chan int has no schema"},
		"a type without a form, below": {func() {
			objectOf[struct {
				A map[string][]struct {
					B complex128 `pulumi:"b"`
				} `pulumi:"a"`
			}]()
		}, "complex128 has no schema"},
		"a map by numbers": {func() {
			objectOf[struct {
				A map[int]string `pulumi:"a"`
			}]()
		}, "map[int]string has no schema"},
		"a default that is not JSON": {func() {
			objectOf[struct {
				A []string `pulumi:"a" default:"red"`
			}]()
		}, `default of "a" is not JSON`},
		"a default of another type": {func() {
			objectOf[struct {
				A int `pulumi:"a" default:"\"three\""`
			}]()
		}, `default of "a" must be a whole number, not string`},
	} {
		t.Run(name, func(t *testing.T) {
			if said := panicOf(c.declare); !strings.HasPrefix(said, "provider: ") || !strings.Contains(said, c.says) {
				t.Errorf("it is refused with %q, not with %q", said, c.says)
			}
		})
	}
}

// TestATypeHasItsSchema has the schema of each kind of field, as input and as output.
func TestATypeHasItsSchema(t *testing.T) {
	inputs, required := objectOf[every]().inputs()
	if len(required) > 0 {
		t.Errorf("%v are required", required)
	}
	for name, want := range map[string]string{
		"text": `{"type":"string"}`, "flag": `{"type":"boolean"}`, "count": `{"type":"integer"}`,
		"wide": `{"type":"integer"}`, "ratio": `{"type":"number"}`, "maybe": `{"type":"string"}`,
		"list":   `{"items":{"type":"string"},"type":"array"}`,
		"labels": `{"additionalProperties":{"type":"string"},"type":"object"}`,
		"inner":  `{"additionalProperties":{"$ref":"pulumi.json#/Any"},"type":"object"}`,
		"inners": `{"items":{"additionalProperties":{"$ref":"pulumi.json#/Any"},"type":"object"},"type":"array"}`,
		"linked": `{"additionalProperties":{"$ref":"pulumi.json#/Any"},"type":"object"}`,
		"any":    `{"$ref":"pulumi.json#/Any"}`, "asset": `{"$ref":"pulumi.json#/Asset"}`, "either": `{"oneOf":[]}`,
		"token": `{"secret":true,"type":"string"}`,
	} {
		if got, err := json.Marshal(inputs[name]); err != nil || string(got) != want {
			t.Errorf("the schema of %s is %s, not %s", name, got, want)
		}
	}
	if len(inputs) != len(objectOf[every]().fields) {
		t.Errorf("there are %d properties", len(inputs))
	}
}

func TestInputsAndOutputsTellWhatIsAlwaysThere(t *testing.T) {
	o := objectOf[struct {
		Name   string   `pulumi:"name,autoname,replace" doc:"Its name."`
		Size   int      `pulumi:"size"`
		Color  string   `pulumi:"color" default:"red"`
		Scale  float64  `pulumi:"scale" default:"0.5"`
		Zones  []string `pulumi:"zones" default:"[\"a\"]"`
		Note   string   `pulumi:"note,optional"`
		Tokens []string `pulumi:"tokens,optional,secret,replace"`
	}]()
	inputs, requiredInputs := o.inputs()
	outputs, required := o.outputs()
	got, err := json.Marshal([]any{inputs, requiredInputs, outputs, required})
	const want = `[{"color":{"default":"red","type":"string"},` +
		`"name":{"description":"Its name.","type":"string","willReplaceOnChanges":true},"note":{"type":"string"},` +
		`"scale":{"default":0.5,"type":"number"},"size":{"type":"integer"},` +
		`"tokens":{"items":{"type":"string"},"secret":true,"type":"array","willReplaceOnChanges":true},` +
		`"zones":{"items":{"type":"string"},"type":"array"}},["size"],` +
		`{"color":{"type":"string"},"name":{"description":"Its name.","type":"string"},"note":{"type":"string"},` +
		`"scale":{"type":"number"},"size":{"type":"integer"},` +
		`"tokens":{"items":{"type":"string"},"secret":true,"type":"array"},` +
		`"zones":{"items":{"type":"string"},"type":"array"}},["name","size","color","scale","zones"]]`
	if err != nil || string(got) != want {
		t.Errorf("the schemas are\n%s\nand not\n%s", got, want)
	}
}

func TestAnInputIsCompletedAndWhatTheTagsForbidIsReported(t *testing.T) {
	o := objectOf[struct {
		Size  int      `pulumi:"size"`
		Color string   `pulumi:"color" default:"red"`
		Zones []string `pulumi:"zones" default:"[\"a\"]"`
		Token string   `pulumi:"token,optional,secret"`
	}]()
	for name, c := range map[string]struct {
		news, want properties
		failures   []Failure
	}{
		"defaults are filled in": {
			properties{"size": number(1)},
			properties{"size": number(1), "color": text("red"), "zones": list(text("a"))}, nil,
		},
		"what is given is kept": {
			properties{"size": number(1), "color": text("blue"), "zones": list(), "token": secret(text("t"))},
			properties{"size": number(1), "color": text("blue"), "zones": list(), "token": secret(text("t"))}, nil,
		},
		"a secret is marked": {
			properties{"size": number(1), "color": text("blue"), "zones": list(), "token": text("t")},
			properties{"size": number(1), "color": text("blue"), "zones": list(), "token": secret(text("t"))}, nil,
		},
		"what is missing, misspelt or unknown": {
			properties{"Size": number(1), "colour": text("blue"), "__internal": text("x")},
			properties{"color": text("red"), "zones": list(text("a"))},
			[]Failure{
				{"Size", `is not a property; did you mean "size"?`},
				{"colour", "is not a property; there are size, color, zones, token"},
				{"size", "is required and missing"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, failures := o.complete(c.news)
			if !reflect.DeepEqual(got, c.want) || !reflect.DeepEqual(failures, c.failures) {
				t.Errorf("it is completed to\n%v, %v\nand not to\n%v, %v", got, failures, c.want, c.failures)
			}
		})
	}
}

// tree is a struct that contains values of its own type.
type tree struct {
	Name     string `pulumi:"name"`
	Children []tree `pulumi:"children,optional"`
}

func TestAStructMayContainValuesOfItsOwnType(t *testing.T) {
	want := tree{Name: "root", Children: []tree{{Name: "a", Children: []tree{{Name: "b"}}}, {Name: "c"}}}
	o := objectOf[tree]()
	encoded, err := o.encode(want)
	if err != nil {
		t.Fatal(err)
	}
	var got tree
	if _, failures := o.decodeKnown(t.Context(), encoded, reflect.ValueOf(&got).Elem()); len(failures) > 0 {
		t.Fatal(failures)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, not %+v", got, want)
	}
}
