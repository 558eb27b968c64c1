package grpcapi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// longestField bounds what an entry of the audit log says of one field, in bytes.
const longestField = 500

// fields returns those fields of a message that are set, as NAME=VALUE with a space between.
func fields(m proto.Message, paths []string) string {
	var set []string
	for _, path := range paths {
		name, text := textAt(m.ProtoReflect(), path)
		if text != "" && text != "false" && text != "0" {
			if len(text) > longestField {
				text = strings.ToValidUTF8(text[:longestField], "") + "…"
			}
			set = append(set, name+"="+text)
		}
	}
	return strings.Join(set, " ")
}

// textAt returns the name and the text of the field of a message at a path such as update.version. A path such as
// set.name leads into each element of a list, which the name is of.
func textAt(m protoreflect.Message, path string) (name, text string) {
	name, rest, deeper := strings.Cut(path, ".")
	field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	value := m.Get(field)
	switch {
	case !deeper:
		return name, fieldText(field, value)
	case field.IsList():
		var all []string
		for i := range value.List().Len() {
			_, of := textAt(value.List().Get(i).Message(), rest)
			all = append(all, of)
		}
		return name, strings.Join(all, ",")
	}
	return textAt(value.Message(), rest)
}

// fieldText returns the value of a field for people: elements of lists with a comma between, and of maps the keys, with
// their values if these are numbers.
func fieldText(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	var all []string
	switch {
	case field.IsMap():
		value.Map().Range(func(key protoreflect.MapKey, of protoreflect.Value) bool {
			text := key.String()
			if number, ok := of.Interface().(int64); ok {
				text += fmt.Sprintf(":%d", number)
			}
			all = append(all, text)
			return true
		})
		slices.Sort(all)
	case field.IsList():
		for i := range value.List().Len() {
			all = append(all, elementText(field, value.List().Get(i)))
		}
	case field.Message() != nil && !value.Message().IsValid():
	default:
		return elementText(field, value)
	}
	return strings.Join(all, ",")
}

// elementText returns one value of a field: of a message, the texts of its fields with a colon between.
func elementText(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	if field.Message() == nil {
		return fmt.Sprint(value.Interface())
	}
	switch m := value.Message().Interface().(type) {
	case *timestamppb.Timestamp:
		return m.AsTime().Format(time.RFC3339)
	case *durationpb.Duration:
		return m.AsDuration().String()
	}
	var parts []string
	for i := range field.Message().Fields().Len() {
		inner := field.Message().Fields().Get(i)
		parts = append(parts, fieldText(inner, value.Message().Get(inner)))
	}
	return strings.Join(parts, ":")
}
