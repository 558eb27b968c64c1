package engine

import (
	"reflect"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/filltest"
)

// TestEveryFieldOfAStateIsSetFromTheGoal sets every field of a registration: what it declares must reach the state that
// is recorded. A new field of State is either set by prepare, or listed here with its source.
func TestEveryFieldOfAStateIsSetFromTheGoal(t *testing.T) {
	elsewhere := map[string]string{
		"Key":                 "is given when the state is recorded",
		"ID":                  "comes from the provider",
		"Outputs":             "come from the provider",
		"InitErrors":          "come from the provider",
		"RefreshBeforeUpdate": "comes from the provider",
		"External":            "is true for reads, which are no registrations",
		"Delete":              "is set when a replacement is recorded",
		"PendingReplacement":  "is set when the state is deleted before its replacement is created",
		"Taint":               "is set by people, in an imported state",
		"Aliases":             "hold the stored name that was found, not those that were declared",
		"Created":             "is the time at which the step ended",
		"Modified":            "is the time at which the step ended",
		"ViewOf":              "is only of states that no program registers",
		"Snippet":             "is only of states that no program registers",
		"Rest":                "passes through from the old state",
	}
	r := New(Goal{Kind: KindUp, Project: "proj", Stack: "dev"}, nil, nil)
	e := &entry{URN: "urn:pulumi:dev::proj::test:x:R::name"}
	filltest.Fill(t, reflect.ValueOf(&e.Reg).Elem())
	r.prepare(e)
	for _, field := range reflect.VisibleFields(reflect.TypeFor[State]()) {
		set := !reflect.ValueOf(e.New).FieldByIndex(field.Index).IsZero()
		if _, not := elsewhere[field.Name]; set == not {
			t.Errorf("%s: the registration sets it: %v", field.Name, set)
		}
	}
}

// TestEveryFieldOfARegistrationHasAnEffect holds that a field which a program can set is recorded under its name, or
// listed here with what it does instead.
func TestEveryFieldOfARegistrationHasAnEffect(t *testing.T) {
	elsewhere := map[string]string{
		"Name":                "is a part of the URN",
		"Remote":              "concerns the host alone",
		"Aliases":             "find the stored state",
		"DeleteBeforeReplace": "decides how the resource is replaced",
		"Digest":              "compares the goals of two epochs",
		"Bound":               "adds to the inputs that are planned",
	}
	state := reflect.TypeFor[State]()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Registration]()) {
		_, recorded := state.FieldByName(field.Name)
		if _, not := elsewhere[field.Name]; !recorded && !not {
			t.Errorf("%s is neither recorded nor listed", field.Name)
		}
	}
}
