package lookup

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/statestore/identities"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestEveryCreateHasAMarkOfItsOwn(t *testing.T) {
	rules := New(&hosted.Update{Identity: identities.Identity{Text: "stack", Marks: []byte("key")}}, nil)
	first := rules.Mark([]byte{1})
	if first != rules.Mark([]byte{1}) || !IsMark(first) {
		t.Errorf("it is %q, and then %q", first, rules.Mark([]byte{1}))
	}
	if first == rules.Mark([]byte{2}) || rules.Mark(nil) != "" {
		t.Error("two creates have one mark")
	}
}

func TestWhatBearsAMarkKeepsItWhateverTheVersionOfThePlugin(t *testing.T) {
	var rules settlerule.Rules
	const text = `{"versions": ">=2.0.0", "list": {"match": {"labels.mark": "${mark}"}}, "mark": "labels.mark"}`
	if err := rules.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	all := []Known{{Set: settlerule.Set{Rules: rules}, Version: "1.0.0"}}
	mark := strings.Repeat("a1", 16)
	place := MarkPlace(all)
	if !place.IsZero() {
		t.Errorf("what is new gets a mark at %s", place)
	}
	olds := resource.PropertyMap{"labels": resource.NewProperty(resource.PropertyMap{"mark": resource.NewProperty(mark)})}
	if got := PlaceIn(all, olds).Get(olds); got != mark {
		t.Errorf("what has a mark keeps %q", got)
	}
}
