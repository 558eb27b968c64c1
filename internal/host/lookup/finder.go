package lookup

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

// Finder is how a create with certain inputs is found: a rule whose variables are all known.
type Finder struct {
	*settlerule.Rule
	From    string               // who says it
	ID      string               // to read
	Query   resource.PropertyMap // of a list, or the arguments of a function
	matches []string             // the texts of Rule.Matches
	Place   settlerule.Mark      // where resources of the type bear their marks
}

// String says for people how the resource is looked for.
func (f *Finder) String() string {
	switch {
	case f.List != nil:
		return "in the list of its type (" + f.From + ")"
	case f.Invoke != nil:
		return "by " + f.Invoke.Function + " (" + f.From + ")"
	}
	return fmt.Sprintf("as %s (%s)", f.ID, f.From)
}

// NewFinder returns what finds by a rule, with the variables of a scope; from says whose rule it is. A value that is
// missing is a settlerule.MissingError.
func NewFinder(rule *settlerule.Rule, from string, scope settlerule.Scope) (f *Finder, err error) {
	f = &Finder{Rule: rule, From: from}
	switch {
	case !rule.Read.IsZero():
		if f.ID, err = rule.Read.Render(scope); err == nil && !settlerule.Usable(f.ID) {
			err = &settlerule.MissingError{Reason: "the id that it makes is no text of 1 to 2048 printable bytes"}
		}
	case rule.List != nil:
		f.Query, err = settlerule.RenderObject(rule.List.Query, scope)
	case rule.Invoke != nil:
		f.Query, err = settlerule.RenderObject(rule.Invoke.Args, scope)
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

// Digest tells what is looked for from what another rule looks for.
func (f *Finder) Digest() string {
	function, paths := "", []string{}
	if f.Invoke != nil {
		function = f.Invoke.Function
	}
	for _, m := range f.Matches() {
		paths = append(paths, m.Path.String())
	}
	text, _ := json.Marshal([]any{f.Kind(), f.ID, function, f.Query.Mappable(), paths, f.matches}) // texts are always JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// AnyRule allows all rules.
func AnyRule(*settlerule.Rule) bool { return true }

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

// NotRuled says why no rule could be used.
func NotRuled(t tokens.Type, inputs resource.PropertyMap, why string) string {
	if why != "" {
		return "no settle rule can be used: " + why
	}
	return fmt.Sprintf("no settle rule says how to find a %s; it would be found by %s", t, hint(t, inputs))
}

// Matching reports whether a candidate has the properties that the rule asks for.
func (f *Finder) Matching(found plugin.ReadResponse) bool {
	for i, m := range f.Matches() {
		if settlerule.Text(found.Outputs, m.Path) != f.matches[i] {
			return false
		}
	}
	return true
}
