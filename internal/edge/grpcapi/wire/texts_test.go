package wire

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// eachTextOf calls try for every message of a kind that has one text; path is where. Messages within are filled, too.
func eachTextOf(
	m protoreflect.MessageDescriptor, depth int, text string, try func(path string, m protoreflect.Message),
) {
	if depth > 4 {
		return
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(m.FullName())
	if err != nil {
		return
	}
	made := kind.New()
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		name := string(field.Name())
		switch {
		case field.IsMap() && field.MapValue().Kind() == protoreflect.StringKind:
			made.Mutable(field).Map().Set(protoreflect.ValueOfString("k").MapKey(), protoreflect.ValueOfString(text))
			try(name, made)
			made.Clear(field)
		case field.Kind() == protoreflect.StringKind && field.IsList():
			made.Mutable(field).List().Append(protoreflect.ValueOfString(text))
			try(name, made)
			made.Clear(field)
		case field.Kind() == protoreflect.StringKind:
			made.Set(field, protoreflect.ValueOfString(text))
			try(name, made)
			made.Clear(field)
		case field.Kind() == protoreflect.MessageKind && !field.IsMap():
			eachTextOf(field.Message(), depth+1, text, func(path string, inner protoreflect.Message) {
				if field.IsList() {
					made.Mutable(field).List().Append(protoreflect.ValueOfMessage(inner))
				} else {
					made.Set(field, protoreflect.ValueOfMessage(inner))
				}
				try(name+" "+path, made)
				made.Clear(field)
			})
		}
	}
}

func TestNoMessageIsSentWithATextThatIsNotUTF8(t *testing.T) {
	texts := 0
	services := api.File_deployctl_v1_deployctl_proto.Services()
	for i := range services.Len() {
		for j := range services.Get(i).Methods().Len() {
			request := services.Get(i).Methods().Get(j).Input()
			eachTextOf(request, 0, "a\xe9b", func(path string, m protoreflect.Message) {
				texts++
				last := path[strings.LastIndexByte(path, ' ')+1:]
				err := CheckEncoding(m)
				if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), last) ||
					!strings.Contains(err.Error(), "is not UTF-8 (its byte 2 is 0xe9)") {
					t.Errorf("%s: %s is answered %v", request.Name(), path, err)
				}
			})
			eachTextOf(request, 0, "aéb\x00", func(path string, m protoreflect.Message) {
				if err := CheckEncoding(m); err != nil {
					t.Errorf("%s: %s is refused: %v", request.Name(), path, err)
				}
			})
		}
	}
	if texts < 100 {
		t.Errorf("requests have %d texts", texts)
	}
}

func TestATextThatIsNotUTF8IsNamedAndNotShown(t *testing.T) {
	for want, m := range map[string]*api.SubmitRequest{
		"message is": {Message: "caf\xe9"},
		"config[shop:password].value is": {
			Config: map[string]*api.ConfigValue{"shop:password": {Value: "sesame\xe9"}}},
		"the variable LS_COLORS of the environ":   {Environment: []string{"HOME=/root", "LS_COLORS=sesame\xe9"}},
		"targets[1] is not UTF-8 (its byte 1 is ": {Targets: []string{"a", "\xe9"}},
	} {
		if err := CheckEncoding(m.ProtoReflect()); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "sesame") {
			t.Errorf("%v, not %q", err, want)
		}
	}
}
