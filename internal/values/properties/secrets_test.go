package properties

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestWhatWasSecretStaysSecretWhenItIsRead(t *testing.T) {
	secret := func(v any) resource.PropertyValue { return resource.MakeSecret(resource.NewPropertyValue(v)) }
	object := resource.NewPropertyMapFromMap
	list := func(elements ...resource.PropertyValue) resource.PropertyValue { return resource.NewProperty(elements) }
	nested := resource.NewProperty(resource.PropertyMap{"password": secret("a"), "user": resource.NewProperty("b")})
	for name, c := range map[string]struct{ read, known, want resource.PropertyMap }{
		"a value": {
			object(map[string]any{"p": "new", "q": "x"}), resource.PropertyMap{"p": secret("old")},
			resource.PropertyMap{"p": secret("new"), "q": resource.NewProperty("x")},
		},
		"a part of an object that changed": {
			object(map[string]any{"o": map[string]any{"password": "c", "user": "d", "more": 1.0}}),
			resource.PropertyMap{"o": nested},
			resource.PropertyMap{"o": resource.NewProperty(resource.PropertyMap{
				"password": secret("c"), "user": resource.NewProperty("d"), "more": resource.NewProperty(1.0)})},
		},
		"an element of a list that is as it was": {
			object(map[string]any{"l": []any{map[string]any{"password": "a", "user": "b"}}}),
			resource.PropertyMap{"l": list(nested)},
			resource.PropertyMap{"l": list(nested)},
		},
		"all of a list that changed": {
			object(map[string]any{"l": []any{"b", "a"}}), resource.PropertyMap{
				"l": list(secret("a"), resource.NewProperty("b"))},
			resource.PropertyMap{"l": secret([]any{"b", "a"})},
		},
		"what is not there any more": {object(map[string]any{}), resource.PropertyMap{"p": secret("old")},
			resource.PropertyMap{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := KeepSecrets(c.read, c.known); !got.DeepEquals(c.want) {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
	if KeepSecrets(nil, resource.PropertyMap{"p": secret("old")}) != nil {
		t.Error("what was not read is there")
	}
}
