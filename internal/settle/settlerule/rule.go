package settlerule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Proof is what shows that a resource that was found is the one that a create has made.
type Proof string

// The proofs.
const (
	// Seed: one of the inputs that make the id was generated for this create.
	Seed Proof = "seed"
	// ByMark: it bears the mark of this create.
	ByMark Proof = "mark"
	// Absence: it was looked for before the create, and was not there.
	Absence Proof = "absence"
)

// Rule is one way to find a resource of a type. It has one of Read, List, Invoke, Repeat and Nothing.
type Rule struct {
	// Read renders the id, which the provider is asked to read.
	Read Template
	// List finds the resource in the provider's list of its type.
	List *List
	// Invoke finds the ids of candidates by a function of the provider.
	Invoke *Invoke
	// Repeat: to create again is harmless, which was proven.
	Repeat bool
	// Nothing: a create has no effect outside of the state.
	Nothing bool

	Mark  Mark    // where a mark can be put
	Proof []Proof // what counts; nil: all
	Pause time.Duration
	Items int

	// Source, Confidence and Versions say where the rule is from, how sure it is, and with which versions of the plugin
	// it may be used.
	Source, Confidence, Versions string
	versions                     semver.Range
}

// List is a query for the resources of a type. Of what the provider lists, the one is taken that matches.
type List struct {
	Query map[string]Argument
	Match []Match
}

// Match is a condition: a property of the resource has the text of a template.
type Match struct {
	Path     resource.PropertyPath
	Template Template
}

// Invoke is a call of a function of the provider that finds candidates.
type Invoke struct {
	Function string
	Args     map[string]Argument
	IDs      resource.PropertyPath // in the result; [*] goes through a list
	After    string                // of each id only what follows the last occurrence
	Match    []Match
}

// Rules are the rules of a type, in the order in which they are tried.
type Rules []Rule

// Package is what applies to all types of a package: rules of types that have none of their own, and values.
type Package struct {
	Rules  Rules              `json:"rules"`
	Values map[string]Sources `json:"values"`
}

// Source is where a value comes from: a template, or a function of the provider.
type Source struct {
	Template Template
	Function string
	Args     map[string]Argument // constants
	Result   resource.PropertyPath
}

// Sources are asked in order, until one has a value.
type Sources []Source

// Set is what is known about how to settle creates of a type.
type Set struct {
	Rules  Rules
	Values map[string]Sources
	From   string // who says it, for people
}

// Kind returns the word for what a rule does.
func (r *Rule) Kind() string {
	switch {
	case !r.Read.IsZero():
		return "read"
	case r.List != nil:
		return "list"
	case r.Invoke != nil:
		return "invoke"
	case r.Repeat:
		return "repeat"
	case r.Nothing:
		return "nothing"
	}
	return ""
}

// Harmless reports whether a create may simply be made again.
func (r *Rule) Harmless() bool { return r.Repeat || r.Nothing }

// Accepts reports whether something counts as a proof of ownership.
func (r *Rule) Accepts(p Proof) bool { return r.Proof == nil || slices.Contains(r.Proof, p) }

// AppliesTo reports whether the rule may be used with a version of the plugin. One that is not known is no reason
// against it.
func (r *Rule) AppliesTo(version string) bool {
	v, err := semver.ParseTolerant(version)
	return r.versions == nil || err != nil || r.versions(v)
}

// Matches are the conditions on what is found.
func (r *Rule) Matches() []Match {
	switch {
	case r.List != nil:
		return r.List.Match
	case r.Invoke != nil:
		return r.Invoke.Match
	}
	return nil
}

// Variables returns the variables of all templates of a rule.
func (r *Rule) Variables() []Variable {
	var all []Variable
	r.templates(func(t Template) { all = append(all, t.Variables()...) })
	return all
}

// WithoutMatch returns a rule that finds all candidates, and not only those that match.
func (r *Rule) WithoutMatch() *Rule {
	all := *r
	if r.List != nil {
		all.List = &List{Query: r.List.Query}
	}
	if r.Invoke != nil {
		call := *r.Invoke
		call.Match = nil
		all.Invoke = &call
	}
	return &all
}

// NeedsMark reports whether the rule can be used only for what bears a mark.
func (r *Rule) NeedsMark() bool {
	return slices.ContainsFunc(r.Variables(), func(v Variable) bool { return v.Origin == Marked })
}

