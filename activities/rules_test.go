package activities

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestEveryCreateHasAMarkOfItsOwn(t *testing.T) {
	rules := newRuleBook(&updateFacts{identity: statestore.StackIdentity{Text: "stack", Marks: []byte("key")}}, nil)
	first := rules.mark([]byte{1})
	if first != rules.mark([]byte{1}) || !isMark(first) {
		t.Errorf("it is %q, and then %q", first, rules.mark([]byte{1}))
	}
	if first == rules.mark([]byte{2}) || rules.mark(nil) != "" {
		t.Error("two creates have one mark")
	}
}

func TestWhatBearsAMarkKeepsItWhateverTheVersionOfThePlugin(t *testing.T) {
	var rules settlerule.Rules
	if err := rules.UnmarshalJSON([]byte(`{"versions": ">=2.0.0", "list": {"match": {"labels.mark": "${mark}"}}, "mark": "labels.mark"}`)); err != nil {
		t.Fatal(err)
	}
	all := []known{{Set: settlerule.Set{Rules: rules}, version: "1.0.0"}}
	mark := strings.Repeat("a1", 16)
	place := markPlace(all)
	if !place.IsZero() {
		t.Errorf("what is new gets a mark at %s", place)
	}
	olds := resource.PropertyMap{"labels": resource.NewProperty(resource.PropertyMap{"mark": resource.NewProperty(mark)})}
	if got := placeIn(all, olds).Get(olds); got != mark {
		t.Errorf("what has a mark keeps %q", got)
	}
}
