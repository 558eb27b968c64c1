package engine_test

import (
	"fmt"
	"testing"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

func TestASnapshotIsRepairedByOrderAndByLeavingOutWhatIsNotThere(t *testing.T) {
	w := &stage{names: map[string]name{}}
	states := func(lines ...string) []engine.State {
		t.Helper()
		var out []engine.State
		for _, line := range lines {
			it, err := parseItem(line)
			if err != nil {
				t.Fatal(err)
			}
			s, err := w.state(it)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, s)
		}
		return out
	}
	states("provider p", "a", "b", "c") // so that their names are known
	for name, c := range map[string]struct {
		broken []engine.State
		want   string // the order, or "" beyond repair
	}{
		"what is in order stays":            {states("a", "b [on=a]", "c"), "a b c"},
		"a dependency that stands behind":   {states("c", "b [on=a]", "a"), "c a b"},
		"a chain the wrong way round":       {states("c [on=b]", "b [on=a]", "a"), "a b c"},
		"a provider that stands behind":     {states("a [provider=p]", "provider p"), "p a"},
		"a reference to what is not there":  {states("b [on=a]", "c"), "b c"},
		"a copy of it stands there already": {states("a [delete]", "b [on=a]", "a"), "a b a"},
		"a provider that is not there":      {states("a [provider=p]"), ""},
		"two of one name":                   {states("a", "a"), ""},
		"two that refer to each other":      {states("a [on=b]", "b [on=a]"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := snapshot.Repair(c.broken)
			err := snapshot.Verify(got)
			if (err == nil) != (c.want != "") {
				t.Fatal(err)
			}
			order := ""
			for _, s := range got {
				order += " " + s.URN.Name()
			}
			if c.want != "" && order != " "+c.want {
				t.Errorf("the order is%s", order)
			}
			if len(got) != len(c.broken) {
				t.Error(fmt.Sprint("states were lost: ", got))
			}
		})
	}
}
