package grpcapi

import (
	"strings"
	"unicode"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
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
	text, found := wire.FindText(m, func(field protoreflect.FieldDescriptor, text string) bool {
		return !anyText[field.FullName()] && strings.ContainsFunc(text, control)
	})
	if !found {
		return nil
	}
	return deployments.Errorf(deployments.CodeInvalid,
		"%.60q has control characters, which the field %s cannot have: leave them out", text.Value, text.Field.Name())
}

func control(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
