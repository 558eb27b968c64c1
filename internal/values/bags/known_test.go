package bags_test

import (
	"testing"

	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestWhatIsNotKnownKeepsItsLastValueOrIsLeftOut(t *testing.T) {
	text := func(s string) resource.PropertyValue { return resource.NewProperty(s) }
	unknown := resource.MakeComputed(text(""))
	nested := resource.NewProperty(resource.PropertyMap{"in": resource.NewProperty(
		[]resource.PropertyValue{text("a"), unknown})})
	values := resource.PropertyMap{
		"known": text("new"), "plain": unknown, "secret": resource.MakeSecret(unknown), "nested": nested,
		"first":  unknown,
		"output": resource.NewProperty(resource.Output{Secret: true}), "never": unknown,
	}
	last := resource.PropertyMap{
		"known": text("old"), "plain": text("1"), "secret": resource.MakeSecret(text("2")), "nested": text("3"),
		"output": text("4"),
		"never":  unknown, "gone": text("5"),
	}
	got := bags.Known(values, last)
	want := resource.PropertyMap{
		"known": text("new"), "plain": text("1"), "secret": resource.MakeSecret(text("2")), "nested": text("3"),
		"output": text("4"),
	}
	if !got.DeepEquals(want) {
		t.Errorf("got %v", got)
	}
	if len(values) != 7 || !values["plain"].IsComputed() {
		t.Errorf("the values themselves changed: %v", values)
	}
	if whole := bags.Known(want, last); !whole.DeepEquals(want) {
		t.Errorf("what is known changed: %v", whole)
	}
}
