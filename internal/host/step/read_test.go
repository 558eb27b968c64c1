package step

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestADifferenceThatAProviderDoesNotNameIsInWhatInputsStandFor(t *testing.T) {
	text := func(text string, seen float64) resource.PropertyMap {
		return resource.PropertyMap{"text": resource.NewProperty(text), "seen": resource.NewProperty(seen)}
	}
	for want, inputs := range map[string]resource.PropertyMap{
		"[text]": {"text": resource.NewProperty("card")}, "[seen text]": {},
	} {
		found := changedOutputs(text("card", 1), text("hacked", 2), inputs)
		if got := fmt.Sprint(slices.Sorted(maps.Keys(found))); got != want {
			t.Errorf("%s is named, and not %s", got, want)
		}
	}
}

// TestOnlyOutputsThatAreNoInputsHaveMoved holds that what was bound is not taken for a change of what others use.
func TestOnlyOutputsThatAreNoInputsHaveMoved(t *testing.T) {
	n := resource.NewProperty[float64]
	before := resource.PropertyMap{"generation": n(1), "arn": n(7), "size": n(1)}
	after := resource.PropertyMap{"generation": n(2), "arn": n(7), "size": n(2), "fresh": n(1)}
	got := moved(before, after, resource.PropertyMap{"size": n(2)})
	if !slices.Equal(got, []string{"fresh", "generation"}) {
		t.Errorf("%q have moved", got)
	}
}
