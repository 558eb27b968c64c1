package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

// plain removes secrets and outputs around a value; unknown values stay computed.
func plain(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return plain(v.SecretValue().Element)
	case v.IsOutput() && v.OutputValue().Known:
		return plain(v.OutputValue().Element)
	case v.IsOutput():
		return resource.MakeComputed(resource.NewProperty(""))
	}
	return v
}

// plainBelow is plain at every depth.
func plainBelow(v resource.PropertyValue) resource.PropertyValue {
	v = plain(v)
	switch {
	case v.IsObject():
		items := make(properties, len(v.ObjectValue()))
		for key, item := range v.ObjectValue() {
			items[key] = plainBelow(item)
		}
		return resource.NewProperty(items)
	case v.IsArray():
		items := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, item := range v.ArrayValue() {
			items[i] = plainBelow(item)
		}
		return resource.NewProperty(items)
	}
	return v
}

// decode fills a struct from a bag; properties that are missing or unknown leave their field zero.
func (o *object) decode(ctx context.Context, from properties, into any) error {
	_, failures := o.decodeKnown(ctx, from, reflect.ValueOf(into).Elem())
	if len(failures) > 0 {
		return fmt.Errorf("property %q %s", failures[0].Property, failures[0].Reason)
	}
	return nil
}

// decodeKnown is decode that reports every property of a wrong type and which are unknown, in whole or in part.
func (o *object) decodeKnown(ctx context.Context, from properties, into reflect.Value) (unknowns, []Failure) {
	unknown := unknowns{}
	var failures []Failure
	for _, f := range o.fields {
		v, ok := from[resource.PropertyKey(f.name)]
		switch {
		case !ok || v.IsNull():
			continue
		case v.ContainsUnknowns():
			unknown[f.name] = true
			continue
		}
		if path, reason := decodeValue(ctx, plain(v), into.FieldByIndex(f.index)); reason != "" {
			failures = append(failures, Failure{Property: f.name + path, Reason: reason})
		}
	}
	return unknown, failures
}

// decodeValue sets a Go value, or returns where below it and why it cannot.
func decodeValue(ctx context.Context, v resource.PropertyValue, into reflect.Value) (path, reason string) {
	v = plain(v)
	if reflect.PointerTo(into.Type()).Implements(valueType) {
		if err := into.Addr().Interface().(Value).UnmarshalProperty(plainBelow(v)); err != nil {
			return "", err.Error()
		}
		return "", ""
	}
	switch t := into.Type(); {
	case t == assetType:
		if !v.IsAsset() {
			return "", mustBe("an asset", v)
		}
		into.Set(reflect.ValueOf(located(ctx, v.AssetValue())))
		return "", ""
	case t == anyType:
		into.Set(reflect.ValueOf(plainBelow(v).Mappable()))
		return "", ""
	case t.Kind() == reflect.Pointer:
		target := reflect.New(t.Elem())
		into.Set(target)
		return decodeValue(ctx, v, target.Elem())
	case t.Kind() == reflect.Slice:
		return decodeSlice(ctx, v, into)
	case t.Kind() == reflect.Map:
		return decodeMap(ctx, v, into)
	case t.Kind() == reflect.Struct:
		if !v.IsObject() {
			return "", mustBe("an object", v)
		}
		if _, failures := objectOfType(t).decodeKnown(ctx, v.ObjectValue(), into); len(failures) > 0 {
			return "." + failures[0].Property, failures[0].Reason
		}
		return "", ""
	}
	return "", decodeScalar(v, into)
}

func decodeScalar(v resource.PropertyValue, into reflect.Value) (reason string) {
	switch into.Kind() {
	case reflect.String:
		if !v.IsString() {
			return mustBe("a string", v)
		}
		into.SetString(v.StringValue())
	case reflect.Bool:
		if !v.IsBool() {
			return mustBe("true or false", v)
		}
		into.SetBool(v.BoolValue())
	case reflect.Float64:
		if !v.IsNumber() {
			return mustBe("a number", v)
		}
		into.SetFloat(v.NumberValue())
	default: // the integers; objectOf has seen to it
		if !v.IsNumber() || v.NumberValue() != math.Trunc(v.NumberValue()) || math.Abs(v.NumberValue()) >= math.MaxInt64 {
			return mustBe("a whole number", v)
		}
		into.SetInt(int64(v.NumberValue()))
	}
	return ""
}

