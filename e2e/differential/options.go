package main

import "strings"

// settable are the options that a program sets and removes at will, with the values that they may have. A value with
// REF, HOOK, ERRORHOOK or TRANSFORM in it needs such a step before it.
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
	{"customTimeouts", []string{"{create: 5m}", "{update: 90s, delete: 1h}", "{read: 2m}"}, isManaged},
	{"replacementTrigger", []string{"one", "two", "!secret one", "{a: 1}", "'REF'"}, isCustom},
	{"deletedWith", []string{"REF"}, isManaged},
	{"replaceWith", []string{"[REF]"}, isManaged},
	{"version", []string{"0.1.0"}, isPlain},
	{"pluginDownloadURL", []string{"https://plugins.example.com"}, isPlain},
	{"envVarMappings", []string{"{FAKE_ONE: FAKE_OTHER}", "{FAKE_TWO: FAKE_OTHER}"}, isProvider},
	{"hooks", []string{"{beforeCreate: [HOOK], afterCreate: [HOOK]}", "{afterUpdate: [HOOK]}", "{beforeUpdate: [HOOK]}",
		"{beforeDelete: [HOOK]}", "{afterDelete: [HOOK]}", "{onError: [ERRORHOOK]}"}, isRegistered},
	{"hooks", []string{"{afterCreate: [HOOK], afterUpdate: [HOOK]}", "{onError: [ERRORHOOK]}"}, isManaged},
	{"transforms", []string{"[TRANSFORM]"}, isRegistered},
	{"transforms", []string{"[TRANSFORM]"}, isManaged},
}

// placeholders are what values stand for that need a step before them.
var placeholders = []struct {
	name  string
	holds func(step) bool
}{{"ERRORHOOK", isErrorHook}, {"HOOK", isHook}, {"TRANSFORM", isTransform}, {"REF", isManaged}}

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
	for _, p := range placeholders {
		if !strings.Contains(value, p.name) {
			continue
		}
		of := g.before(at, p.holds)
		if of == nil {
			return false
		}
		ref := of.Name
		if o.name == "replacementTrigger" {
			ref = "${" + of.Name + ".generation}"
		}
		value = strings.ReplaceAll(value, p.name, ref)
	}
	if s.Options[o.name] == value {
		return false
	}
	s.Options[o.name] = value
	g.use(o.name)
	return true
}
