package bags_test

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

func TestWhatHasASecretThatNoValueSaysIsOneBecomesOne(t *testing.T) {
	const hush = "say hush to nobody"
	text := func(s string) resource.PropertyValue { return resource.NewProperty(s) }
	list := func(s string) resource.PropertyValue {
		return resource.NewProperty([]resource.PropertyValue{text("open"), text(s)})
	}
	content, err := asset.FromText(hush)
	if err != nil {
		t.Fatal(err)
	}
	contents, err := archive.FromAssets(map[string]any{"in": content})
	if err != nil {
		t.Fatal(err)
	}
	c := &bags.Codec{Key: []byte("key"), Secret: func(s string) bool { return strings.Contains(s, "hush") }}
	values := resource.PropertyMap{
		"open": list("open"), "n": resource.NewProperty(1.0), "text": text(hush), "list": list(hush),
		"map":    resource.NewProperty(resource.PropertyMap{"in": list(hush)}),
		"key":    resource.NewProperty(resource.PropertyMap{"hush": text("open")}),
		"output": resource.NewProperty(resource.Output{Element: list(hush), Known: true}),
		"secret": resource.MakeSecret(text(hush)), "asset": resource.NewProperty(content),
		"archive": resource.NewProperty(contents),
	}
	bag, err := c.Encode(t.Context(), values)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Decode(t.Context(), bag)
	if err != nil {
		t.Fatal(err)
	}
	for key, v := range got {
		if open := key == "open" || key == "n"; v.ContainsSecrets() == open {
			t.Errorf("%s is %v", key, v)
		}
	}
	if !got["list"].ArrayValue()[1].IsSecret() || got["list"].ArrayValue()[0].IsSecret() || !got["key"].IsSecret() {
		t.Errorf("more or less is secret than has it: %v, %v", got["list"], got["key"])
	}
	if values["text"].IsSecret() || values["list"].ContainsSecrets() || values["map"].ContainsSecrets() {
		t.Error("the values that were given are changed")
	}
	again, err := c.Encode(t.Context(), got)
	if err != nil || again.Digest != bag.Digest {
		t.Errorf("what is read and written again has another digest: %v", err)
	}
}
