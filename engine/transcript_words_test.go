package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// The types that transcripts use: an ordinary resource needs no word, the others are said before the name.
var types = map[string]tokens.Type{
	"":          "test:x:R",
	"other":     "test:x:S",
	"component": "test:x:C",
	"composite": "test:x:G", // a component, too
	"provider":  "pulumi:providers:test",
	"stack":     "pulumi:pulumi:Stack",
	"binding":   engine.BindingType,
}

// name is what a transcript's name of a resource stands for.
type name struct {
	urn urn.URN
	id  string // of the last state that the program was told
}

// item is "[kind] name prop=value… [option…]".
type item struct {
	kind, name string
	props      []string
	opts       []string
}

func parseItem(s string) (item, error) {
	var it item
	if i := strings.IndexByte(s, '['); i >= 0 {
		if !strings.HasSuffix(s, "]") {
			return it, fmt.Errorf("an option list that does not end")
		}
		it.opts = strings.Fields(s[i+1 : len(s)-1])
		s = s[:i]
	}
	words := strings.Fields(s)
	if len(words) > 0 && words[0] == "stack" {
		words = slices.Insert(words, 1, "stack")
	}
	if len(words) > 1 {
		if _, ok := types[words[0]]; ok {
			it.kind, words = words[0], words[1:]
		}
	}
	if len(words) == 0 {
		return it, fmt.Errorf("no name")
	}
	it.name, it.props = words[0], words[1:]
	slices.Sort(it.props)
	return it, nil
}

// bag makes a bag of "prop=value" words; its digest is its text.
func bag(props []string) engine.Bag {
	text := strings.Join(props, " ")
	if text == "" {
		return engine.Bag{}
	}
	inline, _ := json.Marshal(text)
	return engine.Bag{Digest: text, Inline: inline}
}

// merged are the inputs of a bag with those that a binding adds.
func merged(own, added engine.Bag) engine.Bag {
	props := strings.Fields(own.Digest)
	for _, p := range strings.Fields(added.Digest) {
		key, _, _ := strings.Cut(p, "=")
		props = slices.DeleteFunc(props, func(p string) bool { return strings.HasPrefix(p, key+"=") })
		props = append(props, p)
	}
	slices.Sort(props)
	return bag(props)
}

// short is how a transcript names a URN: by its name, after the types of its parents if it has any but the stack.
func short(u urn.URN) string {
	if u == "" {
		return "(none)"
	}
	prefix := ""
	if parents, _, ok := strings.Cut(string(u.QualifiedType()), "$"+string(u.Type())); ok && parents != "" {
		for _, p := range strings.Split(parents, "$") {
			prefix += strings.ToLower(string(tokens.Type(p).Name())) + "/"
		}
	}
	if u.QualifiedType() == types["other"] {
		prefix = "other:"
	}
	if u.Type() == types["stack"] {
		return "stack"
	}
	return prefix + u.Name()
}

// urnOf is what a name stands for: what it was given to last, or an ordinary resource without a parent. A word with
// "::" stands for itself, and so does what follows "bare:".
func (w *stage) urnOf(s string) urn.URN {
	if bare, ok := strings.CutPrefix(s, "bare:"); ok {
		return urn.URN(bare)
	}
	if strings.Contains(s, "::") || strings.Contains(s, "*") {
		return urn.URN(s)
	}
	if n, ok := w.names[s]; ok {
		return n.urn
	}
	return makeURN("", types[""], s)
}

func (w *stage) urnsOf(s string) []urn.URN {
	var out []urn.URN
	for _, part := range strings.Split(s, ",") {
		out = append(out, w.urnOf(part))
	}
	return out
}

func makeURN(parent urn.URN, typ tokens.Type, name string) urn.URN {
	parentType := tokens.Type("")
	if parent != "" && parent.QualifiedType() != types["stack"] {
		parentType = parent.QualifiedType()
	}
	return urn.New("dev", "proj", parentType, typ, name)
}

