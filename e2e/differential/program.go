package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// projectName is the name of every program's project.
const projectName = "differential"

// getResource is the function that returns the state of a resource.
const getResource = "pulumi:pulumi:getResource"

// program is what both engines play: some updates of one stack, one after the other. A program is data, so that it can
// be stored and made smaller.
type program struct {
	Seed int `json:"seed"`
	// Concurrent programs register what does not depend on one another at once; others wait for each registration.
	Concurrent bool `json:"concurrent,omitempty"`
	// Root is the name of the stack's own resource; "" for the usual one.
	Root    string   `json:"root,omitempty"`
	Updates []update `json:"updates"`
}

// update is one of a program's updates.
type update struct {
	Kind              string   `json:"kind"` // up, refresh, destroy or import
	Refresh           bool     `json:"refresh,omitempty"`
	Targets           []string `json:"targets,omitempty"` // step names
	TargetDependents  bool     `json:"targetDependents,omitempty"`
	Replace           []string `json:"replace,omitempty"`  // step names
	Excludes          []string `json:"excludes,omitempty"` // step names
	ExcludeDependents bool     `json:"excludeDependents,omitempty"`
	ContinueOnError   bool     `json:"continueOnError,omitempty"`
	IgnoreProtect     bool     `json:"ignoreProtect,omitempty"`
	RunProgram        bool     `json:"runProgram,omitempty"`
	Steps             []step   `json:"steps,omitempty"`
	Outputs           values   `json:"outputs,omitempty"`
	// Faults are set before the update and lifted after it.
	Faults []fakecloud.Fault `json:"faults,omitempty"`
	// CancelAt is a gate: when a request reaches it, the update is cancelled, and then the gate is opened. Only deployctl
	// plays the update; what a cancel does is an intended difference.
	CancelAt *fakecloud.Fault `json:"cancelAt,omitempty"`
	// Outside are changes that somebody makes in the cloud before the update.
	Outside []change `json:"outside,omitempty"`
	// Import is the name of the object of the type Named that an import is of.
	Import string `json:"import,omitempty"`
}

// step is a step of the scenario language host.
type step struct {
	Verb       string `json:"verb"` // register, read, invoke, outputs, fail, hook, errorHook, transform
	Name       string `json:"name"`
	Fields     values `json:"fields,omitempty"`
	Properties values `json:"properties,omitempty"`
	Options    values `json:"options,omitempty"`
}

// values are YAML texts in flow style, by key.
type values map[string]string

// change is a change in the cloud: of the object that a step's resource has there, or a new object.
type change struct {
	Step string `json:"step,omitempty"`
	Size int    `json:"size,omitempty"` // the new size; 0 removes the object
	Make string `json:"make,omitempty"` // the name of a new object
}

// failing reports whether an update may fail, so that the engines may have done different parts of it.
func (u update) failing() bool {
	return len(u.Faults) > 0 || slices.ContainsFunc(u.Steps, func(s step) bool {
		return s.Verb == "fail" || s.Verb == "errorHook" || s.Fields["fails"] != "" || s.Properties["failInit"] != ""
	})
}

// cancels reports whether an update of the program is cancelled.
func (p program) cancels() bool {
	return slices.ContainsFunc(p.Updates, func(u update) bool { return u.CancelAt != nil })
}

// yaml is a step as a line of a script.
func (s step) yaml() string {
	parts := []string{s.Verb + ": " + s.Name}
	for _, key := range slices.Sorted(maps.Keys(s.Fields)) {
		parts = append(parts, key+": "+s.Fields[key])
	}
	properties := map[string]string{"invoke": "args", "outputs": "values"}[s.Verb]
	if properties == "" {
		properties = "properties"
	}
	for _, part := range []struct {
		key string
		values
	}{{properties, s.Properties}, {"options", s.Options}} {
		if len(part.values) > 0 {
			parts = append(parts, part.key+": "+part.values.yaml())
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (v values) yaml() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, key+": "+v[key])
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// script is the scenario of an update.
func (u update) script(p program) string {
	var b strings.Builder
	b.WriteString("packages:\n  - {name: fake, version: 0.1.0}\n")
	if slices.ContainsFunc(u.Steps, isPackage) {
		fmt.Fprintf(&b, "  - {name: fake, version: 0.1.0, parameter: %s}\n", otherPackage)
	}
	fmt.Fprintf(&b, "root: '%s'\nsteps:\n", p.Root)
	for _, s := range u.Steps {
		fmt.Fprintf(&b, "  - %s\n", s.yaml())
		if !p.Concurrent && slices.Contains([]string{"register", "read", "invoke"}, s.Verb) {
			fmt.Fprintf(&b, "  - await: [%s]\n", s.Name)
		}
	}
	if len(u.Steps) == 0 {
		b.WriteString("  []\n")
	}
	fmt.Fprintf(&b, "outputs: %s\n", u.Outputs.yaml())
	return b.String()
}

// write writes the project of an update.
func (u update) write(dir string, p program) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	definition := "name: " + projectName + "\nruntime: scenario\n"
	if err := os.WriteFile(filepath.Join(dir, "Pulumi.yaml"), []byte(definition), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(u.script(p)), 0o600)
}

// urn returns the URN of a step's resource.
func (u update) urn(stack, name string) string {
	return "urn:pulumi:" + stack + "::" + projectName + "::" + u.qualified(name) + "::" + u.logical(name)
}

// qualified returns the type of a step's resource with those of its parents.
func (u update) qualified(name string) string {
	i := slices.IndexFunc(u.Steps, func(s step) bool { return s.Name == name })
	if i < 0 {
		return "missing:index:Missing"
	}
	typ := unquote(u.Steps[i].Fields["type"])
	if parent := u.Steps[i].Options["parent"]; parent != "" {
		return u.qualified(parent) + "$" + typ
	}
	return typ
}

// logical returns the name of a step's resource.
func (u update) logical(name string) string {
	for _, s := range u.Steps {
		if s.Name == name && s.Fields["name"] != "" {
			return s.Fields["name"]
		}
	}
	return name
}

func unquote(text string) string { return strings.Trim(text, "'") }

var stepName = regexp.MustCompile(`\b(?:r|hook|transform|package)[0-9]+\b`)

// names reports whether a value refers to a step.
func names(value, name string) bool { return slices.Contains(stepName.FindAllString(value, -1), name) }

// within returns the values that refer only to steps which are there.
func (v values) within(steps []step) values {
	kept := maps.Clone(v)
	maps.DeleteFunc(kept, func(_, value string) bool {
		return slices.ContainsFunc(stepName.FindAllString(value, -1), func(name string) bool {
			return !slices.ContainsFunc(steps, func(s step) bool { return s.Name == name })
		})
	})
	return kept
}

// without returns the values that do not refer to a step.
func (v values) without(name string) values {
	kept := maps.Clone(v)
	maps.DeleteFunc(kept, func(_, value string) bool { return names(value, name) })
	return kept
}
