package main

import (
	"fmt"
	"slices"
)

// add adds a step, mostly at the end.
func (g *generator) add() {
	at := len(g.steps)
	if g.chance(25) {
		at = max(g.IntN(at+1), g.transformed())
	}
	s := step{Verb: "register", Name: g.newName(), Fields: values{}, Properties: values{}, Options: values{}}
	switch n := g.IntN(100); {
	case n < 12:
		s.Fields["type"], s.Fields["component"] = componentType, "true"
		g.use("component")
	case n < 18:
		s.Fields["type"], s.Properties["account"] = providerType, fmt.Sprintf("a%d", g.IntN(3))
		s.Properties["endpoint"] = "'${config.fake:endpoint}'"
		if g.chance(20) {
			s.Options["envVarMappings"] = "{FAKE_ONE: FAKE_OTHER}"
			g.use("envVarMappings")
		}
		g.use("provider resource")
	case n < 23:
		s.Fields["type"], s.Fields["remote"] = groupType, "true"
		s.Properties["prefix"] = g.physical(s.Name)
		g.use("remote component")
	case n < 32 && g.before(at, isManaged) != nil:
		if n < 28 {
			s = g.reading(at, s)
		} else {
			s = g.invocation(at, s)
		}
		g.insert(at, s)
		return
	case n < 39 && g.stashes:
		s.Fields["type"], s.Properties["input"] = stashType, g.kept()
		g.use("Stash")
	case n < 43:
		s.Fields["type"] = namedType
		s.Properties["name"] = g.physical(s.Name)
		s.Options["import"] = s.Properties["name"]
		g.made = append(g.made, change{Make: s.Properties["name"]})
		g.use("import")
	default:
		g.custom(at, &s)
	}
	if at > 0 && !isProvider(s) {
		g.relate(at, &s)
	}
	g.insert(at, s)
	if isComponent(s) && g.chance(50) {
		g.insert(at+1, step{Verb: "outputs", Name: s.Name, Properties: values{"size": fmt.Sprint(g.IntN(9))}})
	}
}

// transformed returns the first position behind the transforms of the stack. Whether one concerns what was registered
// just before it is left to chance.
func (g *generator) transformed() (first int) {
	for i, s := range g.steps {
		if s.Verb == "transform" && s.Fields["stack"] != "" {
			first = i + 1
		}
	}
	return first
}

func (g *generator) insert(at int, s step) { g.steps = slices.Insert(g.steps, at, s) }

// custom makes a step register a thing in the cloud.
func (g *generator) custom(at int, s *step) {
	types := []string{autoType, autoType, autoType, serverType, serverType, exclusiveType, exclusiveType, namedType,
		namedType, taggedType, opaqueType, fleetType, fleetType}
	s.Fields["type"] = types[g.IntN(len(types))]
	if p := g.before(at, isPackage); p != nil && g.chance(30) {
		s.Fields["type"], s.Options["package"] = otherType, p.Name
		g.use("a resource of a parameterized package")
	}
	if typ := s.Fields["type"]; typ == namedType || typ == exclusiveType || typ == fleetType || typ == otherType {
		s.Properties["name"] = g.physical(s.Name)
	}
	if g.chance(50) {
		s.Properties["size"] = fmt.Sprint(2 + g.IntN(8))
	}
	switch s.Fields["type"] {
	case fleetType:
		s.Properties["settings"] = g.parts()
		g.use("views")
	case opaqueType:
		g.use("a provider that does not know what has changed")
	}
	if s.Properties["settings"] == "" && g.chance(20) {
		s.Properties["settings"] = fmt.Sprintf("{a: %d, b: [x, %d]}", g.IntN(3), g.IntN(3))
	}
	if g.chance(20) {
		s.Properties["secretText"] = fmt.Sprintf("!secret hush%d", g.IntN(3))
		g.use("secret input")
	}
}

