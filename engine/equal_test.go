package engine

import (
	"reflect"
	"testing"
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
		fill(t, reflect.ValueOf(&s).Elem().FieldByIndex(field.Index))
		if reflect.ValueOf(s).FieldByIndex(field.Index).IsZero() {
			t.Fatalf("%s was not set", field.Name)
		}
		equal := equalStates(s, State{}) || equalStates(State{}, s)
		if _, not := elsewhere[field.Name]; equal != not {
			t.Errorf("%s: two states that differ in it are equal: %v", field.Name, equal)
		}
	}
}

// fill sets a value, and what is in it, to something else than zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Uint8:
		v.SetUint('1')
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("a field of kind %s cannot be set", v.Kind())
	}
}
