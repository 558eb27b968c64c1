package app

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

func TestATokenOfTheStockCLIEndsWithTheServiceAndActsForTheLocalUser(t *testing.T) {
	store, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	local := &deployments.Origin{Token: deployments.LocalToken}
	admin := deployments.Grant{Role: deployments.RoleAdmin, Organization: "acme"}
	status := devserver.Status{Home: t.TempDir(), PulumiAddress: pulumiUsual}
	start := func() (token string) {
		t.Helper()
		if err := renewStockToken(t.Context(), store, &status); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(status.PulumiTokenFile)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	derive := func(name string) string {
		t.Helper()
		text, err := store.Access.DeriveToken(t.Context(), deployments.Token{Name: name, Origin: local})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := start()
	browser, own := derive("pulumi-laptop-abcdefgh"), derive("ci")
	created, err := store.Access.CreateToken(t.Context(), deployments.Token{Name: "ann", Grant: &admin})
	if err != nil {
		t.Fatal(err)
	}
	stock := stockAuthority{grpcapi.OneToken("local-text", store.Access), status.PulumiTokenFile}
	for text, want := range map[string]deployments.Code{first: "", browser: "", own: deployments.CodeForbidden,
		created: deployments.CodeForbidden, "local-text": deployments.CodeForbidden,
		"dctl.local.pulumi.0": deployments.CodeUnauthorized} {
		caller, err := stock.Authenticate(t.Context(), text)
		if deployments.CodeOf(err) != want || want == "" && (err != nil || caller.Token != deployments.LocalToken) {
			t.Errorf("%.20s…: %v, %v", text, caller.Token, err)
		}
	}
	second := start()
	for text, want := range map[string]bool{first: false, browser: false, own: true, created: true, second: true} {
		if _, err := store.Access.Authenticate(t.Context(), text); (err == nil) != want {
			t.Errorf("after another start %.20s… is good: %v", text, err)
		}
	}
	status.PulumiAddress = ""
	if err := renewStockToken(t.Context(), store, &status); err != nil {
		t.Fatal(err)
	}
	all, err := store.Access.ListTokens(t.Context())
	if err != nil || slices.ContainsFunc(all, func(t deployments.Token) bool { return forStock(t.Name) }) {
		t.Errorf("without an address there are %+v, %v", all, err)
	}
	if _, err := os.Stat(status.PulumiTokenFile); !os.IsNotExist(err) {
		t.Errorf("without an address there is a file: %v", err)
	}
}
