package passphrase

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

func TestTheRightPassphraseGivesTheSameKeyAgain(t *testing.T) {
	salt, key, err := New("open sesame")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Key("open sesame", salt)
	if err != nil || !bytes.Equal(again, key) {
		t.Fatalf("%x, %v", again, err)
	}
	if _, err := Key("wrong", salt); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Fatalf("a wrong passphrase gave %v", err)
	}
	raw, _ := base64.StdEncoding.DecodeString(strings.Split(salt, ":")[1])
	sealed, err := config.NewSymmetricCrypterFromPassphrase("open sesame", raw).EncryptValue(t.Context(), "v")
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := config.NewSymmetricCrypter(key).DecryptValue(t.Context(), sealed); err != nil || plain != "v" {
		t.Fatalf("the field's own key is another one: %q, %v", plain, err)
	}
}

func TestADamagedSaltIsSaid(t *testing.T) {
	for _, salt := range []string{"", "v2:a:b", "v1:***:x", "v1:QUJD"} {
		if _, err := Key("x", salt); deployments.CodeOf(err) != deployments.CodeInvalid ||
			!strings.Contains(err.Error(), "damaged") {
			t.Errorf("%q gave %v", salt, err)
		}
	}
}
