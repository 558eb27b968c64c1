package project

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"gocloud.dev/secrets"
	"gocloud.dev/secrets/localsecrets"
)

// localKey is a key as a key management service has one.
type localKey struct{ *secrets.Keeper }

func (k localKey) Wrap(ctx context.Context, plain []byte) ([]byte, error) {
	return k.Encrypt(ctx, plain)
}
func (k localKey) Unwrap(ctx context.Context, sealed []byte) ([]byte, error) {
	return k.Decrypt(ctx, sealed)
}

// local finds keys that depend on their URL, and counts.
func local(calls *int) Keys {
	return func(_ context.Context, url string) (Key, error) {
		*calls++
		if strings.Contains(url, "none") {
			return nil, errors.New("there is none")
		}
		var key [32]byte
		copy(key[:], url)
		return localKey{localsecrets.NewKeeper(key)}, nil
	}
}

func secretsOf(t *testing.T, p *Project, keys Keys) *Secrets {
	t.Helper()
	file, err := p.Stack("dev")
	if err != nil {
		t.Fatal(err)
	}
	return &Secrets{Stack: file, Keys: keys, Passphrase: func(bool) (string, error) { return "open", nil }}
}

func TestADataKeyIsUnwrappedOnlyByItsKey(t *testing.T) {
	p, err := Find(lay(t, map[string]string{"Pulumi.yaml": definition,
		"Pulumi.dev.yaml": "# kept\nsecretsprovider: awskms://alias/one\n"}))
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	made, err := secretsOf(t, p, local(&calls)).Provider(t.Context()) // the file had no data key
	if err != nil || made.Type != SecretsCloud || len(made.Key) != 32 || made.URL != "awskms://alias/one" {
		t.Fatalf("%+v, %v", made, err)
	}
	again := secretsOf(t, p, local(&calls))
	calls = 0
	for range 3 {
		crypter, err := again.Crypter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := crypter.EncryptValue(t.Context(), "sesame")
		if err != nil || strings.Contains(sealed, "sesame") {
			t.Fatal(sealed, err)
		}
	}
	found, err := again.Provider(t.Context())
	if err != nil || !bytes.Equal(found.Key, made.Key) || found.EncryptedKey != made.EncryptedKey || calls != 1 {
		t.Errorf("after %d calls it is %+v, %v", calls, found, err)
	}
	text, err := os.ReadFile(again.Stack.Path)
	if err != nil || strings.Contains(string(text), base64.StdEncoding.EncodeToString(made.Key)) ||
		!strings.Contains(string(text), "# kept") {
		t.Errorf("the file is\n%s(%v)", text, err)
	}
	for change, want := range map[string]string{
		"alias/one → alias/two":           "cannot decrypt the stack's data key",
		"alias/one → alias/none":          "there is none",
		"encryptedkey: → encryptedkey: _": "is damaged",
	} {
		old, changed, _ := strings.Cut(change, " → ")
		if err := os.WriteFile(again.Stack.Path, []byte(strings.Replace(string(text), old, changed, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := secretsOf(t, p, local(&calls)).Provider(t.Context())
		if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

func TestTheSecretsOfAFileChangeTheirProvider(t *testing.T) {
	p, err := Find(lay(t, map[string]string{"Pulumi.yaml": definition}))
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	s := secretsOf(t, p, local(&calls))
	if err := s.Use(t.Context(), SecretsPassphrase); err != nil {
		t.Fatal(err)
	}
	crypter, err := s.Crypter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := crypter.EncryptValue(t.Context(), "sesame")
	if err != nil {
		t.Fatal(err)
	}
	key := setSecret(t, s, sealed)
	for _, next := range []string{"gcpkms://one", "hashivault://two", "hashivault://two", SecretsPassphrase} {
		from, to, err := s.Change(t.Context(), next)
		if err != nil || bytes.Equal(from.Key, to.Key) || to.NeedsClient() == false ||
			(to.Salt == "") == (to.EncryptedKey == "") {
			t.Fatalf("%s: from %+v to %+v, %v", next, from, to, err)
		}
		if err := s.Stack.Save(); err != nil {
			t.Fatal(err)
		}
		s = secretsOf(t, p, local(&calls))
		v, _, err := s.Stack.Get(key, false)
		if err != nil {
			t.Fatal(err)
		}
		crypter, err := s.Crypter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text, err := s.Stack.Plain(key, v, crypter); err != nil || text != "sesame" {
			t.Errorf("%s: %q, %v", next, text, err)
		}
	}
}

func TestTheNameOfASecretsProviderIsChecked(t *testing.T) {
	for _, text := range []string{"default", "passphrase", "awskms:///arn:aws:kms:eu-central-1:1:key/2?region=x",
		"azurekeyvault://a.vault.azure.net/keys/b", "gcpkms://projects/p", "hashivault://k"} {
		if got, err := ParseProvider(text); err != nil || got != text {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "service", "awskms:alias", "base64key://x", "file:///x", "://"} {
		if _, err := ParseProvider(text); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// setSecret gives the file a secret value.
func setSecret(t *testing.T, s *Secrets, sealed string) config.Key {
	t.Helper()
	key, err := s.Stack.Key("password", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stack.Set(key, config.NewSecureValue(sealed), false); err != nil {
		t.Fatal(err)
	}
	return key
}
