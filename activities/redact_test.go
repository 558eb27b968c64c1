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
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/temporal"
)

func TestNoErrorOfAnAttemptShowsASecretOfItsInputs(t *testing.T) {
	const hush = "hush-hush"
	for _, do := range []string{"refuse", "busy", "half"} {
		t.Run(do, func(t *testing.T) {
			h := bench(t, nil)
			inputs := texts("name", "n", "do", do)
			inputs["secret"] = resource.MakeSecret(resource.NewProperty(hush))
			result, err := h.step(h.create(inputs), 1)
			said := fmt.Sprint(result.Error, result.InitErrors, err)
			if strings.Contains(said, hush) || !strings.Contains(said, redaction.Placeholder) {
				t.Error(said)
			}
			var application *temporal.ApplicationError
			if do == "busy" && (!errors.As(err, &application) || application.NextRetryDelay() != 7*time.Second ||
				errorType(err) != deployments.ErrorThrottled) {
				t.Errorf("%#v", err)
			}
		})
	}
}

func TestAStepKeepsItsResultWhateverItsSecretsAre(t *testing.T) {
	secrets := map[string]deployments.ConfigValue{}
	for i, word := range []string{
		"false", "secret", "ecre", "[secret]", "type", "Step", "Failed", "(type: StepFailed",
	} {
		secrets[fmt.Sprintf("test:s%d", i)] = deployments.ConfigValue{Value: word, Secret: true}
	}
	for key, secret := range secrets {
		t.Run(secret.Value, func(t *testing.T) {
			t.Parallel()
			h := bench(t, map[string]deployments.ConfigValue{key: secret})
			op := 0
			for do, outcome := range map[string]engine.Outcome{
				"refuse": engine.OutcomeFailed, "half": engine.OutcomePartial, "unnamed": engine.OutcomeUndecidable,
			} {
				op++
				create := h.create(texts("name", do, "do", do))
				create.Op = op
				result, err := h.step(create, 1)
				if err != nil || result.Outcome != outcome || result.Op != op || result.Error == "" ||
					outcome == engine.OutcomePartial && (result.ID != do || result.Outputs.Empty()) {
					t.Errorf("a step that ends as %s gives %+v %v", outcome, result, err)
				}
			}
		})
	}
}

func TestAnErrorWithoutReadableTextStaysAnError(t *testing.T) {
	h := bench(t, nil)
	s, err := h.acts.sessions.Hosted(t.Context(), h.update, h.base)
	if err != nil {
		t.Fatal(err)
	}
	if said := s.Update().Host.Redactor(t.Context())("\x1b[2J"); said == "" || strings.Contains(said, "\x1b") {
		t.Errorf("%q", said)
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
	s, err := h.acts.sessions.Hosted(t.Context(), h.update, h.base)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"it is " + secret + "\n", "split: Zebra-nes", "ted-4711", base64.StdEncoding.EncodeToString(
			[]byte("x" + secret)),
		hex.EncodeToString([]byte(secret)), "another-Secret", "a title: \x1b]0;PWNED\a\x1b[2Jdone",
	} {
		s.Update().Host.Tell(diag.Info, "", text)
	}
	s.Flush(t.Context())
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
