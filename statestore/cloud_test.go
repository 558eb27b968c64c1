package statestore_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

func TestSecretsUnderAKeyOfAKeyManagementServiceMoveWithTheirState(t *testing.T) {
	cloud := deployments.SecretsProvider{Type: deployments.SecretsCloud, URL: "awskms://alias/stacks",
		EncryptedKey: "AQIDBA==", Key: bytes.Repeat([]byte{7}, 32)}
	s := newStack(t, &bucket.Memory{})
	if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev}, golden(t, "stock_plain.json")); err != nil {
		t.Fatal(err)
	}
	sealed, err := s.Export(t.Context(), statestore.Exchange{Stack: dev, Secrets: cloud}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	section := `"secrets_providers":{"type":"cloud","state":{"url":"awskms://alias/stacks","encryptedkey":"AQIDBA=="}}`
	if !bytes.Contains(sealed.Deployment, []byte(section)) || bytes.Contains(sealed.Deployment, []byte("hush")) {
		t.Fatalf("the export is %s", sealed.Deployment)
	}
	there := newStack(t, &bucket.Memory{})
	for change, c := range map[string]struct {
		change func(*deployments.SecretsProvider)
		says   string
	}{
		"without the key":  {func(p *deployments.SecretsProvider) { p.Key = nil }, "does not have it"},
		"another data key": {func(p *deployments.SecretsProvider) { p.EncryptedKey = "BQ==" }, "another key than"},
		"the service's own": {func(p *deployments.SecretsProvider) { *p = deployments.SecretsProvider{} },
			"does not have it"},
		"a passphrase": {func(p *deployments.SecretsProvider) { p.Type, p.Salt = "passphrase", "v1:a:b" },
			"does not have it"},
	} {
		p := cloud
		c.change(&p)
		_, err := there.Import(t.Context(), statestore.Exchange{Stack: dev, Secrets: p}, sealed)
		if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", change, err)
		}
	}
	with := statestore.Exchange{Stack: dev, Secrets: cloud}
	with.Secrets.URL = "awskms://alias/renamed" // the same data key
	if _, err := there.Import(t.Context(), with, sealed); err != nil {
		t.Fatal(err)
	}
	plain, err := there.Export(t.Context(), with, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, plain, golden(t, "stock_plain.json"))
}
