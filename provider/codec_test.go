package provider

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

// every has a field of each kind that a property can have.
type every struct {
	Text   string            `pulumi:"text,optional"`
	Flag   bool              `pulumi:"flag,optional"`
	Count  int               `pulumi:"count,optional"`
	Wide   int64             `pulumi:"wide,optional"`
	Ratio  float64           `pulumi:"ratio,optional"`
	Maybe  *string           `pulumi:"maybe,optional"`
	List   []string          `pulumi:"list,optional"`
	Labels map[string]string `pulumi:"labels,optional"`
	Inner  inner             `pulumi:"inner,optional"`
	Inners []inner           `pulumi:"inners,optional"`
	Linked *inner            `pulumi:"linked,optional"`
	Any    any               `pulumi:"any,optional"`
	Asset  *asset.Asset      `pulumi:"asset,optional"`
	Either either            `pulumi:"either,optional"`
	Token  string            `pulumi:"token,optional,secret"`
}

type inner struct {
	Name string         `pulumi:"name"`
	Key  string         `pulumi:"key,optional,secret"`
	Deep map[string]int `pulumi:"deep,optional"`
}

// either is a text or a list of texts.
type either []string

func (e *either) MarshalProperty() (resource.PropertyValue, error) {
	switch len(*e) {
	case 0:
		return resource.PropertyValue{}, errors.New("has nothing in it")
	case 1:
		return text((*e)[0]), nil
	}
	var items []resource.PropertyValue
	for _, item := range *e {
		items = append(items, text(item))
	}
	return resource.NewProperty(items), nil
}

func (e *either) UnmarshalProperty(v resource.PropertyValue) error {
	switch {
	case v.IsString():
		*e = either{v.StringValue()}
	case v.IsArray():
		for _, item := range v.ArrayValue() {
			*e = append(*e, item.StringValue())
		}
	default:
		return errors.New("must be a text or a list")
	}
	return nil
}

func (*either) PropertySchema() map[string]any { return map[string]any{"oneOf": []any{}} }

func text(s string) resource.PropertyValue       { return resource.NewProperty(s) }
func number(n float64) resource.PropertyValue    { return resource.NewProperty(n) }
func values(m properties) resource.PropertyValue { return resource.NewProperty(m) }
func list(items ...resource.PropertyValue) resource.PropertyValue {
	return resource.NewProperty(items)
}
func secret(v resource.PropertyValue) resource.PropertyValue { return resource.MakeSecret(v) }

