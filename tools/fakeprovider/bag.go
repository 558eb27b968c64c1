package fakeprovider

import (
	"github.com/pulumi/pulumi/sdk/v3/go/property"
)

// without gives a value with neither secretness nor dependencies, at any depth: what a comparison is about.
func without(v property.Value) property.Value {
	switch {
	case v.IsArray():
		var all []property.Value
		for _, e := range v.AsArray().All {
			all = append(all, without(e))
		}
		return property.New(all)
	case v.IsMap():
		all := map[string]property.Value{}
		for k, e := range v.AsMap().All {
			all[k] = without(e)
		}
		return property.New(all)
	}
	return v.WithSecret(false).WithDependencies(nil)
}

// toJSON gives a fully known value as what encoding/json makes of it.
func toJSON(v property.Value) any {
	switch {
	case v.IsBool():
		return v.AsBool()
	case v.IsNumber():
		return v.AsNumber()
	case v.IsString():
		return v.AsString()
	case v.IsArray():
		all := []any{}
		for _, e := range v.AsArray().All {
			all = append(all, toJSON(e))
		}
		return all
	case v.IsMap():
		all := map[string]any{}
		for k, e := range v.AsMap().All {
			all[k] = toJSON(e)
		}
		return all
	}
	return nil
}

// fromJSON is toJSON's inverse.
func fromJSON(v any) property.Value {
	switch v := v.(type) {
	case bool:
		return property.New(v)
	case float64:
		return property.New(v)
	case string:
		return property.New(v)
	case []any:
		all := make([]property.Value, len(v))
		for i, e := range v {
			all[i] = fromJSON(e)
		}
		return property.New(all)
	case map[string]any:
		all := map[string]property.Value{}
		for k, e := range v {
			all[k] = fromJSON(e)
		}
		return property.New(all)
	}
	return property.Value{}
}

// text is a string value, or "" for any other.
func text(v property.Value) string {
	if v.IsString() {
		return v.AsString()
	}
	return ""
}

// truth is a boolean value, or false for any other.
func truth(v property.Value) bool { return v.IsBool() && v.AsBool() }

// number is a number value, or 0 for any other.
func number(v property.Value) float64 {
	if v.IsNumber() {
		return v.AsNumber()
	}
	return 0
}

// chosen is a boolean value, also as the text of a configuration.
func chosen(v property.Value) bool { return truth(v) || text(v) == "true" }
