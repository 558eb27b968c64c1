package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// finder is how a create with certain inputs is found: a rule whose variables are all known.
type finder struct {
	*settlerule.Rule
	from    string               // who says it
	id      string               // to read
	query   resource.PropertyMap // of a list, or the arguments of a function
	matches []string             // the texts of Rule.Matches
	place   settlerule.Mark      // where resources of the type bear their marks
}

// String says for people how the resource is looked for.
func (f *finder) String() string {
	switch {
	case f.List != nil:
		return "in the list of its type (" + f.from + ")"
	case f.Invoke != nil:
		return "by " + f.Invoke.Function + " (" + f.from + ")"
	}
	return fmt.Sprintf("as %s (%s)", f.id, f.from)
}

func newFinder(rule *settlerule.Rule, from string, scope settlerule.Scope) (f *finder, err error) {
	f = &finder{Rule: rule, from: from}
	switch {
	case !rule.Read.IsZero():
		if f.id, err = rule.Read.Render(scope); err == nil && !settlerule.Usable(f.id) {
			err = &settlerule.MissingError{Reason: "the id that it makes is no text of 1 to 2048 printable bytes"}
		}
	case rule.List != nil:
		f.query, err = settlerule.RenderObject(rule.List.Query, scope)
	case rule.Invoke != nil:
		f.query, err = settlerule.RenderObject(rule.Invoke.Args, scope)
	}
	for _, m := range rule.Matches() {
		if err != nil {
			break
		}
		var text string
		text, err = m.Template.Render(scope)
		f.matches = append(f.matches, text)
	}
	return f, err
}

// digest tells what is looked for from what another rule looks for.
func (f *finder) digest() string {
	function, paths := "", []string{}
	if f.Invoke != nil {
		function = f.Invoke.Function
	}
	for _, m := range f.Matches() {
		paths = append(paths, m.Path.String())
	}
	text, _ := json.Marshal([]any{f.Kind(), f.id, function, f.query.Mappable(), paths, f.matches}) // texts are always JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// anyRule allows all rules.
func anyRule(*settlerule.Rule) bool { return true }

// hint says which rule would help to find a resource of a type.
func hint(t tokens.Type, inputs resource.PropertyMap) string {
	for _, name := range []resource.PropertyKey{"name", "bucket", "identifier", "id"} {
		if v, ok := inputs[name]; ok && v.IsString() {
			return fmt.Sprintf(`deployctl:settle {"%s": {"read": "${%s}"}} if that input is its id`, t, name)
		}
	}
	return fmt.Sprintf("a rule for %s in deployctl:settle: read if its id follows from its inputs, list or invoke if the "+
		"server makes it", t)
}

// notRuled says why no rule could be used.
func notRuled(t tokens.Type, inputs resource.PropertyMap, why string) string {
	if why != "" {
		return "no settle rule can be used: " + why
	}
	return fmt.Sprintf("no settle rule says how to find a %s; it would be found by %s", t, hint(t, inputs))
}

// matching reports whether a candidate has the properties that the rule asks for.
func (f *finder) matching(found plugin.ReadResponse) bool {
	for i, m := range f.Matches() {
		if settlerule.Text(found.Outputs, m.Path) != f.matches[i] {
			return false
		}
	}
	return true
}
