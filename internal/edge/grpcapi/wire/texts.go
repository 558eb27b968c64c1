package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Text is a text in a message: its field, and its path from the message, as in "config[shop:size].value".
type Text struct {
	Field protoreflect.FieldDescriptor
	Path  string
	Value string
}

// FindText returns the first text of a message for which is returns true, keys of maps included.
func FindText(m protoreflect.Message, is func(protoreflect.FieldDescriptor, string) bool) (found Text, ok bool) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
				if found, ok = findIn(field, key.Value(), is); !ok {
					found, ok = findIn(field, value, is)
					found.Path = fmt.Sprintf("[%s]%s", key.String(), found.Path)
				}
				return !ok
			})
		case field.IsList():
			for i := 0; i < value.List().Len() && !ok; i++ {
				found, ok = findIn(field, value.List().Get(i), is)
				found.Path = fmt.Sprintf("[%d]%s", i, found.Path)
			}
		default:
			found, ok = findIn(field, value, is)
		}
		if ok {
			found.Path = string(field.Name()) + found.Path
		}
		return !ok
	})
	return found, ok
}

func findIn(
	field protoreflect.FieldDescriptor, value protoreflect.Value, is func(protoreflect.FieldDescriptor, string) bool,
) (Text, bool) {
	switch value := value.Interface().(type) {
	case protoreflect.Message:
		found, ok := FindText(value, is)
		if ok {
			found.Path = "." + found.Path
		}
		return found, ok
	case string:
		return Text{Field: field, Value: value}, is(field, value)
	}
	return Text{}, false
}

// CheckEncoding refuses, as CodeInvalid, a message with a text that is not UTF-8, which gRPC does not send. The error
// does not have the text: it may be a secret.
func CheckEncoding(m protoreflect.Message) error {
	text, found := FindText(m, func(_ protoreflect.FieldDescriptor, text string) bool { return !utf8.ValidString(text) })
	if !found {
		return nil
	}
	what := text.Path
	if name, _, assigned := strings.Cut(text.Value, "="); text.Field.Name() == "environment" && assigned {
		what = "the variable " + strings.ToValidUTF8(name, "\uFFFD") + " of the environment"
	}
	return deployments.CheckUTF8(strings.ToValidUTF8(what, "\uFFFD"), text.Value)
}
