package snapshot

import (
	"reflect"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/filltest"
)

// TestEveryFieldOfAStateCounts sets each field of a State alone: two states that differ in it must not be taken for
// equal, or a change of it would not be stored.
func TestEveryFieldOfAStateCounts(t *testing.T) {
	elsewhere := map[string]string{
		"Key":      "says where a state is, not what it is",
		"Rest":     "follows from the key",
		"Created":  "is kept by whoever makes the next state of a resource",
		"Modified": "is kept by whoever makes the next state of a resource",
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[State]()) {
		var s State
		filltest.Fill(t, reflect.ValueOf(&s).Elem().FieldByIndex(field.Index))
		if reflect.ValueOf(s).FieldByIndex(field.Index).IsZero() {
			t.Fatalf("%s was not set", field.Name)
		}
		equal := Equal(s, State{}) || Equal(State{}, s)
		if _, not := elsewhere[field.Name]; equal != not {
			t.Errorf("%s: two states that differ in it are equal: %v", field.Name, equal)
		}
	}
}
