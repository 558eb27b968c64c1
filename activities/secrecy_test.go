package activities

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/internal/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/temporal"
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
			if got := keepSecrets(c.read, c.known); !got.DeepEquals(c.want) {
				t.Errorf("%v, not %v", got, c.want)
			}
		})
	}
	if keepSecrets(nil, resource.PropertyMap{"p": secret("old")}) != nil {
		t.Error("what was not read is there")
	}
}

func TestNoErrorOfAnAttemptShowsASecretOfItsInputs(t *testing.T) {
	const hush, quoted = "hush-hush", "new\nline"
	for _, do := range []string{"refuse", "busy", "half"} {
		t.Run(do, func(t *testing.T) {
			h := bench(t, nil)
			inputs := texts("name", "n", "do", do)
			inputs["secret"] = resource.MakeSecret(resource.NewProperty(hush))
			result, err := h.step(h.create(inputs), 1)
			said := fmt.Sprint(result.Error, result.InitErrors, err)
			if strings.Contains(said, hush) || !strings.Contains(said, blinded) {
				t.Error(said)
			}
			var application *temporal.ApplicationError
			if do == "busy" && (!errors.As(err, &application) || application.NextRetryDelay() != 7*time.Second ||
				errorType(err) != deployments.ErrorThrottled) {
				t.Errorf("%#v", err)
			}
		})
	}
	secrets := secretsIn(resource.NewProperty(resource.PropertyMap{
		"list": resource.NewProperty([]resource.PropertyValue{resource.MakeSecret(resource.NewProperty(quoted))}),
		"in":   resource.MakeSecret(resource.NewPropertyValue(map[string]any{"a": []any{hush + "!", 1234.5}})),
		"out":  resource.NewProperty(resource.Output{Element: resource.NewProperty(hush), Known: true, Secret: true}),
		"open": resource.NewProperty("open"),
	}), false, nil)
	got := redaction.New(secrets).Replace(`open new\nline ` + quoted + " " + hush + "! " + hush + " 1234.5")
	if want := "open [secret] [secret] [secret] [secret] [secret]"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestEveryFormOfANestedSecretIsLeftOutOfTheLog(t *testing.T) {
	h := newHouse(t)
	const secret = "Zebra-nested-4711"
	h.claim(deployments.UpdateRequest{
		Bundle: h.upload(scenarioProject("steps: []")),
		Config: map[string]deployments.ConfigValue{
			"test:object": {Value: `{"user": {"Password": "` + secret + `"}, "list": ["another-Secret"]}`, Secret: true,
				Object: true},
		},
	})
	s, err := h.acts.hosted(t.Context(), h.update, h.base)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"it is " + secret + "\n", "split: Zebra-nes", "ted-4711", base64.StdEncoding.EncodeToString(
			[]byte("x" + secret)),
		hex.EncodeToString([]byte(secret)), "another-Secret", "a title: \x1b]0;PWNED\a\x1b[2Jdone",
	} {
		s.hear(pluginhost.Message{Severity: diag.Info, Text: text})
	}
	if err := s.log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := h.log()
	for _, leaked := range []string{secret, "Zebra-nes", "ted-4711", "WmVicmE", "5a65627261", "another-Secret", "PWNED",
		"u001b", "[2J"} {
		if strings.Contains(log, leaked) {
			t.Errorf("the log shows %s:\n%s", leaked, log)
		}
	}
	if !strings.Contains(log, "a title: done") {
		t.Error(log)
	}
}
