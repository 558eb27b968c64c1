package provider

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

// properties is a bag of property values as it goes over the wire.
type properties = resource.PropertyMap

// Value is a type with a wire form of its own, for unions and the like. UnmarshalProperty is called on a pointer,
// with a value that has no secrets in it.
type Value interface {
	MarshalProperty() (resource.PropertyValue, error)
	UnmarshalProperty(v resource.PropertyValue) error
	// PropertySchema is the type's Pulumi schema, such as {"oneOf": […]}.
	PropertySchema() map[string]any
}

// object is what the tags of a struct say.
type object struct {
	typ    reflect.Type
	fields []field
}

// field is one property: a struct field and its tag.
type field struct {
	name     string
	index    []int
	typ      reflect.Type
	doc      string
	def      string
	optional bool
	secret   bool
	replace  bool
	autoname bool
	stable   bool
	inherit  bool
}

var (
	valueType = reflect.TypeFor[Value]()
	assetType = reflect.TypeFor[*asset.Asset]()
	anyType   = reflect.TypeFor[any]()
)

func objectOf[T any]() *object { return objectOfType(reflect.TypeFor[T]()) }

// objectOfType reads the tags of a struct type. It panics where a type has no wire form.
func objectOfType(t reflect.Type) *object { return objectWithin(t, nil) }

// objectWithin is objectOfType for a type within structs.
func objectWithin(t reflect.Type, structs []reflect.Type) *object {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("provider: %s is not a struct", t))
	}
	o := &object{typ: t}
	for _, sf := range reflect.VisibleFields(t) {
		tag, tagged := sf.Tag.Lookup("pulumi")
		if !tagged || sf.Anonymous {
			continue
		}
		if !sf.IsExported() {
			panic(fmt.Sprintf("provider: %s.%s has a tag and is not exported", t, sf.Name))
		}
		f := parseTag(tag)
		f.index, f.typ, f.doc, f.def = sf.Index, sf.Type, sf.Tag.Get("doc"), sf.Tag.Get("default")
		f.optional = f.optional || f.def != "" || f.autoname
		schemaWithin(f.typ, append(structs, t)) // panics where there is none
		o.accept(f, sf)
		o.fields = append(o.fields, f)
	}
	return o
}

// accept panics where a field cannot be one of the object.
func (o *object) accept(f field, sf reflect.StructField) {
	switch {
	case f.name == "":
		panic(fmt.Sprintf("provider: the tag of %s.%s names no property", o.typ, sf.Name))
	case o.field(f.name) != nil:
		panic(fmt.Sprintf("provider: two fields of %s are called %q", o.typ, f.name))
	case f.def == "":
		return
	}
	into := reflect.New(f.typ).Elem()
	if _, reason := decodeValue(context.Background(), f.defaultValue(), into); reason != "" {
		panic(fmt.Sprintf("provider: default of %q %s", f.name, reason))
	}
}

func parseTag(tag string) field {
	name, options, _ := strings.Cut(tag, ",")
	f := field{name: name}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "optional":
			f.optional = true
		case "secret":
			f.secret = true
		case "replace":
			f.replace = true
		case "autoname":
			f.autoname = true
		case "stable":
			f.stable = true
		case "inherit":
			f.inherit = true
		default:
			panic(fmt.Sprintf("provider: unknown option %q in tag %q", option, tag))
		}
	}
	return f
}

// field returns the field of a property, nil when there is none.
func (o *object) field(name string) *field {
	for i := range o.fields {
		if o.fields[i].name == name {
			return &o.fields[i]
		}
	}
	return nil
}
