package command

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestWhoamiPrintsTheUserOrAllThatIsKnown(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	if got := d.must("whoami"); got != "local\n" {
		t.Errorf("whoami prints %q", got)
	}
	table := d.must("whoami", "-v")
	for _, part := range []string{"User", "local", "Organizations", "organization", "embedded",
		"admin of every organization"} {
		if !strings.Contains(table, part) {
			t.Errorf("the table lacks %s:\n%s", part, table)
		}
	}
	var w struct {
		User, URL     string
		Organizations []string
		Token         struct{ Name string } `json:"tokenInformation"`
		Grants        []any
	}
	if err := json.Unmarshal([]byte(d.must("whoami", "--json")), &w); err != nil {
		t.Fatal(err)
	}
	if w.User != "local" || w.Token.Name != "local" || !slices.Equal(w.Organizations, []string{"organization"}) ||
		w.URL != "embedded" || len(w.Grants) != 1 {
		t.Errorf("whoami --json prints %+v", w)
	}
}
