package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// situation is what a rule depends on.
type situation struct {
	failed    bool // the update, on both engines
	refreshed bool // by this update, or an earlier one
	// partial: this update or an earlier one has left resources out: by targets, by excludes, because a refresh or a
	// destroy that runs the program creates nothing, or because an update went on after errors.
	partial bool
	looks   bool // a program calls getResource, or did
	// secretOutputs: a resource has the option additionalSecretOutputs, or had it.
	secretOutputs bool
	imported      bool // something, by the option of a resource
	triggers      bool // a resource has the option replacementTrigger, or had it
	aliases       bool // a resource has the option aliases, or had it
	imports       bool // an update was an import
}

// rule is an intended difference: where it applies, both views are made equal in what it is about.
type rule struct {
	name, reason string
	applies      func(situation) bool
	// level makes the views equal in what the rule is about, and reports whether they were not.
	level func(ours, stock *view) bool
	// fault: it is a fault of this version of the stock engine, and so none of the intended differences.
	fault bool
}

// intended are the differences from Pulumi's engine that docs/compatibility.md lists under "Different".
var intended = []rule{
	{
		name:    "outputs after an error",
		reason:  "a stack keeps its last outputs when an update fails: a part of the new ones is no result of a program",
		applies: func(s situation) bool { return s.failed },
		level:   levelStackOutputs,
	},
	{
		name:    "empty lists of dependencies after a refresh",
		reason:  "a refresh that finds nothing writes nothing; Pulumi's drops them until the next up",
		applies: func(s situation) bool { return s.refreshed },
		level:   levelEmptyDependencies,
	},
	{
		name:    "secrets after a refresh",
		reason:  "what was secret stays secret, though the provider returns it as plaintext",
		applies: func(s situation) bool { return s.refreshed },
		level:   levelSecrets("inputs", "outputs"),
	},
	{
		name:    "what an update that leaves resources out does not know",
		reason:  "the last known values stay, or none; the stock engine stores unknown values",
		applies: func(s situation) bool { return s.partial },
		level:   levelUnknown,
	},
	{
		name:    "a look at what is left out",
		reason:  "nothing of it is known; the stock engine answers with an empty id",
		applies: func(s situation) bool { return s.partial && s.looks },
		level:   levelStackOutputs,
		fault:   true,
	},
	{
		name:    "outputs that become secret",
		reason:  "they are stored as secrets at once; Pulumi's engine does that with the next update",
		applies: func(s situation) bool { return s.secretOutputs },
		level:   levelSecrets("outputs"),
	},
	{
		name:    "the trigger of an import",
		reason:  "it is stored with the import; the stock engine stores it with the next update",
		applies: func(s situation) bool { return s.imported },
		level:   levelTriggers,
		fault:   true,
	},
	{
		name:    "a provider that an import makes",
		reason:  "it is stored as its check returns it; the stock engine checks it, and drops what that returns",
		applies: func(s situation) bool { return s.imports },
		level:   levelCheckedProviders,
		fault:   true,
	},
	{
		name:    "a secret trigger",
		reason:  "it is stored; the stock CLI stores a secret null",
		applies: func(s situation) bool { return s.triggers },
		level:   levelSecretTriggers,
		fault:   true,
	},
	{
		name: "a copy of a former type",
		reason: "it keeps its URN while it waits for its deletion; the stock engine gives it that of what took its place, " +
			"so that its type is not the one in its URN",
		applies: func(s situation) bool { return s.aliases },
		level:   levelFormerTypes,
		fault:   true,
	},
}

func levelStackOutputs(ours, stock *view) (differed bool) {
	for _, mine := range ours.resources {
		for _, theirs := range stock.resources {
			if mine["type"] == "pulumi:pulumi:Stack" && theirs["type"] == mine["type"] &&
				jsonText(mine["outputs"]) != jsonText(theirs["outputs"]) {
				mine["outputs"], differed = theirs["outputs"], true
			}
		}
	}
	return differed
}

func levelEmptyDependencies(ours, stock *view) (differed bool) {
	for i := range min(len(ours.resources), len(stock.resources)) {
		mine, _ := ours.resources[i]["propertyDependencies"].(map[string]any)
		theirs, _ := stock.resources[i]["propertyDependencies"].(map[string]any)
		for property, urns := range mine {
			if list, _ := urns.([]any); len(list) == 0 && theirs[property] == nil {
				delete(mine, property)
				differed = true
			}
		}
		if len(mine) == 0 {
			delete(ours.resources[i], "propertyDependencies")
		}
	}
	return differed
}

// levelTriggers removes the triggers that the stock engine has not stored.
func levelTriggers(ours, stock *view) (differed bool) {
	for i := range min(len(ours.resources), len(stock.resources)) {
		mine, theirs := ours.resources[i], stock.resources[i]
		if mine["importID"] != nil && mine["replacementTrigger"] != nil && theirs["replacementTrigger"] == nil {
			delete(mine, "replacementTrigger")
			differed = true
		}
	}
	return differed
}

