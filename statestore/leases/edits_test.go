package leases

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// FuzzEdits patches a deployment with edits of any form, which are refused or stay within the text.
func FuzzEdits(f *testing.F) {
	f.Add([]byte("abc"), 0, 1, "x", 2, 3, "y")
	f.Add([]byte("abc"), 2, 1, "", -1, 9, "")
	f.Fuzz(func(t *testing.T, text []byte, from, to int, one string, from2, to2 int, other string) {
		edits := []deployments.TextEdit{{From: from, To: to, Text: one}, {From: from2, To: to2, Text: other}}
		out, err := edit(text, edits)
		if err != nil {
			return
		}
		want := string(text[:from]) + one + string(text[to:from2]) + other + string(text[to2:])
		if string(out) != want {
			t.Errorf("%q with %v becomes %q", text, edits, out)
		}
	})
}
