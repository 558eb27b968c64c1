package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Objects that the state does not know any more, because they were retained, have nothing but their properties by which
// they could be told apart.
func TestObjectsThatNoStateKnowsAreComparedByWhatTheyAre(t *testing.T) {
	t.Parallel()
	of := func(ids ...string) view {
		objects := []fakecloud.Object{
			{Kind: "server", ID: ids[0], Owner: "r", Properties: map[string]any{"zone": "a"}},
			{Kind: "server", ID: ids[1], Owner: "r", Properties: map[string]any{"zone": "c"}},
		}
		// as a cloud lists them
		slices.SortFunc(objects, func(a, b fakecloud.Object) int { return strings.Compare(a.ID, b.ID) })
		v, err := look(apitype.DeploymentV3{}, objects, "http://cloud", true)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first, second := "server-aaaaaaaaaaaa", "server-bbbbbbbbbbbb"
	if found := differences(of(first, second), of(second, first), true); len(found) > 0 {
		t.Errorf("the same objects differ: %v", found)
	}
}

func TestWhatWasDeletedBeforeADeletionFailedIsLeftToChance(t *testing.T) {
	t.Parallel()
	after := func(u update, step string) bool {
		s := &side{result: result{failed: true, steps: []string{step}}}
		return diverges(u, program{}, []*side{s, s})
	}
	if !after(update{}, "failed delete r1") {
		t.Error("the engines must have made the same deletions before one failed")
	}
	if after(update{}, "failed update r1") || after(update{ContinueOnError: true}, "failed delete r1") {
		t.Error("an update that makes everything else need not be compared")
	}
}

func TestWhatIsKeptIsComparedWhereUpdatesHaveAnOrder(t *testing.T) {
	t.Parallel()
	s := &side{retained: map[string]bool{"auto kept": true, "auto stored": true},
		objects: []fakecloud.Object{{Kind: "auto", ID: "kept"}, {Kind: "auto", ID: "stored"}, {Kind: "auto", ID: "lost"}},
		result:  result{state: apitype.DeploymentV3{Resources: []apitype.ResourceV3{{Type: autoType, ID: "stored"}}}},
	}
	if n := len(s.compared(true)); n != 3 {
		t.Errorf("%d objects are compared in order", n)
	}
	if found := s.compared(false); len(found) != 2 || found[0].ID != "stored" || found[1].ID != "lost" {
		t.Errorf("without an order %v are compared", found)
	}
}

func TestViewsAreComparedBesideTheirOwners(t *testing.T) {
	t.Parallel()
	stack := update{Steps: []step{register("r1", fleetType, nil, nil), register("r2", autoType, nil, nil)}}
	owner := apitype.ResourceV3{URN: resource.URN(stack.urn("s", "r1")), Type: fleetType}
	other := apitype.ResourceV3{URN: resource.URN(stack.urn("s", "r2")), Type: autoType}
	view := apitype.ResourceV3{URN: owner.URN + "-a", Type: "fake:index:Part", ViewOf: owner.URN}
	lost := apitype.ResourceV3{URN: owner.URN + "-b", Type: "fake:index:Part", ViewOf: owner.URN + "-gone"}
	want := []apitype.ResourceV3{owner, view, other, lost}
	for _, order := range [][]apitype.ResourceV3{want, {owner, lost, other, view}} {
		if got := besideOwners(order); !reflect.DeepEqual(got, want) {
			t.Errorf("%v becomes %v", order, got)
		}
	}
}
