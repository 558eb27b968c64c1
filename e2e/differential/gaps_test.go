package main

import (
	"net/http"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// What once ended otherwise than in Pulumi's engine.
func TestWhatOnceEndedOtherwiseThanInPulumisEngineEndsAsThere(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	a := arenaFor(t)
	size, larger := values{"size": "1"}, values{"size": "2"}
	up := func(steps ...step) update { return update{Kind: "up", Steps: steps} }
	with := func(u update, change func(*update)) update { change(&u); return u }
	read := step{Verb: "read", Name: "r2", Fields: values{"type": autoType, "id": "'${r1.id}'"}}
	user := register("r3", autoType, size, values{"dependsOn": "[r2]"})
	exclusive := func(zone string) step { return register("r1", exclusiveType, values{"name": "x", "zone": zone}, nil) }
	dependent := register("r2", autoType, size, values{"dependsOn": "[r1]"})
	fleet := func(settings string) step {
		return register("r1", fleetType, values{"name": "f", "settings": settings}, nil)
	}
	packages := []step{
		{Verb: "package", Name: "package1", Fields: values{
			"plugin": "fake", "version": "0.1.0", "parameter": otherPackage}},
		{Verb: "package", Name: "package2", Fields: values{"plugin": "fake", "version": "0.1.0"}},
		register("r1", namedType, values{"name": "one"}, nil),
		register("r2", namedType, values{"name": "two"}, values{"package": "package2"}),
		register("r3", otherType, values{"name": "three"}, values{"package": "package1"}),
	}
	secretly := register("r1", opaqueType, values{"size": secretTag + "1"}, values{"replaceOnChanges": "[size]"})
	none := step{Verb: "read", Name: "r2", Fields: values{"type": "pulumi:pulumi:StackReference", "id": "none"},
		Properties: values{"name": "'organization/" + projectName + "/${stack}'", "unknown": "1"}}
	kept := func(option string) step {
		options := values{}
		if option != "" {
			options[option] = "any"
		}
		return register("r1", "pulumi:index:Stash", values{"input": "kept"}, options)
	}
	for name, c := range map[string]struct {
		updates []update
		root    string
		fails   int    // how many of the updates fail, on both engines
		rule    string // an intended difference that is met
	}{
		"a plugin that serves two packages": {updates: []update{up(packages...), up(packages[:4]...), {Kind: "destroy"}}},
		"a value that only becomes secret": {updates: []update{
			up(register("r1", opaqueType, size, values{"replaceOnChanges": "[size]"})), up(secretly)}},
		"a target of a destroy that was read and is used": {fails: 1, updates: []update{
			up(register("r1", autoType, size, nil), read, user),
			with(up(register("r1", autoType, size, nil), read, user), func(u *update) {
				u.Kind, u.Targets = "destroy", []string{"r2"}
			})}},
		"a target of a destroy that waits for its replacement and is used": {fails: 2, updates: []update{
			up(exclusive("a"), dependent),
			with(up(exclusive("b"), dependent), func(u *update) {
				u.Faults = []fakecloud.Fault{{Name: "broken", Do: fakecloud.Fail, At: fakecloud.Before,
					Op: fakecloud.Create, Status: http.StatusBadRequest}}
			}),
			with(up(exclusive("b"), dependent), func(u *update) { u.Kind, u.Targets = "destroy", []string{"r1"} })}},
		"a refresh of what the program gives another type": {updates: []update{
			up(register("r1", autoType, size, nil)),
			with(up(register("r1", renamedType, size, values{"aliases": "[{type: '" + autoType + "'}]"})),
				func(u *update) { u.Kind, u.RunProgram = "refresh", true })}},
		"an import below a root of another name": {root: "own-name", updates: []update{
			up(register("r1", autoType, size, nil)),
			{Kind: "import", Import: "found", Outside: []change{{Make: "found"}}},
			up(register("r1", autoType, size, nil))}},
		"an import that makes its default provider": {rule: "a provider that an import makes", updates: []update{
			{Kind: "import", Import: "found", Outside: []change{{Make: "found"}}},
			up(register("found", namedType, values{"name": "found"}, nil)),
			up(register("found", namedType, values{"name": "found"}, nil))}},
		"a program that is run while what it needs is gone": {updates: []update{
			up(register("r1", autoType, size, nil), register("r2", autoType, values{"size": "'${r1.size}'"}, nil)),
			with(up(register("r1", autoType, size, nil), register("r2", autoType, values{"size": "'${r1.size}'"}, nil)),
				func(u *update) { u.Kind, u.RunProgram, u.Outside = "refresh", true, []change{{Step: "r1"}} })}},
		"other options of what refers to what is gone": {updates: []update{
			up(register("r1", autoType, size, nil), dependent, register("r3", autoType, size, nil)),
			with(up(register("r1", autoType, size, nil), register("r3", autoType, size, nil), register("r2", autoType, size,
				values{"dependsOn": "[r1, r3]", "replaceWith": "[r3]", "retainOnDelete": "true"})), func(u *update) {
				u.Kind, u.RunProgram, u.Outside = "refresh", true, []change{{Step: "r1"}}
			})}},
		"an alias of what is declared, too": {fails: 1, updates: []update{
			up(register("r1", autoType, size, nil)),
			up(register("r2", autoType, size, values{"aliases": "[{name: r1}]"}), register("r1", autoType, size, nil))}},
		"a view that fails": {fails: 1, updates: []update{
			up(fleet("{broken: old}")),
			up(fleet("{broken: new}"), register("r2", autoType, larger, values{"dependsOn": "[r1]"})),
			up(fleet("{broken: old}"), register("r2", autoType, larger, values{"dependsOn": "[r1]"}))}},
		"an import of a Stash": {updates: []update{up(kept("import")), up(kept("")), {Kind: "destroy"}}},
		"a stack reference that is read with an unknown property": {fails: 1, updates: []update{
			up(register("r1", autoType, size, nil)), up(register("r1", autoType, size, nil), none)}},
	} {
		t.Run(name, func(t *testing.T) {
			p := program{Seed: fixedSeed + 200 + int(seedOf(name)), Root: c.root, Updates: c.updates}
			switch o, err := a.compare(t.Context(), p); {
			case err != nil:
				t.Error(err)
			case o.Differs != "":
				t.Errorf("the engines differ %s", o.Differs)
			case o.Updates != len(c.updates) || o.Failed != c.fails || c.rule != "" && o.Rules[c.rule] == 0:
				t.Errorf("%d updates were compared, of which %d failed; intended differences: %v", o.Updates, o.Failed,
					o.Rules)
			}
		})
	}
}

// seedOf is a number for a program of a test, by its name.
func seedOf(name string) (sum uint16) {
	for _, b := range []byte(name) {
		sum = sum*31 + uint16(b)
	}
	return sum
}
