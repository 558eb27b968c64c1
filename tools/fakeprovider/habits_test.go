package fakeprovider

import (
	"testing"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// What a provider that people use shows when it is read differs from what it showed when it created the same thing; its
// Diff knows that it means the same.
func TestByHabitWhatIsReadDiffersAndIsNoChange(t *testing.T) {
	f := &fake{habits: true}
	in := property.NewMap(map[string]property.Value{"size": property.New(1.0),
		"document": property.New(`{"Version": "1", "Action": {"b": 1, "a": 2}}`)})
	made, read := f.habitual(in, false), f.habitual(in, true)
	if made.Get(rawState).Equals(read.Get(rawState)) || made.Get(document).Equals(read.Get(document)) {
		t.Errorf("%v and %v are the same", made, read)
	}
	diff, err := f.Diff(t.Context(), p.DiffRequest{Urn: "urn:pulumi:dev::test::fake:index:Named::a",
		OldInputs: f.inputsAsRead(in), Inputs: in})
	if err != nil || diff.HasChanges {
		t.Errorf("%+v %v", diff, err)
	}
	other := in.Set(document, property.New(`{"Version": "2"}`))
	diff, err = f.Diff(t.Context(), p.DiffRequest{Urn: "urn:pulumi:dev::test::fake:index:Named::a",
		OldInputs: f.inputsAsRead(in), Inputs: other})
	if err != nil || !diff.HasChanges {
		t.Errorf("%+v %v", diff, err)
	}
}

func TestByHabitTheStateOfWhatFailedToInitialiseIsDropped(t *testing.T) {
	in := property.NewMap(map[string]property.Value{"failInit": property.New(true)})
	for _, habits := range []bool{false, true} {
		f := &fake{habits: habits}
		if partial, err := f.initialised(in); err == nil || (partial == nil) != habits {
			t.Errorf("habits %v: %v %v", habits, partial, err)
		}
	}
}
