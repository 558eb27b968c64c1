package grpcapi

import (
	"slices"
	"strings"
	"testing"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// requests calls f with an empty request of every method of the API.
func requests(t *testing.T, f func(method string, m proto.Message)) {
	t.Helper()
	services := api.File_deployctl_v1_deployctl_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			kind, err := protoregistry.GlobalTypes.FindMessageByName(methods.Get(j).Input().FullName())
			if err != nil {
				t.Fatal(err)
			}
			f(string(methods.Get(j).Name()), kind.New().Interface())
		}
	}
}

func TestEveryRequestHasARule(t *testing.T) {
	requests(t, func(method string, m proto.Message) {
		err := validate(m)
		whole := []string{"ListStacks", "ListStatuses", "ListOngoing", "ListTokens", "ListMembers", "ListTeams", "ListTrusts",
			"WhoAmI", "GetMode", "SetMode", "ListQuotas"}
		if err == nil && !slices.Contains(whole, method) {
			t.Errorf("%s: an empty request is taken", method)
		}
		if err != nil && deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", method, err)
		}
		// now the fields beside the names are checked; a request without a rule is CodeInternal
		if set(m.ProtoReflect(), "dev") {
			if err := validate(m); err != nil && deployments.CodeOf(err) != deployments.CodeInvalid {
				t.Errorf("%s: %v", method, err)
			}
		}
	})
}

func TestNoNameOfARequestLeavesItsPlace(t *testing.T) {
	for _, name := range []string{"..", ".", "a/b", "../a", "a\x00", "a\x1b[2J", strings.Repeat("a", 300), "\xff"} {
		requests(t, func(method string, m proto.Message) {
			if !set(m.ProtoReflect(), name) {
				return
			}
			if err := validate(m); err == nil || deployments.CodeOf(err) != deployments.CodeInvalid {
				t.Errorf("%s takes %q for a name: %v", method, name, err)
			}
		})
	}
}

// set gives every name in a request one text, and tells whether there is any.
func set(m protoreflect.Message, name string) bool {
	found := false
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.Kind() == protoreflect.MessageKind && !f.IsList() && !f.IsMap() &&
			strings.HasSuffix(string(f.Message().Name()), "Name"):
			found = set(m.Mutable(f).Message(), name) || found
		case f.Kind() == protoreflect.MessageKind && f.Message().Name() == "Schedule":
			found = set(m.Mutable(f).Message(), name) || found
		case f.Kind() == protoreflect.StringKind && !f.IsList() && isName(f):
			m.Set(f, protoreflect.ValueOfString(name))
			found = true
		}
	}
	return found
}

func isName(f protoreflect.FieldDescriptor) bool {
	switch f.Name() {
	case "organization", "project", "stack", "name", "version", "request_id":
		return true
	}
	return false
}