// kept is a value for a Stash.
func (g *generator) kept() string {
	return []string{"text", "{a: 1, b: [x]}", "!secret hush", "7", "[1, {c: !secret hush}]", "other"}[g.IntN(6)]
}

// reading is a step that reads what another step manages.
func (g *generator) reading(at int, s step) step {
	of := g.before(at, isManaged)
	s.Verb = "read"
	s.Fields = values{"type": of.Fields["type"], "id": "'${" + of.Name + ".id}'"}
	if p := of.Options["package"]; p != "" {
		s.Options["package"] = p
	}
	g.use("read")
	return s
}

// invocation is a step that calls a function with an output of another step's resource.
func (g *generator) invocation(at int, s step) step {
	of := g.before(at, isManaged)
	s.Verb = "invoke"
	s.Fields = values{"token": "fake:index:find"}
	s.Properties = values{"urn": "'${" + of.Name + ".urn}'", "kind": "'${" + of.Name + ".zone}'"}
	g.use("invoke")
	if !g.stashes {
		s.Fields["token"], s.Properties = getResource, values{"urn": s.Properties["urn"]}
		if g.outputs == nil {
			g.outputs = values{}
		}
		g.outputs["found"] = "['${" + s.Name + ".provider}', '${" + s.Name + ".id}', '${" + s.Name + ".state.size}']"
		g.use("getResource")
	}
	return s
}

// relate makes a step refer to some that stand before position at.
func (g *generator) relate(at int, s *step) {
	if g.chance(30) {
		if parent := g.before(at, isComponent); parent != nil {
			s.Options["parent"] = parent.Name
			g.use("parent")
		}
	}
	if isManaged(*s) {
		g.link(at, s)
	}
	if p := g.before(at, isProvider); p != nil && s.Fields["type"] != otherType && g.chance(40) {
		if isManaged(*s) {
			s.Options["provider"] = p.Name
			g.use("provider")
		} else {
			s.Options["providers"] = "{fake: " + p.Name + "}"
			g.use("providers")
		}
	}
	if on := g.before(at, isRegistered); on != nil && g.chance(20) {
		s.Options["dependsOn"] = "[" + on.Name + "]"
		g.use("dependsOn")
	}
	for range g.IntN(3) {
		g.option(at, s)
	}
}

// link makes inputs of outputs.
func (g *generator) link(at int, s *step) {
	of := g.before(at, isManaged)
	if of == nil {
		return
	}
	switch {
	case g.chance(25):
		s.Properties["attachedTo"] = "'${" + of.Name + ".arn}'"
		g.use("input that replaces, from an output")
	case g.chance(50):
		s.Properties["links"] = "['${" + of.Name + ".arn}', '${" + of.Name + ".id}']"
		g.use("input from an output")
	}
}

// mutation changes the program; it reports whether it found something to change.
type mutation struct {
	weight int
	change func(*generator) bool
}

var mutations = []mutation{
	{12, func(g *generator) bool { g.add(); return true }},
	{10, (*generator).remove},
	{12, (*generator).update},
	{18, (*generator).replace},
	{12, (*generator).rename},
	{7, (*generator).reparent},
	{16, (*generator).toggle},
	{6, (*generator).changeProvider},
	{4, (*generator).reorder},
	{4, (*generator).relink},
	{5, (*generator).output},
	{5, (*generator).retype},
	{6, (*generator).becomeSecret},
	{5, (*generator).changeParts},
}

// mutate makes one change.
func (g *generator) mutate() {
	total := 0
	for _, m := range mutations {
		total += m.weight
	}
	for range 20 {
		n := g.IntN(total)
		i := 0
		for n >= mutations[i].weight {
			n -= mutations[i].weight
			i++
		}
		if mutations[i].change(g) {
			return
		}
	}
}

// remove removes a step and what refers to it.
func (g *generator) remove() bool {
	if len(g.steps) < 2 {
		return false
	}
	at := g.IntN(len(g.steps))
	name := g.steps[at].Name
	for range 2 { // what goes with it may be referred to, too
		g.steps = withoutStep(g.steps, name)
	}
	g.outputs = g.outputs.within(g.steps)
	g.use("removal")
	return true
}

