package main

import (
	"fmt"
	"slices"
	"strings"
)

// otherPackage is what the plugin serves with a parameter.
const otherPackage = "{name: sub, version: 2.0.0, value: instead}"

// secretTag makes a value of a script secret.
const secretTag = "!secret "

func isPackage(s step) bool { return s.Verb == "package" }

func isFleet(s step) bool { return isManaged(s) && s.Fields["type"] == fleetType }

// otherPackage has the program use another package of the same plugin.
func (g *generator) otherPackage() {
	if g.chance(75) {
		return
	}
	g.next++
	g.steps = append(g.steps, step{Verb: "package", Name: fmt.Sprintf("package%d", g.next), Fields: values{
		"plugin": "fake", "version": "0.1.0", "parameter": otherPackage,
	}})
	g.use("a parameterized package")
}

// parts are the settings of what has a view for each. One that is called broken cannot be updated.
func (g *generator) parts() string {
	return []string{"{a: x}", "{a: y, b: z}", "{a: x, b: z, broken: old}", "{b: y, broken: old}"}[g.IntN(4)]
}

func (g *generator) changeParts() bool {
	s := g.pick(isFleet)
	if s == nil {
		return false
	}
	s.Properties["settings"] = g.parts()
	g.use("a change of views")
	return true
}

// retype gives a resource the other name of its type, with an alias of the former one.
func (g *generator) retype() bool {
	other := map[string]string{autoType: renamedType, renamedType: autoType}
	s := g.pick(func(s step) bool { return isManaged(s) && other[s.Fields["type"]] != "" && s.Options["import"] == "" })
	if s == nil {
		return false
	}
	s.alias("{type: '" + s.Fields["type"] + "'}")
	s.Fields["type"] = other[s.Fields["type"]]
	g.use("a resource of another type with an alias")
	return true
}

// becomeSecret makes an input secret, or one that was so plain.
func (g *generator) becomeSecret() bool {
	s := g.pick(func(s step) bool { return isManaged(s) && (s.Properties["size"] != "" || s.Properties["zone"] != "") })
	if s == nil {
		return false
	}
	name := "size"
	if s.Properties[name] == "" {
		name = "zone"
	}
	if plain, is := strings.CutPrefix(s.Properties[name], secretTag); is {
		s.Properties[name] = plain
		g.use("a secret that becomes plain")
		return true
	}
	s.Properties[name] = secretTag + s.Properties[name]
	g.use("a value that becomes secret")
	return true
}

// renamed is the program of an update with another name or type of something, as a refresh that runs the program may
// find it; the generator goes on with that. nil if there is nothing to rename.
func (g *generator) renamed(u update) []step {
	if g.chance(50) {
		return nil
	}
	if !g.retype() && !g.rename() {
		return nil
	}
	g.use("refresh --run-program of what is renamed")
	return slices.Clone(g.up().Steps)
}

// importing is an import of an object that nobody manages, after which the program, which does not declare it, is
// deployed again.
func (g *generator) importing(u update) []update {
	again := u
	again.Outside = nil
	name := g.physical("imported")
	g.use("import of an object")
	return []update{u, {Kind: "import", Import: name, Steps: u.Steps, Outside: []change{{Make: name}}}, again}
}

// refused adds something to the update that both engines refuse.
func (g *generator) refused(u *update) {
	of := g.pick(isManaged)
	s := step{Verb: "register", Name: g.newName(), Fields: values{"type": of.Fields["type"]},
		Properties: values{}, Options: values{}}
	at := len(u.Steps)
	if g.chance(50) {
		s.Verb, s.Fields = "read", values{"type": "pulumi:pulumi:StackReference", "id": "none"}
		s.Properties = values{"name": "'organization/" + projectName + "/${stack}'", "unknown": "1"}
		g.use("an unknown property of a stack reference")
	} else {
		logical := of.Fields["name"]
		if logical == "" {
			logical = of.Name
		}
		s.Options["aliases"] = "[{name: " + logical + "}]"
		if g.chance(50) {
			at = slices.IndexFunc(u.Steps, func(s step) bool { return s.Name == of.Name })
		}
		for _, name := range []string{"name", "package"} {
			if p := of.Properties[name]; p != "" {
				s.Properties[name] = p
			}
			if o := of.Options[name]; o != "" {
				s.Options[name] = o
			}
		}
		if parent := of.Options["parent"]; parent != "" {
			s.Options["parent"] = parent
		}
		g.use("an alias of what is declared, too")
	}
	u.Steps = slices.Insert(slices.Clone(u.Steps), at, s)
}
