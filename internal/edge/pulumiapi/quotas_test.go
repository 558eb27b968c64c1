package pulumiapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// limit sets limits of the organization of dev.
func (b *bench) limit(q deployments.Quota) {
	b.Helper()
	change := deployments.QuotaChange{Organization: dev.Organization, Set: q}
	if err := b.store.Organizations.SetQuota(b.Context(), change); err != nil {
		b.Fatal(err)
	}
}

// refuses is a call that is refused for the quota.
func (b *bench) refuses(path, body, sentence string) {
	b.Helper()
	if said := b.want(http.StatusPaymentRequired, http.MethodPost, path, "token deployer", body); !strings.Contains(said,
		sentence) || !strings.Contains(said, "ask an operator of the service for more") {
		b.Errorf("%s is refused with %s", path, said)
	}
}

// stateOf is the state of dev with so many resources.
func stateOf(n int) string {
	var resources []string
	for i := range n {
		resources = append(resources, fmt.Sprintf(`{"urn":"urn:pulumi:%s::shop::t:m:T::r%d","type":"t:m:T"}`, dev.Stack, i))
	}
	return `{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"resources":[` +
		strings.Join(resources, ",") + `]}`
}

func TestTheStockCLICreatesNoMoreStacksThanTheQuotaAllows(t *testing.T) {
	b := newBench(t)
	b.limit(deployments.Quota{deployments.LimitStacks: 2})
	const stacks = "/api/stacks/acme/shop"
	b.want(http.StatusOK, http.MethodPost, stacks, "token deployer", `{"stackName":"second"}`)
	const sentence = "the organization acme has 2 stacks, and its quota allows 2: remove one"
	b.refuses(stacks, `{"stackName":"third"}`, sentence)
	b.refuses(stacks, `{"stackName":"third","state":{"version":3,"deployment":`+strings.ReplaceAll(stateOf(1), ":dev:",
		":third:")+`}}`, sentence)
	b.want(http.StatusOK, http.MethodPost, "/api/stacks/other/shop", "token stranger", `{"stackName":"dev"}`)
}

func TestTheStockCLIBeginsNoUpdateThatMakesMoreThanTheQuotaAllows(t *testing.T) {
	b := newBench(t)
	if _, err := b.store.ImportAsIs(t.Context(), statestore.Exchange{Stack: dev}, apitype.UntypedDeployment{Version: 3,
		Deployment: json.RawMessage(stateOf(3))}); err != nil {
		t.Fatal(err)
	}
	b.limit(deployments.Quota{deployments.LimitResources: 2, deployments.LimitWorkerMinutes: 0})
	const updates = "/api/stacks/acme/shop/dev/"
	const sentence = "the organization acme has 3 resources, and its quota allows 2: destroy some first"
	b.refuses(updates+"update", "{}", sentence)
	b.refuses(updates+"begin-update", `{"updateKind":"update"}`, sentence)
	for _, kind := range []string{"preview", "refresh", "destroy"} {
		b.want(http.StatusOK, http.MethodPost, updates+kind, "token deployer", "{}")
	}
	state := `{"version":3,"deployment":` + stateOf(4) + `}`
	if got, said, _ := b.do(http.MethodPost, updates+"import", "token deployer",
		strings.NewReader(state)); got == http.StatusPaymentRequired { // it makes nothing
		t.Errorf("a state is refused: %s", said)
	}
}

func TestTheStockCLIIsToldThatItsUpdateWaitsForOthersOfItsOrganization(t *testing.T) {
	b := newBench(t)
	other := deployments.UpdateName{StackName: dev, Version: "1"}
	other.Stack = "live"
	if err := b.store.CreateStack(t.Context(), other.StackName, nil); err != nil {
		t.Fatal(err)
	}
	b.limit(deployments.Quota{deployments.LimitUpdates: 1})
	const updates = "/api/stacks/acme/shop/dev/"
	warning := func(kind string) string {
		t.Helper()
		got, said, header := b.do(http.MethodPost, updates+kind, "token deployer", strings.NewReader("{}"))
		if got != http.StatusOK {
			t.Errorf("%s is answered %d: %s", kind, got, said)
		}
		return header.Get(warningHeader)
	}
	if said := warning("update"); said != "" {
		t.Errorf("with a place, it is warned: %s", said)
	}
	if why, err := b.store.Organizations.PlaceUpdate(t.Context(), other); err != nil || why != "" {
		t.Fatal(why, err)
	}
	if _, err := b.store.Claim(t.Context(), statestore.Claimant{Update: other, Writer: "w"}); err != nil {
		t.Fatal(err)
	}
	if said := warning("update"); !strings.Contains(said, "acme runs 1 update, and its quota allows 1 at a time") {
		t.Errorf("without a place, it is warned: %s", said)
	}
	if said := warning("preview"); said != "" {
		t.Errorf("a preview is warned: %s", said)
	}
}
