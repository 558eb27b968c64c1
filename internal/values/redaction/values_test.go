package redaction_test

import (
	"testing"

	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestTheSecretsOfAValueAreRedactedWhereverTheyAreNested(t *testing.T) {
	const hush, quoted = "hush-hush", "new\nline"
	secrets := redaction.SecretTexts(resource.NewProperty(resource.PropertyMap{
		"list": resource.NewProperty([]resource.PropertyValue{resource.MakeSecret(resource.NewProperty(quoted))}),
		"in":   resource.MakeSecret(resource.NewPropertyValue(map[string]any{"a": []any{hush + "!", 1234.5}})),
		"out":  resource.NewProperty(resource.Output{Element: resource.NewProperty(hush), Known: true, Secret: true}),
		"open": resource.NewProperty("open"),
	}))
	got := redaction.New(secrets).Replace(`open new\nline ` + quoted + " " + hush + "! " + hush + " 1234.5")
	if want := "open [secret] [secret] [secret] [secret] [secret]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}
