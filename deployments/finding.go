package deployments

import (
	"fmt"
	"strconv"
	"strings"
)

// FindingKind says what a Finding is about.
type FindingKind string

// The kinds of findings.
const (
	// FoundOrphan: a resource exists, is the stack's as far as can be seen, and is not in its state.
	FoundOrphan FindingKind = "orphan"
	// NotListed: the resources of a type could not be listed, or not wholly.
	NotListed FindingKind = "not listed"
	// NotFound: what would be created was not found, or could not be looked for.
	NotFound FindingKind = "not found"
)

// Finding is what a preview that surveys tells in a diagnostic. ParseFinding reads what String writes.
type Finding struct {
	Kind FindingKind
	Type string
	ID   string // of an orphan
	Why  string
}

// String returns the text of a diagnostic.
func (f Finding) String() string {
	if f.Kind == FoundOrphan {
		return fmt.Sprintf("%s %s %q: %s", f.Kind, f.Type, f.ID, f.Why)
	}
	return fmt.Sprintf("%s %s: %s", f.Kind, f.Type, f.Why)
}

// ParseFinding reads the text of a diagnostic; ok is false if it is none of a finding.
func ParseFinding(text string) (f Finding, ok bool) {
	for _, f.Kind = range []FindingKind{FoundOrphan, NotListed, NotFound} {
		rest, is := strings.CutPrefix(text, string(f.Kind)+" ")
		if !is {
			continue
		}
		if f.Kind != FoundOrphan {
			f.Type, f.Why, ok = strings.Cut(rest, ": ")
			return f, ok
		}
		f.Type, rest, _ = strings.Cut(rest, " ")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return f, false
		}
		f.ID, _ = strconv.Unquote(quoted)
		f.Why, ok = strings.CutPrefix(rest[len(quoted):], ": ")
		return f, ok
	}
	return Finding{}, false
}