// levelCheckedProviders removes what the check of a provider has added, which is the version of its framework, from
// where the stock engine lacks it.
func levelCheckedProviders(ours, stock *view) (differed bool) {
	const added = "__pulumi-go-provider-version"
	for i := range min(len(ours.resources), len(stock.resources)) {
		mine, theirs := ours.resources[i], stock.resources[i]
		for _, field := range []string{"inputs", "outputs"} {
			checked, _ := mine[field].(map[string]any)
			given, _ := theirs[field].(map[string]any)
			if strings.HasPrefix(fmt.Sprint(mine["type"]), "pulumi:providers:") && given[added] == nil && checked[added] != nil {
				delete(checked, added)
				differed = true
			}
		}
	}
	return differed
}

// levelSecretTriggers gives the triggers back that the stock CLI has stored as a secret null.
func levelSecretTriggers(ours, stock *view) (differed bool) {
	for i := range min(len(ours.resources), len(stock.resources)) {
		mine, _ := ours.resources[i]["replacementTrigger"].(map[string]any)
		theirs, _ := stock.resources[i]["replacementTrigger"].(map[string]any)
		if theirs["plaintext"] == "null" && mine["plaintext"] != nil && mine["plaintext"] != "null" {
			stock.resources[i]["replacementTrigger"], differed = mine, true
		}
	}
	return differed
}

// levelFormerTypes gives the stock engine's copies the types of ours in their URNs, and their places. What took their
// place goes by that name, too, for as long as they have it.
func levelFormerTypes(ours, stock *view) (differed bool) {
	for at, mine := range ours.resources {
		its := slices.IndexFunc(stock.resources, func(theirs map[string]any) bool {
			a, b := urn.URN(fmt.Sprint(mine["urn"])), urn.URN(fmt.Sprint(theirs["urn"]))
			return mine["delete"] == true && theirs["delete"] == true && mine["id"] == theirs["id"] && a != b &&
				mine["type"] == theirs["type"] && string(b.Type()) != theirs["type"] && a.Name() == b.Name()
		})
		if its >= 0 {
			theirs := stock.resources[its]
			for _, live := range ours.resources {
				if aliases, _ := live["aliases"].([]any); live["urn"] == theirs["urn"] && live["delete"] == nil &&
					len(aliases) == 1 && aliases[0] == mine["urn"] {
					delete(live, "aliases")
				}
			}
			theirs["urn"], differed = mine["urn"], true
			stock.resources = slices.Insert(slices.Delete(stock.resources, its, its+1), at, theirs)
		}
	}
	return differed
}

// levelUnknown removes the outputs that the stock engine has stored as unknown, and takes what it has read under an
// unknown id for what was read before, if anything was.
func levelUnknown(ours, stock *view) (differed bool) {
	stock.resources = slices.DeleteFunc(stock.resources, func(theirs map[string]any) bool {
		read := theirs["id"] == "UNKNOWN" && !slices.ContainsFunc(ours.resources, func(mine map[string]any) bool {
			return mine["urn"] == theirs["urn"]
		})
		differed = differed || read
		return read
	})
	for i := range min(len(ours.resources), len(stock.resources)) {
		if stock.resources[i]["id"] == "UNKNOWN" && stock.resources[i]["urn"] == ours.resources[i]["urn"] {
			stock.resources[i], differed = ours.resources[i], true
			continue
		}
		mine, _ := ours.resources[i]["outputs"].(map[string]any)
		theirs, _ := stock.resources[i]["outputs"].(map[string]any)
		for name, v := range theirs {
			if strings.Contains(jsonText(v), `"UNKNOWN"`) {
				delete(theirs, name)
				delete(mine, name)
				differed = true
			}
		}
		for _, r := range []map[string]any{ours.resources[i], stock.resources[i]} {
			if outputs, is := r["outputs"].(map[string]any); is && len(outputs) == 0 {
				delete(r, "outputs")
			}
		}
	}
	return differed
}

// levelSecrets reveals the secrets in some fields of a resource that differs in them.
func levelSecrets(fields ...string) func(ours, stock *view) bool {
	return func(ours, stock *view) (differed bool) {
		for i := range min(len(ours.resources), len(stock.resources)) {
			for _, field := range fields {
				mine, theirs := ours.resources[i], stock.resources[i]
				if jsonText(mine[field]) != jsonText(theirs[field]) {
					mine[field], theirs[field] = reveal(mine[field]), reveal(theirs[field])
					differed = differed || jsonText(mine[field]) == jsonText(theirs[field])
				}
			}
		}
		return differed
	}
}

// reveal returns a value without its secretness, at any depth.
func reveal(v any) any {
	switch v := v.(type) {
	case []any:
		all := make([]any, len(v))
		for i, e := range v {
			all[i] = reveal(e)
		}
		return all
	case map[string]any:
		if text, is := v["plaintext"].(string); is {
			var inner any
			if json.Unmarshal([]byte(text), &inner) == nil {
				return reveal(inner)
			}
		}
		all := map[string]any{}
		for key, e := range v {
			all[key] = reveal(e)
		}
		return all
	}
	return v
}
