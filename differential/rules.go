package main

// situation is what a rule depends on.
type situation struct {
	failed    bool // the update, on both engines
	refreshed bool // by this update, or an earlier one
}

// rule is an intended difference: where it applies, both views are made equal in what it is about.
type rule struct {
	name, reason string
	applies      func(situation) bool
	// level makes the views equal in what the rule is about, and reports whether they were not.
	level func(ours, stock *view) bool
}

// intended are the differences from Pulumi's engine that docs/compatibility.md lists under "Different".
var intended = []rule{
	{
		name:    "outputs after an error",
		reason:  "a stack keeps its last outputs when an update fails: half of the new ones would be no result of any program",
		applies: func(s situation) bool { return s.failed },
		level:   levelStackOutputs,
	},
	{
		name:    "empty lists of dependencies after a refresh",
		reason:  "a refresh that finds nothing writes nothing; Pulumi's drops them until the next up",
		applies: func(s situation) bool { return s.refreshed },
		level:   levelEmptyDependencies,
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
