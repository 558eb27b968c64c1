package engine

import "github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

// Pulumi keeps resources that `pulumi do` has made as snippets in the state: small programs that its engine runs beside
// that of the project in every up. This one does not run them. So that their resources are not deleted as undeclared,
// an up leaves them alone, as if they were excluded, with what they need. A destroy deletes them, as Pulumi's does; a
// refresh reads them.

// ofSnippet reports that a stored resource belongs to a snippet, and is left alone.
func (r *Run) ofSnippet(u urn.URN) bool {
	if !r.snippets {
		return false
	}
	live := r.snap.Live(u)
	return live != nil && live.Snippet != ""
}

// declaresSnippet reports that the program registers what belongs to a snippet.
func (r *Run) declaresSnippet(old *State) bool { return r.snippets && old != nil && old.Snippet != "" }

// reportSnippets says how many resources of snippets stay as they are.
func (r *Run) reportSnippets() {
	if !r.snippets {
		return
	}
	n := 0
	r.snap.All(func(s *State) {
		if s.Snippet != "" {
			n++
		}
	})
	r.diagnose("info", "", "resources of snippets (`pulumi do`) that stay as they are, with what they need: %d", n)
}