// templates calls visit for each template of a rule, in an order that is always the same.
func (r *Rule) templates(visit func(Template)) {
	if !r.Read.IsZero() {
		visit(r.Read)
	}
	arguments := map[string]Argument{}
	switch {
	case r.List != nil:
		arguments = r.List.Query
	case r.Invoke != nil:
		arguments = r.Invoke.Args
	}
	for _, key := range slices.Sorted(maps.Keys(arguments)) {
		arguments[key].templates(visit)
	}
	for _, m := range r.Matches() {
		visit(m.Template)
	}
}

// Validate checks that a rule can be used, and fills in what it leaves out.
func (r *Rule) Validate() error {
	kinds := 0
	for _, is := range []bool{!r.Read.IsZero(), r.List != nil, r.Invoke != nil, r.Repeat, r.Nothing} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return fmt.Errorf("a rule has one of read, list, invoke, repeat and nothing")
	case r.Harmless() && (r.Proof != nil || !r.Mark.IsZero() || r.Pause != 0 || r.Items != 0):
		return fmt.Errorf("nothing is looked for by %s, so it has no mark, proof, pause or items", r.Kind())
	case r.List != nil && len(r.List.Query)+len(r.List.Match) == 0:
		return fmt.Errorf("list needs a query or a match, which tell the resource from others")
	case r.NeedsMark() && r.Mark.IsZero():
		return fmt.Errorf("${mark} needs mark, which says where it is put")
	case len(r.Matches()) > maxMatch:
		return fmt.Errorf("match has at most %d properties", maxMatch)
	case r.Pause < 0 || r.Pause > MaxPause:
		return fmt.Errorf("pause is at most %s", MaxPause)
	case r.Items < 0 || r.Items > MaxItems:
		return fmt.Errorf("items is 1 to %d", MaxItems)
	}
	for _, p := range r.Proof {
		if p != Seed && p != ByMark && p != Absence {
			return fmt.Errorf("proof is a list of seed, mark and absence, without %q", p)
		}
	}
	for _, text := range []string{r.Source, r.Confidence, r.Versions} {
		if len(text) > maxName || !printable(text) {
			return fmt.Errorf("source, confidence and versions have at most %d printable bytes", maxName)
		}
	}
	if i := r.Invoke; i != nil {
		if err := checkFunction(i.Function); err != nil {
			return err
		}
		if len(i.IDs) == 0 {
			return fmt.Errorf("invoke needs ids, a path in the result of the function")
		}
	}
	if r.Pause == 0 {
		r.Pause = DefaultPause
	}
	if r.Items == 0 {
		r.Items = DefaultItems
	}
	if r.Versions == "" {
		return nil
	}
	for part := range strings.SplitSeq(r.Versions, "||") {
		if strings.TrimSpace(part) == "" { // of which semver makes a range that panics
			return fmt.Errorf("versions has an alternative that is empty")
		}
	}
	var err error
	if r.versions, err = semver.ParseRange(r.Versions); err != nil {
		return fmt.Errorf("versions is a range such as \">=6.0.0 <8.0.0\": %w", err)
	}
	return nil
}

// Renamed returns a rule with other paths of inputs, matches and marks, for rules that are written in the names of
// another system.
func (r Rule) Renamed(to func(resource.PropertyPath) (resource.PropertyPath, error)) (Rule, error) {
	var failed error
	path := func(p resource.PropertyPath) resource.PropertyPath {
		renamed, err := to(p)
		if err != nil && failed == nil {
			failed = err
		}
		return renamed
	}
	variable := func(v Variable) Variable {
		if v.Origin == Input {
			v.Path = path(v.Path)
		}
		return v
	}
	matches := func(of []Match) []Match {
		renamed := make([]Match, len(of))
		for i, m := range of {
			renamed[i] = Match{path(m.Path), m.Template.mapped(variable)}
		}
		return renamed
	}
	r.Read = r.Read.mapped(variable)
	if r.List != nil {
		r.List = &List{mappedAll(r.List.Query, variable), matches(r.List.Match)}
	}
	if r.Invoke != nil {
		i := *r.Invoke
		i.Args, i.Match = mappedAll(i.Args, variable), matches(i.Match)
		r.Invoke = &i
	}
	if !r.Mark.IsZero() {
		r.Mark.Path = path(r.Mark.Path)
	}
	return r, failed
}
