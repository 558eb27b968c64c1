package grpcapi

import (
	"strings"
	"unicode"

	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Texts of messages that may hold anything, because nobody is shown them: values of the configuration and the
// environment, and secrets. Others would reach somebody's terminal.
var anyText = map[protoreflect.FullName]bool{
	"deployctl.v1.ConfigValue.value":         true,
	"deployctl.v1.SubmitRequest.environment": true,
	"deployctl.v1.EncryptRequest.plain":      true,
}

// printable refuses, as CodeInvalid, a message with control characters in a text. Lines may be broken, and have tabs.
func printable(m protoreflect.Message) error {
	var bad error
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case anyText[field.FullName()]:
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				if bad = printableValue(field, key.Value()); bad == nil {
					bad = printableValue(field, value)
				}
				return bad == nil
			})
		case field.IsList():
			for i := 0; i < value.List().Len() && bad == nil; i++ {
				bad = printableValue(field, value.List().Get(i))
			}
		default:
			bad = printableValue(field, value)
		}
		return bad == nil
	})
	return bad
}

func printableValue(field protoreflect.FieldDescriptor, value protoreflect.Value) error {
	switch value := value.Interface().(type) {
	case protoreflect.Message:
		return printable(value)
	case string:
		if strings.ContainsFunc(value, control) {
			return deployments.Errorf(deployments.CodeInvalid,
				"%.60q has control characters, which the field %s cannot have: leave them out", value, field.Name())
		}
	}
	return nil
}

func control(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
