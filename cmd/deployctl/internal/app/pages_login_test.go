package app

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

func TestTheLoginWithAProviderNeedsAllOfItsSettingsAndGoodOnes(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hidden\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	type changed = map[settings.Key]string
	whole := map[settings.Key]string{settings.LoginIssuer: "https://accounts.google.com",
		settings.LoginAddress: "https://pulumi.example.com:8443/", settings.LoginClientID: "console",
		settings.LoginClientSecretFile: secret}
	read := func(changes map[settings.Key]string) (settings.Settings, error) {
		all := maps.Clone(whole)
		maps.Copy(all, changes)
		return settings.Load(settings.Sources{File: t.TempDir() + "/none", Variable: func(name string) string {
			for key, text := range all {
				if key.Variable() == name {
					return text
				}
			}
			return ""
		}})
	}
	for name, c := range map[string]struct {
		changes changed
		wrong   string // what the error names
	}{
		"all":                      {nil, ""},
		"a public client":          {changed{settings.LoginClientSecretFile: ""}, ""},
		"on this machine":          {changed{settings.LoginAddress: "http://localhost:8080"}, ""},
		"no issuer":                {changed{settings.LoginIssuer: ""}, "login.issuer"},
		"no client":                {changed{settings.LoginClientID: ""}, "login.client-id"},
		"no address":               {changed{settings.LoginAddress: ""}, "login.address"},
		"an issuer without TLS":    {changed{settings.LoginIssuer: "http://idp.example"}, "login.issuer"},
		"an issuer with a query":   {changed{settings.LoginIssuer: "https://idp.example?a=b"}, "login.issuer"},
		"an address without TLS":   {changed{settings.LoginAddress: "http://pulumi.example"}, "login.address"},
		"an address with a path":   {changed{settings.LoginAddress: "https://a.example/console"}, "login.address"},
		"an address with a user":   {changed{settings.LoginAddress: "https://a@b.example"}, "login.address"},
		"an address that is none":  {changed{settings.LoginAddress: "pulumi.example:8443"}, "login.address"},
		"scopes without openid":    {changed{settings.LoginScopes: "email"}, "login.scopes"},
		"scopes that are none":     {changed{settings.LoginScopes: "openid \"email\""}, "login.scopes"},
		"a secret that is nowhere": {changed{settings.LoginClientSecretFile: secret + "-"}, "client-secret-file"},
	} {
		loaded, err := read(c.changes)
		if err != nil {
			t.Fatal(err)
		}
		r, err := loginOf(loaded)
		if c.wrong != "" {
			if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), c.wrong) ||
				strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || r == nil || !strings.HasSuffix(r.Return, "/console/login/return") ||
			!slices.Contains(r.Scopes, "openid") || (r.Secret == "hidden") == (name == "a public client") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	loaded, err := read(nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := loginOf(loaded); r.Return != "https://pulumi.example.com:8443/console/login/return" {
		t.Errorf("people are sent back to %s", r.Return)
	}
	maps.DeleteFunc(whole, func(settings.Key, string) bool { return true })
	loaded, err = read(nil)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := loginOf(loaded); r != nil || err != nil {
		t.Errorf("without settings, it is %+v, %v", r, err)
	}
}
