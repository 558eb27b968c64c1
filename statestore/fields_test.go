package statestore

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/deployctl/deployctl/engine"
)

// TestEveryFieldOfAStateIsStoredAndReadBack sets each field of a state alone, stores it and reads it back.
func TestEveryFieldOfAStateIsStoredAndReadBack(t *testing.T) {
	elsewhere := map[string]string{
		"Key":          "is the place of the state in the checkpoint",
		"Inputs":       "is a bag, which is stored by itself",
		"Outputs":      "is a bag, which is stored by itself",
		"Trigger":      "is a bag, which is stored by itself",
		"TriggerValue": "follows from Trigger",
		"Rest":         "is the key of the base's state, whose further fields are copied",
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[engine.State]()) {
		var s engine.State
		setAll(t, reflect.ValueOf(&s).Elem().FieldByIndex(field.Index))
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

// setAll sets a value, and what is in it, to something else than zero.
func setAll(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Uint8:
		v.SetUint('1')
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		setAll(t, v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		setAll(t, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			setAll(t, v.Field(i))
		}
	default:
		t.Fatalf("a field of kind %s cannot be set", v.Kind())
	}
}
