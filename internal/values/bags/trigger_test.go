package bags

import (
	"testing"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestATriggerIsItsValueWhetherItIsSecretOrNot(t *testing.T) {
	key := []byte("k")
	value := func(v resource.PropertyValue) string {
		t.Helper()
		got, err := TriggerValue(key, resource.PropertyMap{"value": v})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	list := func(v ...resource.PropertyValue) resource.PropertyValue { return resource.NewProperty(v) }
	plain := value(list(str("a")))
	for name, same := range map[string]resource.PropertyValue{
		"a secret":        resource.MakeSecret(list(str("a"))),
		"a secret inside": list(resource.MakeSecret(str("a"))),
		"an output": resource.NewProperty(resource.Output{Element: list(str("a")), Known: true,
			Secret: true}),
		"a secret inside of a list": resource.MakeSecret(list(resource.MakeSecret(str("a")))),
	} {
		if got := value(same); got != plain {
			t.Errorf("%s: %q, not %q", name, got, plain)
		}
	}
	if got := value(list(str("b"))); got == plain {
		t.Error("another value is no other trigger")
	}
	for name, null := range map[string]resource.PropertyValue{
		"null": resource.NewNullProperty(), "a secret null": resource.MakeSecret(resource.NewNullProperty()),
	} {
		if got := value(null); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := value(list(resource.MakeComputed(str("")))); got != engine.UnknownTrigger {
		t.Errorf("an unknown one: %q", got)
	}
}
