package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// option is a list of URNs and patterns by which a request names resources, with the flag that users know it by.
type option struct {
	name     string
	patterns []string
}

// replaceOption is the flag that names what an update replaces.
const replaceOption = "--replace"

func (r *Run) options() []option {
	return []option{{"--target", r.goal.Targets}, {"--exclude", r.goal.Excludes}, {replaceOption, r.goal.Replace}}
}

// refuseUnmatched fails an update, before anything starts, that names resources which cannot be there: by something
// else than a URN, or, if no program can declare them, by a URN that the stack does not have. It reports whether there
// are any. An update with a program accepts a target that the stack does not have, because the program may declare the
// resource for the first time; failUnmatched asks again at the end of the program. What is to be replaced must be
// there.
func (r *Run) refuseUnmatched() bool {
	return r.eachUnmatched(func(o option, p string) string {
		switch {
		case !urn.URN(p).IsValid():
			return fmt.Sprintf("%s %q names no resource of the stack, and is not a URN%s", o.name, p, r.meant(p))
		case !r.hasProgram(), o.name == replaceOption:
			return r.notFound(o, p)
		}
		return ""
	})
}

// failUnmatched fails an update whose program has not declared a resource that the request names and that the stack did
// not have either. It reports whether there are any.
// It runs before the deletions. A target with a typing error would otherwise restrict the update to nothing, and the
// update would look like one that found nothing to do. A program that failed is not asked: it may not have come as far.
func (r *Run) failUnmatched() bool {
	return r.eachUnmatched(r.notFound)
}

// notFound is the error about a URN that names nothing, with the URNs of the same name, if any.
func (r *Run) notFound(o option, p string) string {
	return fmt.Sprintf("%s %s could not be found in the stack%s", o.name, p, r.meant(snapshot.NameOf(urn.URN(p))))
}

// eachUnmatched reports every name that means no resource: as an error, with the sentence that why returns, or, of a
// pattern, as a warning once it is certain. It reports whether there was an error.
func (r *Run) eachUnmatched(why func(o option, pattern string) string) bool {
	failed := false
	known := r.known()
	for _, o := range r.options() {
		for _, p := range o.patterns {
			switch {
			// It names something.
			case known[urn.URN(p)], isPattern(p) && r.matchesAny(p):
			// A pattern may match nothing. That is certain when the program has ended, or at once without one.
			case isPattern(p):
				if r.Exit != nil || r.Waits != nil || !r.hasProgram() {
					r.diagnose("warning", "", "no resource matches %s %s%s", o.name, p, r.meantPattern(p))
				}
			default:
				if message := why(o, p); message != "" {
					failed = true
					// Before noteError, which sets FirstError.
					r.Misnamed = r.Misnamed || r.FirstError == ""
					r.diagnose("error", "", "%s", message)
					r.noteError(message)
				}
			}
		}
	}
	return failed
}

// known has the URNs that the stack had at first, and those that the program has declared; it is empty if nothing is
// named. What was deleted in this update counts: its slot in the base stays, with its state.
func (r *Run) known() map[urn.URN]bool {
	known := map[urn.URN]bool{}
	if !r.restricted() && len(r.goal.Replace) == 0 {
		return known
	}
	for i := range r.snap.BaseLen() {
		known[r.snap.BaseAt(i).URN] = true
	}
	for _, e := range r.Entries {
		known[e.URN], known[r.urnOf(e.Reg)] = true, true
	}
	return known
}

// matchesAny reports whether a pattern matches anything that known has.
func (r *Run) matchesAny(pattern string) bool {
	named := compile([]string{pattern})
	for i := range r.snap.BaseLen() {
		if named.match(r.snap.BaseAt(i).URN) {
			return true
		}
	}
	return slices.ContainsFunc(r.Entries, func(e *entry) bool { return named.match(e.URN) || named.match(r.urnOf(e.Reg)) })
}

// meantPattern suggests a pattern of names for one that does not begin as URNs do, or one whose wildcards do not stop
// at a colon, if that matches something.
func (r *Run) meantPattern(p string) string {
	if named := "**::" + p; !strings.Contains(p, ":") && r.matchesAny(named) {
		return fmt.Sprintf("; did you mean %s? (a pattern stands for the whole URN, and * for no colon)", named)
	}
	wider := strings.ReplaceAll(strings.ReplaceAll(p, "**", "*"), "*", "**")
	if !r.matchesAny(wider) {
		return ""
	}
	return fmt.Sprintf("; did you mean %s? (* stops at a colon)", wider)
}

// mostMeant is how many URNs a sentence suggests.
const mostMeant = 5

// meant suggests the URNs of the resources with a name: users often give the name alone, or a URN with another type or
// parent.
func (r *Run) meant(name string) string {
	var found []string
	add := func(u urn.URN) {
		if snapshot.NameOf(u) == name && !slices.Contains(found, string(u)) {
			found = append(found, string(u))
		}
	}
	for i := range r.snap.BaseLen() {
		add(r.snap.BaseAt(i).URN)
	}
	for _, e := range r.Entries {
		add(e.URN)
	}
	switch {
	case len(found) == 0:
		return "; `deployctl state ls --urns` lists those of the stack (in a shell, quote them: they may have a $)"
	case len(found) > mostMeant:
		found = append(found[:mostMeant], fmt.Sprintf("one of %d more", len(found)-mostMeant))
	}
	return "; did you mean " + strings.Join(found, " or ") + "? (In a shell, quote URNs: they may have a $.)"
}
