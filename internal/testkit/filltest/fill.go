// Package filltest sets every field of a value, for tests that no field of a type is forgotten.
package filltest

import (
	"reflect"
	"testing"
	"time"
)

// moment is what times are set to: one that any encoding keeps.
var moment = time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)

// Fill sets a value, and all that it contains, to something other than zero. It fails the test for a kind of field that
// it does not know.
func Fill(t testing.TB, v reflect.Value) {
	t.Helper()
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(moment))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Uint8, reflect.Uint32:
		v.SetUint('1')
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		Fill(t, v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		Fill(t, key)
		Fill(t, value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(t, v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			Fill(t, v.Field(i))
		}
	default:
		t.Fatalf("a field of kind %s cannot be set", v.Kind())
	}
}

// Of returns a value with every field set.
func Of[T any](t testing.TB) T {
	t.Helper()
	var v T
	Fill(t, reflect.ValueOf(&v).Elem())
	return v
}
