package main

import (
	"fmt"
	"strings"
)

// rename gives a resource another logical name, with an alias of the old one.
func (g *generator) rename() bool {
	s := g.pick(func(s step) bool { return isRegistered(s) && s.Options["import"] == "" })
	if s == nil {
		return false
	}
	old := s.Fields["name"]
	if old == "" {
		old = s.Name
	}
	urn := update{Steps: g.steps}.urn("${stack}", s.Name)
	g.next++
	switch n := g.IntN(4); {
	case n == 0 && isComponent(*s):
		s.alias("{type: '" + s.Fields["type"] + "'}")
		s.Fields["type"] = fmt.Sprintf("app:index:Owner%d", g.next)
		g.use("another type with an alias")
		return true
	case n == 1:
		s.alias("'" + urn + "'")
		g.use("rename with a URN as alias")
	case n == 2 && s.Options["parent"] == "" && g.chance(60):
		s.alias(fmt.Sprintf("{name: %s, type: '%s', project: %s, noParent: true}", old, unquote(s.Fields["type"]),
			projectName))
		g.use("rename with every part in the alias")
	default:
		s.alias("{name: " + old + "}")
		g.use("rename with an alias")
	}
	s.Fields["name"] = fmt.Sprintf("%s-is-%d", s.Name, g.next)
	return true
}

// alias adds an alias to those of the step.
func (s *step) alias(spec string) {
	had := strings.TrimSuffix(strings.TrimPrefix(s.Options["aliases"], "["), "]")
	if had != "" && len(had) < 200 {
		spec = had + ", " + spec
	}
	s.Options["aliases"] = "[" + spec + "]"
}

// reparent gives a resource another parent, with an alias of the old one.
func (g *generator) reparent() bool {
	s := g.pick(func(s step) bool { return isRegistered(s) && !isProvider(s) })
	if s == nil {
		return false
	}
	old := s.Options["parent"]
	parent := g.before(g.index(s.Name), isComponent)
	switch {
	case old != "" && (parent == nil || parent.Name == old):
		delete(s.Options, "parent")
		s.alias("{parent: " + old + "}")
	case parent == nil || parent.Name == old:
		return false
	case old == "":
		s.Options["parent"] = parent.Name
		s.alias("{noParent: true}")
	default:
		s.Options["parent"] = parent.Name
		s.alias("{parent: " + old + "}")
	}
	g.use("new parent with an alias")
	return true
}
