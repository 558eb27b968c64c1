package project

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestAKeyIsUnwrappedOnlyByItsPassphrase(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": definition})
	p, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	file, err := p.Stack("dev")
	if err != nil {
		t.Fatal(err)
	}
	phrase := "right"
	s := &Secrets{Stack: file, Passphrase: func(bool) (string, error) { return phrase, nil }}
	if err := s.UsePassphrase(); err != nil {
		t.Fatal(err)
	}
	if err := file.Save(); err != nil {
		t.Fatal(err)
	}
	for attempt, want := range map[string]string{"right": "", "wrong": "the passphrase is not this stack's",
		"": "the passphrase is not this stack's"} {
		again, err := p.Stack("dev")
		if err != nil {
			t.Fatal(err)
		}
		provider, err := (&Secrets{Stack: again, Passphrase: func(bool) (string, error) {
			return attempt,
				nil
		}}).Provider(t.Context())
		if want == "" && (err != nil || provider.Type != SecretsPassphrase || len(provider.Key) != 32) {
			t.Errorf("%q: %+v, %v", attempt, provider, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", attempt, err)
		}
	}
}

func TestAProviderThatIsNotKnownIsNamed(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": definition,
		"Pulumi.dev.yaml": "secretsprovider: base64key://x\n"})
	p, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	file, err := p.Stack("dev")
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&Secrets{Stack: file}).Provider(t.Context())
	if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), "base64key://x") {
		t.Error(err)
	}
}

func TestADamagedStackFileIsSaid(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": definition, "Pulumi.dev.yaml": "config: [\n"})
	p, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stack("dev"); deployments.CodeOf(err) != deployments.CodeInvalid ||
		!strings.Contains(err.Error(), "Pulumi.dev.yaml is not valid") {
		t.Error(err)
	}
}
