package session

import (
	"reflect"
	"testing"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/filltest"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestAHookGetsEveryOptionThatIsStored sets every field of a state: a hook gets each option, or it is listed here with
// the reason why not.
func TestAHookGetsEveryOptionThatIsStored(t *testing.T) {
	missing := map[protoreflect.Name]string{
		"version":               "is stored with the provider",
		"plugin_download_url":   "is stored with the provider",
		"plugin_checksums":      "are stored with the provider",
		"providers":             "are not stored",
		"delete_before_replace": "is not stored",
		"replacement_trigger":   "is not sent by Pulumi's engine either",
	}
	var s engine.State
	filltest.Fill(t, reflect.ValueOf(&s).Elem())
	s.Hooks = engine.Hooks{engine.AfterDelete: {"bye"}}
	options := optionsOf(&s).ProtoReflect()
	fields := options.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if _, not := missing[field.Name()]; options.Has(field) == not {
			t.Errorf("%s: a hook gets it: %v", field.Name(), options.Has(field))
		}
	}
	if got := optionsOf(&s).GetHooks().GetAfterDelete(); len(got) != 1 || got[0] != "bye" {
		t.Errorf("the hooks are %v", got)
	}
}