func decodeSlice(ctx context.Context, v resource.PropertyValue, into reflect.Value) (path, reason string) {
	if !v.IsArray() {
		return "", mustBe("a list", v)
	}
	items := v.ArrayValue()
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, item := range items {
		if below, reason := decodeValue(ctx, item, into.Index(i)); reason != "" {
			return fmt.Sprintf("[%d]%s", i, below), reason
		}
	}
	return "", ""
}

func decodeMap(ctx context.Context, v resource.PropertyValue, into reflect.Value) (path, reason string) {
	if !v.IsObject() {
		return "", mustBe("a map", v)
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, key := range v.ObjectValue().StableKeys() {
		item := reflect.New(into.Type().Elem()).Elem()
		if below, reason := decodeValue(ctx, v.ObjectValue()[key], item); reason != "" {
			return fmt.Sprintf("[%q]%s", key, below), reason
		}
		into.SetMapIndex(reflect.ValueOf(string(key)), item)
	}
	return "", ""
}

func mustBe(what string, v resource.PropertyValue) string {
	return fmt.Sprintf("must be %s, not %s", what, v.TypeString())
}

// located is an asset whose relative path is made absolute, so that its reader need not know the program's directory.
func located(ctx context.Context, a *asset.Asset) *asset.Asset {
	if !a.IsPath() || filepath.IsAbs(a.Path) || ProgramDir(ctx) == "" {
		return a
	}
	there := *a
	there.Path = filepath.Join(ProgramDir(ctx), a.Path)
	return &there
}

// encode makes a bag of a struct. Optional fields that are zero are left out; secret ones are marked.
func (o *object) encode(from any) (properties, error) {
	out := properties{}
	value := reflect.ValueOf(from)
	for _, f := range o.fields {
		fv := value.FieldByIndex(f.index)
		if f.optional && fv.IsZero() {
			continue
		}
		v, err := encodeValue(fv)
		if err != nil {
			return nil, fmt.Errorf("property %q: %w", f.name, err)
		}
		if f.secret {
			v = resource.MakeSecret(v)
		}
		out[resource.PropertyKey(f.name)] = v
	}
	return out, nil
}

func encodeValue(from reflect.Value) (resource.PropertyValue, error) {
	if reflect.PointerTo(from.Type()).Implements(valueType) {
		pointer := reflect.New(from.Type())
		pointer.Elem().Set(from)
		return pointer.Interface().(Value).MarshalProperty()
	}
	if a, ok := from.Interface().(*asset.Asset); ok {
		return resource.NewProperty(a), nil
	}
	null := resource.NewNullProperty()
	switch from.Kind() {
	case reflect.Pointer, reflect.Interface:
		if from.IsNil() {
			return null, nil
		}
		if from.Kind() == reflect.Interface {
			return resource.NewPropertyValue(from.Interface()), nil
		}
		return encodeValue(from.Elem())
	case reflect.Slice:
		items := make([]resource.PropertyValue, from.Len())
		for i := range items {
			var err error
			if items[i], err = encodeValue(from.Index(i)); err != nil {
				return null, err
			}
		}
		return resource.NewProperty(items), nil
	case reflect.Map:
		items := properties{}
		for it := from.MapRange(); it.Next(); {
			item, err := encodeValue(it.Value())
			if err != nil {
				return null, err
			}
			items[resource.PropertyKey(it.Key().String())] = item
		}
		return resource.NewProperty(items), nil
	case reflect.Struct:
		items, err := objectOfType(from.Type()).encode(from.Interface())
		return resource.NewProperty(items), err
	}
	return encodeScalar(from)
}

func encodeScalar(from reflect.Value) (resource.PropertyValue, error) {
	switch from.Kind() {
	case reflect.String:
		return resource.NewProperty(from.String()), nil
	case reflect.Bool:
		return resource.NewProperty(from.Bool()), nil
	case reflect.Float64:
		return resource.NewProperty(from.Float()), nil
	default: // the integers; objectOf has seen to it
		return resource.NewProperty(float64(from.Int())), nil
	}
}

// defaultValue parses a `default` tag: text for strings, JSON for everything else.
func (f field) defaultValue() resource.PropertyValue {
	if f.typ.Kind() == reflect.String {
		return resource.NewProperty(f.def)
	}
	var v any
	if err := json.Unmarshal([]byte(f.def), &v); err != nil {
		panic(fmt.Sprintf("provider: default of %q is not JSON: %v", f.name, err))
	}
	return resource.NewPropertyValue(v)
}
