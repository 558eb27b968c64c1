package plan

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// TestABindingAddsInputsInThePlaceOfTheResourcesOwn holds that what is bound replaces properties as a whole, keeps its
// secrets, and that nothing is guessed: neither what a preview does not know nor which of two bindings is meant.
func TestABindingAddsInputsInThePlaceOfTheResourcesOwn(t *testing.T) {
	text := func(s string) resource.PropertyValue { return resource.NewProperty(s) }
	stored := func(v resource.PropertyValue) boundInputs {
		return boundInputs{values: resource.PropertyMap{"resource": text("urn"), "inputs": v}}
	}
	adds := func(v resource.PropertyValue) boundInputs { return boundInputs{stored(v).values, true} }
	object := func(key resource.PropertyKey, v resource.PropertyValue) resource.PropertyValue {
		return resource.NewProperty(resource.PropertyMap{key: v})
	}
	own := resource.PropertyMap{"name": text("a"), "peers": object("x", text("own"))}
	for name, c := range map[string]struct {
		bindings []boundInputs
		want     resource.PropertyMap
		conflict string
	}{
		"none": {nil, own, ""},
		"one": {[]boundInputs{adds(object("peers", object("y", text("b"))))},
			resource.PropertyMap{"name": text("a"), "peers": object("y", text("b"))}, ""},
		"a secret": {[]boundInputs{adds(resource.MakeSecret(object("key", text("hush"))))},
			resource.PropertyMap{"name": text("a"), "peers": own["peers"], "key": resource.MakeSecret(text("hush"))}, ""},
		"not known": {[]boundInputs{adds(resource.MakeComputed(text("")))}, own, ""},
		"two": {[]boundInputs{adds(object("p", text("1"))), adds(object("q", text("2")))},
			resource.PropertyMap{"name": text("a"), "peers": own["peers"], "p": text("1"), "q": text("2")}, ""},
		"one that may be gone, and its successor": {
			[]boundInputs{stored(object("p", text("1"))), adds(object("p", text("2")))},
			resource.PropertyMap{"name": text("a"), "peers": own["peers"], "p": text("2")}, ""},
		"two that are stored": {[]boundInputs{stored(object("p", text("1"))), stored(object("p", text("2")))},
			resource.PropertyMap{"name": text("a"), "peers": own["peers"], "p": text("2")}, ""},
		"two of one": {[]boundInputs{adds(object("p", text("1"))), adds(object("p", text("1")))}, nil, "p"},
	} {
		got, failures := withBound(own, c.bindings)
		switch {
		case c.conflict != "":
			if len(failures) != 1 || failures[0].Property != c.conflict {
				t.Errorf("%s: %v", name, failures)
			}
		case len(failures) > 0 || !got.DeepEquals(c.want):
			t.Errorf("%s: %v, %v", name, got, failures)
		}
	}
	if len(own) != 2 || own["peers"].ObjectValue()["x"].StringValue() != "own" {
		t.Errorf("the resource's own inputs have become %v", own)
	}
}
