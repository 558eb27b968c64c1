// Package filltest sets every field of a value, for tests that no field of a type is forgotten.
package filltest

import (
	"reflect"
	"testing"
)

// Fill sets a value, and all that it contains, to something other than zero. It fails the test for a kind of field that
// it does not know.
func Fill(t testing.TB, v reflect.Value) {
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
		Fill(t, v.Index(0))
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
