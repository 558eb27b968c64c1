package session

import (
	"slices"
	"strconv"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestStepsAtATimeAreSharedByTheUpdatesOfAnOrganization(t *testing.T) {
	a := New(Options{})
	defer a.Close(t.Context())
	var grants []int
	all := 0
	for i := range mostHosted {
		u := deployments.UpdateName{StackName: testStack, Version: strconv.Itoa(i)}
		granted := a.grant(testStack.Organization, deployments.MaxParallel)
		a.all[u.String()] = &Session{update: u, granted: granted}
		grants, all = append(grants, granted), all+granted
	}
	if want := []int{500, 250, 125, 62, 31, 16, 8, 8}; !slices.Equal(grants[:len(want)], want) {
		t.Errorf("the first updates get %v", grants[:len(want)])
	}
	if all*3/2+2*mostHosted > MostOfOrganization {
		t.Errorf("all together have %d steps at a time", all)
	}
	if other := a.grant("another", deployments.MaxParallel); other != deployments.MaxParallel {
		t.Errorf("an update of another organization gets %d", other)
	}
	clear(a.all)
	if few := a.grant(testStack.Organization, 1); few != 1 {
		t.Errorf("one that asks for one step at a time gets %d", few)
	}
}
