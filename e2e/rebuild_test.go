package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// found is a declared resource that exists.
type found struct {
	URN, ID string
	Foreign bool
}

// surveyed is what stack rebuild and stack orphans print.
type surveyed struct {
	Found               []found
	NotFound, NotListed []struct{ URN, Type, Why string }
	Orphans             []struct{ Type, ID, Why string }
}

func (s *scene) surveyed(t *testing.T, args ...string) (got surveyed) {
	t.Helper()
	must(t, json.Unmarshal([]byte(s.must(t, append(args, "--json")...)), &got))
	return got
}

// ids are the ids of the cloud's objects of a kind, sorted.
func (s *scene) ids(t *testing.T, kind string) (ids []string) {
	t.Helper()
	all, err := s.cloud.Objects(t.Context(), kind)
	must(t, err)
	for _, o := range all {
		ids = append(ids, o.ID)
	}
	slices.Sort(ids)
	return ids
}

// TestAStackWhoseStateWasLostIsRebuilt removes a stack's state and history. An object of a given name, one of a
// generated name, and what its replacement has left behind are in the cloud.
func TestAStackWhoseStateWasLostIsRebuilt(t *testing.T) {
	t.Parallel()
	program := func(zone string, more ...string) string {
		return steps(append([]string{
			"{register: auto, type: fake:index:Auto, properties: {zone: " + zone + "}, options: {retainOnDelete: true}}",
			"{register: named, type: fake:index:Named, properties: {name: given}}"}, more...)...)
	}
	s := newScene(t, program("a"))
	left := s.ids(t, "auto")
	s.write(t, "scenario.yaml", program("b"))
	s.update(t, "up")
	both := s.ids(t, "auto")
	if len(both) != 2 {
		t.Fatalf("the cloud has %q", both)
	}
	now := both[1-slices.Index(both, left[0])]
	orphan := func(when string) {
		t.Helper()
		if got := s.surveyed(t, "stack", "orphans"); len(got.Orphans) != 1 || got.Orphans[0].ID != left[0] {
			t.Errorf("%s there are the orphans %+v", when, got)
		}
	}
	orphan("after the replacement")

	const server = "{register: server, type: fake:index:Server}"
	s.write(t, "scenario.yaml", program("b", server))
	effects := len(s.done(t))
	s.must(t, "stack", "rm", "dev", "--force", "--yes", "--preserve-config")
	s.must(t, "stack", "init", "dev")
	s.fails(t, 2, []string{"stack rebuild --dry-run"}, "stack", "orphans")
	s.fails(t, 2, []string{"deployctl up --adopt"}, "stack", "rebuild")
	got := s.surveyed(t, "stack", "rebuild", "--dry-run")
	if len(got.Found) != 2 || got.Found[0].ID != now || got.Found[0].Foreign || got.Found[1].ID != "given" ||
		!got.Found[1].Foreign {
		t.Errorf("it finds %+v", got.Found)
	}
	if len(got.NotFound) != 1 || !strings.HasSuffix(got.NotFound[0].URN, "::server") ||
		!strings.Contains(got.NotFound[0].Why, "no settle rule") {
		t.Errorf("it does not find %+v", got.NotFound)
	}
	if len(s.exported(t).Resources) != 0 || len(s.done(t)) != effects {
		t.Errorf("it has written %+v, with the effects %q", s.exported(t), s.done(t)[effects:])
	}
	s.update(t, "up", "--adopt")
	if auto, named := s.inState(t, "auto"), s.inState(t, "named"); string(auto.ID) != now || named.ID != "given" {
		t.Errorf("the state has %s and %s", auto.ID, named.ID)
	}
	if all := slices.Concat(s.ids(t, "auto"), s.ids(t, "named")); len(all) != 3 {
		t.Errorf("the cloud has %q", all)
	}
	s.update(t, "up").expect(t, map[string]int{"same": 4})
	orphan("after the state was rebuilt")

	// The same under another name, with the identity of the first.
	const again = "again"
	identity := "organization/" + projectName(t) + "/dev"
	s.fails(t, 4, []string{"has the identity"}, "stack", "init", again, "--no-select", "--identity", identity)
	s.write(t, "scenario.yaml", program("b"))
	s.update(t, "up")
	s.must(t, "stack", "rm", "dev", "--force", "--yes", "--preserve-config")
	s.must(t, "stack", "init", again, "--identity", identity)
	s.write(t, "Pulumi."+again+".yaml", "config:\n  deployctl:settle: '"+findable+"'\n")
	if said := s.must(t, "stack"); !strings.Contains(said, identity) {
		t.Errorf("of the stack it says\n%s", said)
	}
	s.update(t, "up", "--adopt")
	if auto := s.inState(t, "auto"); string(auto.ID) != now || len(s.ids(t, "auto")) != 2 {
		t.Errorf("the state has %s, and the cloud %q", auto.ID, s.ids(t, "auto"))
	}
}
