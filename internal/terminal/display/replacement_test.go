package display

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// replacing returns the events of a replacement that creates first or deletes first.
func replacing(name string, s step, deletesFirst bool) []deployments.WatchEvent {
	s.typ, s.name = bucket, name
	at := func(op apitype.OpType) step {
		s.op = op
		return s
	}
	deletion := at(apitype.OpDeleteReplaced)
	deletion.new, deletion.condemned = nil, !deletesFirst
	ends := []deployments.WatchEvent{deletion.begins(), deletion.ends()}
	creates := []deployments.WatchEvent{
		at(apitype.OpCreateReplacement).begins(), at(apitype.OpCreateReplacement).ends(),
		at(apitype.OpReplace).begins(), at(apitype.OpReplace).ends(),
	}
	if deletesFirst {
		return append(ends, creates...)
	}
	return append(creates, ends...)
}

func TestAPreviewInLinesHasOneLineForEachReplacementAndSaysWhichDeletesFirst(t *testing.T) {
	zone := step{old: map[string]any{"zone": "a"}, new: map[string]any{"zone": "b"}}
	kept := zone
	kept.retain = true
	left := step{op: apitype.OpDeleteReplaced, typ: bucket, name: "left", old: map[string]any{}, condemned: true}
	items := append(replacing("first", zone, true), replacing("after", zone, false)...)
	items = append(items, replacing("kept", kept, false)...)
	items = append(items, left.begins(), left.ends(), ended("succeeded", "", 1, map[string]int{"replace": 3}))
	want := `± deployctl:s3:Bucket first replace: delete, then create (zone)
    ~ zone: "a" → "b"
± deployctl:s3:Bucket after replace (zone)
    ~ zone: "a" → "b"
± deployctl:s3:Bucket kept replace: the original stays (retainOnDelete) (zone)
    ~ zone: "a" → "b"
± deployctl:s3:Bucket left delete original
Resources:
  ± 3 to replace
preview succeeded in 1s
`
	if got := shown(Options{Preview: true}, items...); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheTreeSaysWhichReplacementDeletesFirst(t *testing.T) {
	zone := step{old: map[string]any{"zone": "a"}, new: map[string]any{"zone": "b"}}
	s := newScene(t, 120, 24, Options{Preview: true})
	s.at(0, append(replacing("first", zone, true), replacing("after", zone, false)...)...)
	s.at(1, ended("succeeded", "", 1, map[string]int{"replace": 2}))
	s.tree.Close()
	s.shows(`
± deployctl:s3:Bucket after  replace
    ~ zone: "a" → "b"
± deployctl:s3:Bucket first  replace: delete, then create
    ~ zone: "a" → "b"

Resources:
  ± 2 to replace
preview succeeded in 1s
`)
}

func TestADeletionWithRetainOnDeleteIsShownAsARemovalFromTheState(t *testing.T) {
	keep := step{op: apitype.OpDelete, typ: bucket, name: "keep", old: map[string]any{}, retain: true}
	gone := step{op: apitype.OpDelete, typ: bucket, name: "gone", old: map[string]any{}}
	items := []deployments.WatchEvent{
		keep.begins(), keep.ends(), gone.begins(), gone.ends(), ended("succeeded", "", 1,
			map[string]int{"delete": 1, "retain": 1}),
	}
	for _, c := range []struct {
		name    string
		preview bool
		want    string
	}{
		{"in a preview", true, `- deployctl:s3:Bucket keep remove from the state only (retainOnDelete)
- deployctl:s3:Bucket gone delete
Resources:
  - 1 to delete
  - 1 to remove from the state only (retainOnDelete)
preview succeeded in 1s
`},
		{"in a run", false, `- deployctl:s3:Bucket keep removing from the state only
- deployctl:s3:Bucket keep removed from the state only (retainOnDelete)
- deployctl:s3:Bucket gone deleting
- deployctl:s3:Bucket gone deleted
Resources:
  - 1 deleted
  - 1 removed from the state only (retainOnDelete)
up succeeded in 1s (organization/shop/dev/7)
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := shown(Options{Preview: c.preview}, items...); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	s := newScene(t, 120, 24, Options{Preview: true}).at(0, items...)
	s.tree.Close()
	if text := s.term.String(); !strings.Contains(text, "keep  remove from the state only (retainOnDelete)") {
		t.Errorf("the tree is\n%s", text)
	}
}
