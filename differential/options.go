package main

import "strings"

// settable are the options that a program sets and removes at will, with the values that they may have. A value with
// REF in it needs a resource that stands before.
var settable = []struct {
	name   string
	values []string
	holds  func(step) bool
}{
	{"protect", []string{"true", "false"}, isRegistered},
	{"retainOnDelete", []string{"true", "false"}, isManaged},
	{"deleteBeforeReplace", []string{"true", "false"}, isManaged},
	{"ignoreChanges", []string{"[size]", "[zone]", "[settings.a]", "['settings.b[0]']", "['*']"}, isManaged},
	{"replaceOnChanges", []string{"[size]", "['*']", "[settings.a]"}, isManaged},
	{"additionalSecretOutputs", []string{"[endpoint]", "[arn, size]"}, isManaged},
	{"hideDiffs", []string{"[size]", "[settings]"}, isManaged},
	{"customTimeouts", []string{"{create: 5m}", "{update: 90s, delete: 1h}"}, isManaged},
	{"replacementTrigger", []string{"one", "two", "!secret one", "{a: 1}", "'REF'"}, isManaged},
	{"deletedWith", []string{"REF"}, isManaged},
	{"replaceWith", []string{"[REF]"}, isManaged},
	{"version", []string{"0.1.0"}, isManaged},
}

// toggle sets, changes or removes an option of a resource.
func (g *generator) toggle() bool {
	s := g.pick(isRegistered)
	if s == nil {
		return false
	}
	return g.option(g.index(s.Name), s)
}

// option sets, changes or removes an option of the step, which stands at a position or will.
func (g *generator) option(at int, s *step) bool {
	o := settable[g.IntN(len(settable))]
	if !o.holds(*s) {
		return false
	}
	if s.Options[o.name] != "" && g.chance(40) {
		delete(s.Options, o.name)
		g.use(o.name + " removed")
		return true
	}
	value := o.values[g.IntN(len(o.values))]
	if strings.Contains(value, "REF") {
		of := g.before(at, isManaged)
		if of == nil {
			return false
		}
		ref := of.Name
		if o.name == "replacementTrigger" {
			ref = "${" + of.Name + ".generation}"
		}
		value = strings.ReplaceAll(value, "REF", ref)
	}
	if s.Options[o.name] == value {
		return false
	}
	s.Options[o.name] = value
	g.use(o.name)
	return true
}
