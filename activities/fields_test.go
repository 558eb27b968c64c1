package activities

import (
	"reflect"
	"testing"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/filltest"
)

// TestEveryFieldOfAStateIsShown sets each field of a state alone: the events of an update show it, or it is listed here
// with the reason why not. `deployctl stack export` shows all of them but Key and Rest.
func TestEveryFieldOfAStateIsShown(t *testing.T) {
	hidden := map[string]string{
		"Key":                     "means something to the update alone",
		"Rest":                    "means something to the update alone",
		"Snippet":                 "is told once, as the number of those that stay",
		"Inputs":                  "are values, which events hold in another form",
		"Outputs":                 "are values, which events hold in another form",
		"Trigger":                 "is seen when it replaces the resource, as the reason",
		"TriggerValue":            "is a digest",
		"Dependencies":            "are an order, which the sequence of the events shows",
		"PropertyDependencies":    "are an order, which the sequence of the events shows",
		"ReplaceWith":             "is seen when it replaces the resource, as the reason",
		"DeletedWith":             "is an option of the program that decides how, not what",
		"PendingReplacement":      "is seen as the steps of the replacement",
		"AdditionalSecretOutputs": "are seen as secrets among the outputs",
		"Aliases":                 "are former names; a step is shown under the name of now",
		"Timeouts":                "are an option of the program that decides how, not what",
		"ImportID":                "is seen as the ID of what was imported",
		"IgnoreChanges":           "decides which differences are seen",
		"ReplaceOnChanges":        "decides which differences replace; those are seen",
		"RefreshBeforeUpdate":     "is seen as the refresh of the next update",
		"Created":                 "is the time of an event",
		"Modified":                "is the time of an event",
		"SourcePosition":          "is a line of the program",
		"ViewOf":                  "is its parent, or the parent of a view that it is below",
		"Extension":               "is a part of the provider's schema, as the package is",
		"Hooks":                   "are functions of the program, which say themselves that they run",
	}
	none := stateMetadata(&engine.State{})
	for _, field := range reflect.VisibleFields(reflect.TypeFor[engine.State]()) {
		var s engine.State
		filltest.Fill(t, reflect.ValueOf(&s).Elem().FieldByIndex(field.Index))
		shown := !reflect.DeepEqual(stateMetadata(&s), none)
		if _, not := hidden[field.Name]; shown == not {
			t.Errorf("%s: events show it: %v", field.Name, shown)
		}
	}
}