// withoutStep returns steps without one, its outputs and the references to it.
func withoutStep(steps []step, name string) (kept []step) {
	for _, s := range steps {
		if s.Name == name || names(s.Fields["id"], name) || s.Verb == "invoke" && names(s.Properties["urn"], name) {
			continue
		}
		s = s.clone()
		s.Properties, s.Options = s.Properties.without(name), s.Options.without(name)
		kept = append(kept, s)
	}
	return kept
}

func (g *generator) update() bool {
	if kept := g.pick(func(s step) bool { return s.Fields["type"] == stashType }); kept != nil && g.chance(40) {
		kept.Properties["input"] = g.kept()
		g.use("update of a Stash")
		return true
	}
	s := g.pick(isManaged)
	if s == nil {
		return false
	}
	s.Properties["size"] = fmt.Sprint(2 + g.IntN(30))
	g.use("update")
	return true
}

// replace changes what makes a replacement necessary.
func (g *generator) replace() bool {
	s := g.pick(isManaged)
	if s == nil {
		return false
	}
	switch s.Fields["type"] {
	case namedType, otherType, fleetType:
		s.Properties["name"] = g.physical(s.Name)
		g.use("replacement")
	case exclusiveType:
		s.Properties["zone"] = g.zone(s.Properties["zone"])
		g.use("replacement that deletes first")
	default:
		s.Properties["zone"] = g.zone(s.Properties["zone"])
		g.use("replacement")
	}
	return true
}

// zone is another one than before.
func (g *generator) zone(before string) string {
	if before == "" {
		before = "a"
	}
	zones := []string{"a", "b", "c"}
	return zones[(slices.Index(zones, before)+1+g.IntN(2))%len(zones)]
}

// changeProvider changes a provider's configuration, or which provider a resource has.
func (g *generator) changeProvider() bool {
	if p := g.pick(isProvider); p != nil && g.chance(60) {
		if g.chance(50) {
			p.Properties["account"] = fmt.Sprintf("a%d", 3+g.IntN(5))
			g.use("replacement of a provider")
			return true
		}
		p.Properties["token"] = fmt.Sprintf("t%d", g.IntN(9))
		g.use("update of a provider")
		return true
	}
	s := g.pick(isPlain)
	if s == nil {
		return false
	}
	p := g.before(g.index(s.Name), isProvider)
	if p == nil || s.Options["provider"] == p.Name {
		return false
	}
	s.Options["provider"] = p.Name
	g.use("another provider")
	return true
}

// reorder moves a step to the end, when nothing refers to it.
func (g *generator) reorder() bool {
	s := g.pick(isCustom)
	if s == nil {
		return false
	}
	name := s.Name
	for _, other := range g.steps {
		for _, v := range []values{other.Fields, other.Properties, other.Options} {
			if len(v.without(name)) != len(v) {
				return false
			}
		}
	}
	at := g.index(name)
	moved := g.steps[at]
	g.steps = append(slices.Delete(slices.Clone(g.steps), at, at+1), moved)
	g.use("another order")
	return true
}

// relink changes what a resource takes from others.
func (g *generator) relink() bool {
	s := g.pick(isManaged)
	if s == nil || g.index(s.Name) == 0 {
		return false
	}
	g.link(g.index(s.Name), s)
	return true
}

// output changes an output of the stack.
func (g *generator) output() bool {
	s := g.pick(isManaged)
	if s == nil {
		return false
	}
	if g.outputs == nil {
		g.outputs = values{}
	}
	of := []string{"arn", "size", "accessKey"}[g.IntN(3)]
	g.outputs[fmt.Sprintf("o%d", g.IntN(3))] = "'${" + s.Name + "." + of + "}'"
	g.use("stack output")
	return true
}
