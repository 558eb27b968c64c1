package statestore

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/filltest"
)

// TestEveryFieldOfAStateIsStoredAndReadBack sets each field of a state alone, stores it and reads it back.
func TestEveryFieldOfAStateIsStoredAndReadBack(t *testing.T) {
	elsewhere := map[string]string{
		"Key":          "is the place of the state in the checkpoint",
		"Inputs":       "is a bag, which is stored by itself",
		"Outputs":      "is a bag, which is stored by itself",
		"Trigger":      "is a bag, which is stored by itself",
		"TriggerValue": "follows from Trigger",
		"Extension":    "is a bag, which is stored once for all resources that have it",
		"Rest":         "is the key of the base's state, whose further fields are copied",
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[engine.State]()) {
		var s engine.State
		filltest.Fill(t, reflect.ValueOf(&s).Elem().FieldByIndex(field.Index))
		data, err := json.Marshal(storedHeader(s))
		if err != nil {
			t.Fatal(err)
		}
		var r storedResource
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		same := reflect.DeepEqual(r.header(), s)
		if _, not := elsewhere[field.Name]; same == not {
			t.Errorf("%s: it is read back as it was stored: %v", field.Name, same)
		}
	}
}
