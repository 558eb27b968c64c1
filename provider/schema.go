package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// schemaOf returns the Pulumi schema of the Go type of a property. A struct is an object whose properties the schema
// does not list. It panics for a type that has no schema.
func schemaOf(t reflect.Type) map[string]any { return schemaWithin(t, nil) }

// schemaWithin is schemaOf for a type within structs, which are not read again: a struct may contain values of its own
// type.
func schemaWithin(t reflect.Type, structs []reflect.Type) map[string]any {
	if reflect.PointerTo(t).Implements(valueType) {
		return reflect.New(t).Interface().(Value).PropertySchema()
	}
	switch t {
	case assetType:
		return map[string]any{"$ref": "pulumi.json#/Asset"}
	case anyType:
		return map[string]any{"$ref": "pulumi.json#/Any"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaWithin(t.Elem(), structs)
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaWithin(t.Elem(), structs)}
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return map[string]any{"type": "object", "additionalProperties": schemaWithin(t.Elem(), structs)}
		}
	case reflect.Struct:
		if !slices.Contains(structs, t) {
			objectWithin(t, structs) // panics where a field has no schema
		}
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"$ref": "pulumi.json#/Any"}}
	}
	panic(fmt.Sprintf("provider: %s has no schema", t))
}

func (f field) schema(mark func(field, map[string]any)) map[string]any {
	s := maps.Clone(schemaOf(f.typ))
	if f.doc != "" {
		s["description"] = f.doc
	}
	if f.secret {
		s["secret"] = true
	}
	mark(f, s)
	return s
}

// inputs are the schema of a struct's properties as inputs, with the names of those that are required.
func (o *object) inputs() (map[string]any, []string) {
	props, required := map[string]any{}, []string{}
	for _, f := range o.fields {
		props[f.name] = f.schema(func(f field, s map[string]any) {
			if f.replace {
				s["willReplaceOnChanges"] = true
			}
			if f.def != "" && f.typ.Kind() != reflect.Slice && f.typ.Kind() != reflect.Map {
				s["default"] = f.defaultValue().V
			}
		})
		if !f.optional {
			required = append(required, f.name)
		}
	}
	return props, required
}

// outputs are the schema of a struct's properties as outputs, with the names of those that are always there.
func (o *object) outputs() (map[string]any, []string) {
	props, required := map[string]any{}, []string{}
	for _, f := range o.fields {
		props[f.name] = f.schema(func(field, map[string]any) {})
		if !f.optional || f.def != "" || f.autoname {
			required = append(required, f.name)
		}
	}
	return props, required
}

// Schema is the package's Pulumi schema as JSON.
func (p Package) Schema() ([]byte, error) {
	resources, functions, config := map[string]any{}, map[string]any{}, map[string]any{}
	for _, m := range p.Modules {
		if m.Config.in != nil {
			props, _ := m.Config.in.inputs()
			maps.Copy(config, props)
		}
		for _, r := range m.Resources {
			resources[r.token] = typeSchema(r.description, r.in, r.out)
		}
		for _, c := range m.Components {
			s := typeSchema(c.description, c.in, c.out)
			s["isComponent"] = true
			resources[c.token] = s
		}
		for _, f := range m.Functions {
			functions[f.token] = f.schema()
		}
	}
	return json.Marshal(map[string]any{
		"name": p.Name, "version": p.Version, "displayName": p.DisplayName, "description": p.Description,
		"homepage": p.Homepage,
		// A token's module is its second part as it stands.
		"meta":      map[string]any{"moduleFormat": "(.*)"},
		"config":    map[string]any{"variables": config},
		"provider":  map[string]any{"inputProperties": config},
		"resources": resources,
		"functions": functions,
		"language":  map[string]any{"nodejs": map[string]any{"respectSchemaVersion": true}},
	})
}

func typeSchema(description string, in, out *object) map[string]any {
	inputs, requiredInputs := in.inputs()
	outputs, required := out.outputs()
	return map[string]any{
		"description":     strings.TrimSpace(description),
		"inputProperties": inputs, "requiredInputs": requiredInputs,
		"properties": outputs, "required": required,
	}
}
