package pulumiapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestWebhooksOfAnOrganizationAreItsAdmins(t *testing.T) {
	b := newBench(t)
	const path, body = "/api/orgs/acme/hooks", `{"displayName":"all","payloadUrl":"https://example.com","active":true}`
	for _, token := range []string{"deployer", "viewer", "stranger"} {
		for _, c := range []struct{ method, path string }{{http.MethodGet, path}, {http.MethodPost, path},
			{http.MethodGet, path + "/x"}, {http.MethodPatch, path + "/x"}, {http.MethodDelete, path + "/x"},
			{http.MethodPost, path + "/x/ping"}, {http.MethodGet, path + "/x/deliveries"},
			{http.MethodPost, path + "/x/deliveries/y/redeliver"}} {
			b.want(http.StatusForbidden, c.method, c.path, "token "+token, body)
		}
	}
	var made apitype.Webhook
	text := b.want(http.StatusOK, http.MethodPost, path, "token admin", body)
	if err := json.Unmarshal([]byte(text), &made); err != nil ||
		made.Name == "" || made.DisplayName != "all" || !made.Active || made.OrganizationName != "acme" {
		t.Errorf("it is made as %+v, %v", made, err)
	}
	for name, want := range map[string]int{made.Name: http.StatusOK, "all": http.StatusOK,
		"nothing": http.StatusNotFound} {
		b.want(want, http.MethodGet, path+"/"+name, "token admin", "")
	}
	for _, name := range []string{"%2e%2e", "a%2fb", "%00"} {
		if got, said, _ := b.do(http.MethodDelete, path+"/"+name, "token admin", nil); got != http.StatusBadRequest &&
			got != http.StatusNotFound {
			t.Errorf("the name %s is answered %d: %s", name, got, said)
		}
	}
	if last := b.log.entries[len(b.log.entries)-1]; last.Organization != "acme" {
		t.Errorf("the audit log has %+v", last)
	}
}

func TestTheSecretOfAWebhookIsInNoAnswer(t *testing.T) {
	b := newBench(t)
	const path, secret = "/api/stacks/acme/shop/dev/hooks", "the-key-of-the-signatures"
	said := b.want(http.StatusOK, http.MethodPost, path, "token deployer",
		`{"displayName":"x","payloadUrl":"https://example.com","active":true,"secret":"`+secret+`"}`)
	var made apitype.Webhook
	if err := json.Unmarshal([]byte(said), &made); err != nil || !made.HasSecret {
		t.Fatalf("it is made as %s", said)
	}
	changes := map[string]bool{`,"secret":"__remove-secret"`: false, `,"secret":"` + secret + `"`: true, ``: true}
	for _, change := range []string{``, `,"secret":"__remove-secret"`, `,"secret":"` + secret + `"`} {
		changed := b.want(http.StatusOK, http.MethodPatch, path+"/"+made.Name, "token deployer",
			`{"displayName":"x","payloadUrl":"https://example.com","active":true`+change+`}`)
		said += changed
		if has := strings.Contains(changed, `"hasSecret":true`); has != changes[change] {
			t.Errorf("after %q it is %s", change, changed)
		}
	}
	said += b.want(http.StatusOK, http.MethodGet, path, "token deployer", "")
	if strings.Contains(said, secret) {
		t.Errorf("the secret is in %s", said)
	}
	b.want(http.StatusForbidden, http.MethodGet, path, "token viewer", "")
	b.want(http.StatusBadRequest, http.MethodPost, path, "token deployer",
		`{"displayName":"x","payloadUrl":"https://example.com","format":"pulumi_deployments"}`)
}
