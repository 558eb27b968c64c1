package rawjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Unmarshal is json.Unmarshal for texts of users: its errors name members of the text, and not the types of this
// program that they are read into.
func Unmarshal(text []byte, into any) error { return Explain(json.Unmarshal(text, into)) }

// Explain replaces an error of encoding/json that names a type of this program.
func Explain(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	what := "it"
	if wrong.Field != "" {
		what = wrong.Field
	}
	found := wrong.Value
	switch kind, text, _ := strings.Cut(found, " "); {
	case found == "array":
		found = "a list"
	case found == "object":
		found = "an object"
	case found == "string":
		found = "a string"
	case found == "bool":
		found = "true or false"
	case kind == "number" && text != "":
		found = "the number " + text
	case kind == "number":
		found = "a number"
	}
	return &wrongType{fmt.Sprintf("%s must be %s, and is %s", what, kindOf(wrong.Type), found), err}
}

// wrongType is an error of encoding/json with another text.
type wrongType struct {
	text string
	err  error
}

func (e *wrongType) Error() string { return e.text }
func (e *wrongType) Unwrap() error { return e.err }

// kindOf says what of JSON is read into a type.
func kindOf(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a string (base64)"
		}
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	}
	return "something else"
}