// state makes a stored state: the options of a registration, and those that only a stored state has.
func (w *stage) state(it item) (engine.State, error) {
	reg, rest, err := w.registration(it)
	if err != nil {
		return engine.State{}, err
	}
	s := engine.State{
		URN: makeURN(reg.Parent, reg.Type, reg.Name), Type: reg.Type, Custom: reg.Custom, Parent: reg.Parent,
		Provider: reg.Provider, Inputs: reg.Inputs, Outputs: reg.Inputs, Dependencies: reg.Dependencies,
		PropertyDependencies: reg.PropertyDependencies, Protect: reg.Protect != nil && *reg.Protect,
		RetainOnDelete: reg.RetainOnDelete != nil && *reg.RetainOnDelete, DeletedWith: reg.DeletedWith,
		ReplaceWith: reg.ReplaceWith, Trigger: reg.Trigger, TriggerValue: reg.TriggerValue, ImportID: reg.ImportID,
		IgnoreChanges: reg.IgnoreChanges, Hooks: reg.Hooks, Extension: reg.Extension,
		Timeouts: reg.Timeouts,
	}
	if s.Custom {
		s.ID = it.name + "-0"
	}
	for _, a := range reg.Aliases {
		s.Aliases = append(s.Aliases, a.URN)
	}
	for _, o := range rest {
		key, value, _ := strings.Cut(o, "=")
		switch key {
		case "id":
			s.ID = value
		case "external":
			s.External = true
		case "delete":
			s.Delete = true
		case "taint":
			s.Taint = true
		case "snippet":
			s.Snippet = "s"
		case "pending-replacement":
			s.PendingReplacement = true
		case "refresh-before-update":
			s.RefreshBeforeUpdate = true
		case "view-of":
			s.ViewOf, s.Parent = w.urnOf(value), w.urnOf(value)
			s.URN = makeURN(s.Parent, s.Type, reg.Name)
		case "init-error":
			s.InitErrors = []string{value}
		default:
			return s, fmt.Errorf("a stored state has no option %q", o)
		}
	}
	w.names[short(s.URN)] = name{s.URN, s.ID}
	return s, nil
}

// registration reads what a program registers; options that it does not know are given back.
func (w *stage) registration(it item) (engine.Registration, []string, error) {
	component := slices.Contains([]string{"component", "composite", "stack", "binding"}, it.kind)
	g := engine.Registration{Type: types[it.kind], Name: it.name, Custom: !component, Inputs: bag(it.props)}
	if it.kind == "stack" {
		g.Name = "proj-dev"
	}
	var rest []string
	for _, o := range it.opts {
		if property, on, ok := strings.Cut(o, "<-"); ok {
			g.PropertyDependencies = append(g.PropertyDependencies, engine.PropertyDependency{
				Property: property, URNs: w.urnsOf(on),
			})
			for _, u := range w.urnsOf(on) {
				if !slices.Contains(g.Dependencies, u) {
					g.Dependencies = append(g.Dependencies, u)
				}
			}
			continue
		}
		key, value, _ := strings.Cut(o, "=")
		if !w.option(&g, key, value) {
			rest = append(rest, o)
		}
	}
	digest, err := json.Marshal(g)
	g.Digest = string(digest)
	return g, rest, err
}

// option sets one option of a registration; it reports whether there is such an option.
func (w *stage) option(g *engine.Registration, key, value string) bool {
	yes := value != "false"
	switch key {
	case "parent":
		g.Parent = w.urnOf(value)
	case "on":
		g.Dependencies = append(g.Dependencies, w.urnsOf(value)...)
	case "provider":
		u := w.urnOf(value)
		g.Provider = snapshot.JoinReference(u, w.names[value].id)
	case "protect":
		g.Protect = &yes
	case "retain":
		g.RetainOnDelete = &yes
	case "delete-before-replace":
		g.DeleteBeforeReplace = &yes
	case "remote":
		g.Remote = true
	case "alias":
		g.Aliases = append(g.Aliases, engine.Alias{URN: w.urnOf(value)})
	case "alias-name":
		g.Aliases = append(g.Aliases, engine.Alias{Name: value})
	case "alias-no-parent":
		g.Aliases = append(g.Aliases, engine.Alias{NoParent: true})
	case "import":
		g.ImportID = value
	case "ignore":
		g.IgnoreChanges = strings.Split(value, ",")
	case "with":
		g.DeletedWith = w.urnOf(value)
	case "replace-with":
		g.ReplaceWith = w.urnsOf(value)
	case "trigger":
		g.Trigger = bag([]string{"value=" + value})
		g.TriggerValue = strings.TrimSuffix(strings.TrimPrefix(value, "secret("), ")")
	case "extension":
		g.Extension = bag([]string{value})
	case "position":
		g.SourcePosition = value
	case "timeout":
		seconds, _ := strconv.ParseFloat(value, 64)
		g.Timeouts = &engine.Timeouts{Create: seconds, Update: seconds, Delete: seconds}
	default:
		if !slices.Contains(hookPoints, engine.HookPoint(key)) {
			return false
		}
		if g.Hooks == nil {
			g.Hooks = engine.Hooks{}
		}
		g.Hooks[engine.HookPoint(key)] = strings.Split(value, ",")
	}
	return true
}