func content(t *testing.T, s string) *asset.Asset {
	t.Helper()
	a, err := asset.FromText(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAStructIsWrittenAsABagAndReadBack has the Go form and the bag of each kind of field.
func TestAStructIsWrittenAsABagAndReadBack(t *testing.T) {
	it, file := "it", content(t, "hello")
	for name, c := range map[string]struct {
		value every
		bag   properties
	}{
		"nothing":    {every{}, properties{}},
		"a text":     {every{Text: "a"}, properties{"text": text("a")}},
		"a flag":     {every{Flag: true}, properties{"flag": resource.NewProperty(true)}},
		"a number":   {every{Count: -3}, properties{"count": number(-3)}},
		"a wide one": {every{Wide: 1 << 53}, properties{"wide": number(1 << 53)}},
		"a ratio":    {every{Ratio: 0.5}, properties{"ratio": number(0.5)}},
		"a pointer":  {every{Maybe: &it}, properties{"maybe": text("it")}},
		"a list":     {every{List: []string{"a", ""}}, properties{"list": list(text("a"), text(""))}},
		"a map": {every{Labels: map[string]string{"k": "v"}},
			properties{"labels": values(properties{"k": text("v")})}},
		"a struct":    {every{Inner: inner{Name: "n"}}, properties{"inner": values(properties{"name": text("n")})}},
		"its pointer": {every{Linked: &inner{Name: "n"}}, properties{"linked": values(properties{"name": text("n")})}},
		"structs": {
			every{Inners: []inner{{Name: "a", Deep: map[string]int{"x": 1}}, {}}},
			properties{"inners": list(values(properties{"name": text("a"), "deep": values(properties{"x": number(1)})}),
				values(properties{"name": text("")}))},
		},
		"anything": {
			every{Any: map[string]any{"a": []any{1.5, "b", true}}},
			properties{"any": values(properties{"a": list(number(1.5), text("b"), resource.NewProperty(true))})},
		},
		"an asset":          {every{Asset: file}, properties{"asset": resource.NewProperty(file)}},
		"a form of its own": {every{Either: either{"a"}}, properties{"either": text("a")}},
		"its other form":    {every{Either: either{"a", "b"}}, properties{"either": list(text("a"), text("b"))}},
		"a secret":          {every{Token: "t"}, properties{"token": secret(text("t"))}},
		"a secret in a struct": {every{Inner: inner{Key: "k"}}, properties{
			"inner": values(properties{"name": text(""), "key": secret(text("k"))})}},
	} {
		t.Run(name, func(t *testing.T) {
			bag, err := objectOf[every]().encode(c.value)
			if err != nil || !reflect.DeepEqual(bag, c.bag) {
				t.Errorf("it is written as\n%v, %v\nand not as\n%v", bag, err, c.bag)
			}
			var back every
			if err := objectOf[every]().decode(t.Context(), c.bag, &back); err != nil ||
				!reflect.DeepEqual(back, c.value) {
				t.Errorf("it is read as\n%+v, %v\nand not as\n%+v", back, err, c.value)
			}
		})
	}
}

// TestSecretsAndOutputsAreReadAsTheirValues holds at every depth: an author's code sees values.
func TestSecretsAndOutputsAreReadAsTheirValues(t *testing.T) {
	output := func(v resource.PropertyValue) resource.PropertyValue {
		return resource.NewProperty(resource.Output{Element: v, Known: true, Secret: true})
	}
	for name, wrap := range map[string]func(resource.PropertyValue) resource.PropertyValue{
		"secrets": secret, "outputs": output,
		"both": func(v resource.PropertyValue) resource.PropertyValue { return secret(output(v)) },
	} {
		t.Run(name, func(t *testing.T) {
			bag := properties{
				"text": wrap(text("a")), "list": wrap(list(wrap(text("b")))),
				"labels": wrap(values(properties{"k": wrap(text("v"))})),
				"inner":  wrap(values(properties{"name": wrap(text("n"))})),
				"any":    wrap(values(properties{"a": list(wrap(text("x")))})),
				"either": wrap(list(wrap(text("one")), text("two"))),
			}
			want := every{Text: "a", List: []string{"b"}, Labels: map[string]string{"k": "v"}, Inner: inner{Name: "n"},
				Any: map[string]any{"a": []any{"x"}}, Either: either{"one", "two"}}
			var got every
			if err := objectOf[every]().decode(t.Context(), bag, &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("it is read as\n%+v, %v\nand not as\n%+v", got, err, want)
			}
		})
	}
}

func TestWhatIsMissingOrUnknownLeavesItsFieldZero(t *testing.T) {
	unknown := resource.MakeComputed(text(""))
	later := resource.NewProperty(resource.Output{Element: text("")})
	bag := properties{
		"text": unknown, "count": secret(unknown), "list": list(text("a"), unknown), "maybe": later,
		"inner": values(properties{"name": text("n"), "key": later}), "flag": resource.NewNullProperty(),
		"labels": values(properties{"k": text("v")}), "internal": text("no field has it"),
	}
	var got every
	found, failures := objectOf[every]().decodeKnown(t.Context(), bag, reflect.ValueOf(&got).Elem())
	if len(failures) > 0 || !reflect.DeepEqual(got, every{Labels: map[string]string{"k": "v"}}) {
		t.Errorf("it is read as %+v; failures %v", got, failures)
	}
	want := unknowns{"text": true, "count": true, "list": true, "maybe": true, "inner": true}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("the unknown properties are %v, not %v", found, want)
	}
}

func TestAValueOfTheWrongTypeIsReportedWithItsPath(t *testing.T) {
	for name, c := range map[string]struct {
		bag  properties
		want []Failure
	}{
		"a number for a text": {properties{"text": number(1)}, []Failure{{"text", "must be a string, not number"}}},
		"a text for a number": {properties{"ratio": text("1")}, []Failure{{"ratio", "must be a number, not string"}}},
		"a text for a flag": {properties{"flag": text("true")},
			[]Failure{{"flag", "must be true or false, not string"}}},
		"a fraction": {properties{"count": number(1.5)},
			[]Failure{{"count", "must be a whole number, not number"}}},
		"more than a number": {properties{"count": number(1e300)},
			[]Failure{{"count", "must be a whole number, not number"}}},
		"an endless number": {properties{"wide": number(math.Inf(1))},
			[]Failure{{"wide", "must be a whole number, not number"}}},
		"a text for a list": {properties{"list": text("a")}, []Failure{{"list", "must be a list, not string"}}},
		"a wrong element": {properties{"list": list(text("a"), number(1))},
			[]Failure{{"list[1]", "must be a string, not number"}}},
		"a list for a map": {properties{"labels": list()}, []Failure{{"labels", "must be a map, not []"}}},
		"a wrong entry": {properties{"labels": values(properties{"a b": number(1)})},
			[]Failure{{`labels["a b"]`, "must be a string, not number"}}},
		"a text for a struct": {properties{"inner": text("a")}, []Failure{{"inner", "must be an object, not string"}}},
		"a text for an asset": {properties{"asset": text("a")}, []Failure{{"asset", "must be an asset, not string"}}},
		"a form of its own":   {properties{"either": number(1)}, []Failure{{"either", "must be a text or a list"}}},
		"a secret of it": {properties{"text": secret(number(1))},
			[]Failure{{"text", "must be a string, not number"}}},
		"something deep below": {properties{"inners": list(values(
			properties{"deep": values(properties{"x": text("1")})}))},
			[]Failure{{`inners[0].deep["x"]`, "must be a whole number, not string"}}},
		"each that is wrong": {
			properties{"text": number(1), "flag": number(1)},
			[]Failure{{"text", "must be a string, not number"}, {"flag", "must be true or false, not number"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var into every
			_, got := objectOf[every]().decodeKnown(t.Context(), c.bag, reflect.ValueOf(&into).Elem())
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("it fails with %v, not %v", got, c.want)
			}
			if err := objectOf[every]().decode(t.Context(), c.bag, &into); err == nil ||
				!strings.Contains(err.Error(), c.want[0].Property) && !strings.Contains(err.Error(), c.want[0].Reason) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestAFieldThatCannotBeWrittenIsNamed(t *testing.T) {
	type required struct {
		Choice either `pulumi:"choice"`
	}
	for name, v := range map[string]any{
		"itself": required{}, "an element": struct {
			Choices []required `pulumi:"choice"`
		}{[]required{{}}},
	} {
		_, err := objectOfType(reflect.TypeOf(v)).encode(v)
		if err == nil || !strings.HasPrefix(err.Error(), `property "choice": `) ||
			!strings.Contains(err.Error(), "has nothing in it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheRelativePathOfAnAssetIsOfTheProgram(t *testing.T) {
	ctx := context.WithValue(t.Context(), dirKey{}, "/program")
	for path, want := range map[string]string{"site/a.html": "/program/site/a.html", "/etc/hosts": "/etc/hosts"} {
		a := &asset.Asset{Sig: content(t, "").Sig, Path: path}
		var got every
		if err := objectOf[every]().decode(ctx, properties{"asset": resource.NewProperty(a)}, &got); err != nil ||
			got.Asset.Path != want || a.Path != path {
			t.Errorf("%s is read as %+v, %v", path, got.Asset, err)
		}
	}
}

func TestAnAssetHasItsHash(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	bag := properties{"it": resource.NewProperty(&asset.Asset{Sig: content(t, "").Sig, Path: "file"})}
	wire, err := marshal(bag)
	if err != nil {
		t.Fatal(err)
	}
	got, err := unmarshal(context.WithValue(t.Context(), dirKey{}, dir), wire)
	if err != nil || got["it"].AssetValue().Hash != content(t, "text").Hash {
		t.Errorf("%v, %v", got, err)
	}
}
