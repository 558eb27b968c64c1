package settlerule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Explain says in a sentence what a rule does.
func (r *Rule) Explain() string {
	text := ""
	switch {
	case r.Nothing:
		return "A create has no effect outside of the state: it is made again." + r.origin()
	case r.Repeat:
		return "A create may be repeated: it is made again." + r.origin()
	case !r.Read.IsZero():
		text = "The provider reads the id " + r.Read.String()
	case r.List != nil:
		text = "The provider lists the type" + spelled(r.List.Query, " where ") + conditions(r.List.Match)
	case r.Invoke != nil:
		text = fmt.Sprintf("The function %s%s, has ids at %s", r.Invoke.Function, spelled(r.Invoke.Args, ", asked where "),
			spell(r.Invoke.IDs)) + conditions(r.Invoke.Match)
	}
	text += fmt.Sprintf("; what is not found is looked for again after %s.", r.Pause)
	if r.Read.IsZero() {
		text += fmt.Sprintf(" At most %d resources are looked at.", r.Items)
	}
	var proofs []string
	for _, p := range []struct {
		proof Proof
		text  string
		can   bool
	}{
		{Seed, "it was found by a name that was generated for it", true},
		{ByMark, "it bears the mark of its create at " + r.Mark.String(), !r.Mark.IsZero()},
		{Absence, "it was looked for before its create and was not there", true},
	} {
		if p.can && r.Accepts(p.proof) {
			proofs = append(proofs, p.text)
		}
	}
	if len(proofs) == 0 {
		return text + " Nothing shows that what is found is ours: a person decides." + r.origin()
	}
	return text + " What is found is ours if " + strings.Join(proofs, ", or if ") + "." + r.origin()
}

// origin says where a rule is from.
func (r *Rule) origin() string {
	text := ""
	if r.Source != "" {
		text += " Source: " + r.Source + "."
	}
	if r.Confidence != "" {
		text += " Confidence: " + r.Confidence + "."
	}
	if r.Versions != "" {
		text += " For versions " + r.Versions + "."
	}
	return text
}

// spelled lists arguments.
func spelled(arguments map[string]Argument, before string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(arguments)) {
		all = append(all, key+" is "+arguments[key].String())
	}
	if len(all) == 0 {
		return ""
	}
	return before + strings.Join(all, " and ")
}

// conditions lists matches.
func conditions(matches []Match) string {
	var all []string
	for _, m := range matches {
		all = append(all, spell(m.Path)+" is "+m.Template.String())
	}
	if len(all) == 0 {
		return ""
	}
	return "; of these, the one whose " + strings.Join(all, " and ")
}

// String returns an argument for people.
func (a Argument) String() string {
	switch {
	case a.List != nil:
		items := make([]string, len(a.List))
		for i, item := range a.List {
			items[i] = item.String()
		}
		return "[" + strings.Join(items, ", ") + "]"
	case a.Object != nil:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(a.Object)) {
			parts = append(parts, key+": "+a.Object[key].String())
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case a.Literal != nil:
		return fmt.Sprint(a.Literal)
	}
	return a.Template.String()
}
