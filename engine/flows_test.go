package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// flows are those that the reference names (resource registration, deployment steps), by the name that they have there,
// each with a transcript and a line of it that shows the flow. ViewStep is left out: views are for the display alone.
var flows = []struct{ flow, transcript, line string }{
	{"creating a resource", "create_same_update", "> done: create stack"},
	{"updating a resource", "create_same_update", "> done: update db"},
	{"replacing a resource (create-before-replace)", "replace_create_before", "> delete-replaced db from db-0"},
	{"replacing a resource (delete-before-replace)", "replace_delete_before", "> done: delete-replaced a"},
	{"importing a resource", "import", "> import db size=1 id=i-7"},
	{"leaving a resource unchanged", "create_same_update", "> done: same db"},
	{"reading an external resource", "read", "> done: read db"},
	{"state lookup: by an alias", "aliases", "> plan c/new-page from old-page-0"},
	{"state lookup: an error if several match", "alias_errors", "> failed: same 1 (old is also an alias of new; " +
		"remove the alias or rename one of them)"},
	{"read: it is external already", "read", "> read db id=r-1 from r-1"},
	{"read: relinquish", "read", "> done: read own"},
	{"read: read replacement", "read_replacement", "> done: read-replacement own"},
	{"diffing: marked for replacement out of band", "forced_replacement", "update up replace=web"},
	{"diffing: its provider has changed", "provider_renamed_and_replaced", "compare p q: replace"},
	{"diffing: a default provider may change", "providers", "compare default: keep"},
	{"diffing: parallel", "parallel", "update up parallel=2"},
	{"deletions: in parallel groups", "delete_order", "> delete cache from cache-0 by p@p1"},
	{"dependent replacement", "replace_delete_before", "> done: delete-replaced c"},
	{"dependent replacement: of property dependents only", "replace_delete_before", "> done: same d"},
	{"dependent replacement: among registrations in parallel", "replace_delete_before_in_parallel",
		"> done: delete-replaced a"},
	{"SameStep: not targeted", "targets", "> done: same web"},
	{"SameStep: a skipped create", "targets", "> reply new skip"},
	{"CreateStep: a replacement", "replace_create_before", "> done: create-replacement db"},
	{"DeleteStep", "create_same_update", "> done: delete db"},
	{"DeleteStep: protected", "delete_protected", "> done: delete cache"},
	{"DeleteStep: without a call", "delete_without_calls", "> done: delete member"},
	{"ReplaceStep", "replace_create_before", "> done: replace db"},
	{"RefreshStep", "refresh", "> refresh net from net-0"},
	{"ImportStep: what differs is updated", "import_differs", "> done: import db"},
	{"RemovePendingReplaceStep", "left_by_earlier_updates", "> done: remove-pending-replace old"},
	{"DiffStep", "replace_create_before", "> plan db from db-0"},
	{"read before create: undefined", "found", "> done: create db"},
	{"read before create: owned", "found", "> info: lost exists already, and is this stack's: recovered lost-7"},
	{"read before create: Unowned, adopt off", "found", "> | gone id=gone-2 size=1"},
	{"read before create: Unowned, adopt on", "found", "> warning: theirs exists already, owned by web/prod, and is " +
		"taken over: t-1"},
}

func TestEveryFlowOfTheReferenceHasATranscript(t *testing.T) {
	for _, f := range flows {
		t.Run(f.flow, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", f.transcript+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(strings.Split(string(text), "\n"), f.line) {
				t.Errorf("%s does not have the line %q", f.transcript, f.line)
			}
		})
	}
}
