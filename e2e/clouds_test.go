package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/cloudtest"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
)

// federated has the clouds' own libraries get credentials for the tokens of the update, and shows them.
const federated = `
name: PROJECT
runtime: yaml
resources:
  said:
    type: deployctl:command:Run
    properties:
      create: 'EXCHANGE && echo "role=$AWS_ROLE_ARN session=$AWS_ROLE_SESSION_NAME key=$AWS_ACCESS_KEY_ID"
        && cat "$AWS_WEB_IDENTITY_TOKEN_FILE"'
      delete: EXCHANGE
      triggers: [1]
outputs:
  said: ${said.stdout}
`

// TestAnUpdateGetsShortLivedCredentialsOfCloudsAndNobodyKeepsLongLivedOnes plays a stack with a role of AWS, a provider
// of Google and a client of Azure, on an issuer that the clouds reach through a proxy.
func TestAnUpdateGetsShortLivedCredentialsOfCloudsAndNobodyKeepsLongLivedOnes(t *testing.T) {
	t.Parallel()
	const issuer = "https://deploy.example.com/ci"
	h := newHome(t)
	listens := porttest.Address(t)
	h.env = append(h.env, "DEPLOYCTL_ISSUER="+issuer, "DEPLOYCTL_PULUMI_LISTEN="+listens)
	to, err := url.Parse("http://" + listens)
	must(t, err)
	proxy := httptest.NewServer(http.StripPrefix("/ci", httputil.NewSingleHostReverseProxy(to)))
	t.Cleanup(proxy.Close)
	name := projectName(t)
	subject := "stack:organization/" + name + "/dev:"
	clouds := cloudtest.New(t, issuer, proxy.URL, subject+"up")
	self, err := os.Executable()
	must(t, err)
	p := h.in(t.TempDir(), "AWS_ACCESS_KEY_ID=of-the-shell", "AWS_SECRET_ACCESS_KEY=of-the-shell",
		cloudtest.ExchangeVariable+"="+clouds.URL)
	p.write(t, "Pulumi.yaml", strings.NewReplacer("PROJECT", name, "EXCHANGE", self).Replace(federated))
	p.must(t, "stack", "init", "dev")
	p.must(t, "profile", "set", "clouds", "--aws-role", cloudtest.Role, "--google-provider", cloudtest.GoogleProvider,
		"--google-service-account", cloudtest.ServiceAccount, "--azure-tenant", cloudtest.Tenant, "--azure-client",
		cloudtest.Client, "--stacks", name+"/*")
	p.must(t, "config", "set", "deployctl:profile", "clouds")
	seen := p.must(t, "up", "--yes")
	state := p.must(t, "stack", "export", "--show-secrets")
	for _, text := range []string{"aws: ASIA " + subject + "up.", "google: account " + subject + "up.",
		"azure: azure " + subject + "up.", "role=" + cloudtest.Role + " session="} {
		if !strings.Contains(state, text) {
			t.Errorf("the state does not have %q:\n%s\n%s", text, state, clouds.Refused())
		}
	}
	token := tokenIn(t, state)
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
	_, claims, err := clouds.Verify(r, token, "sts.amazonaws.com")
	if want := (cloudtest.Claims{Organization: "organization", Project: name, Stack: "dev", Kind: "up", Profile: "clouds",
		Update: "1"}); err != nil || claims != want {
		t.Errorf("the token says %+v, %v", claims, err)
	}
	if _, _, err := clouds.Verify(r, token, "api://AzureADTokenExchange"); err == nil {
		t.Error("a token for AWS is one for Azure")
	}
	seen += p.must(t, "logs") + p.must(t, "stack", "export") + p.must(t, "stack", "output") + p.must(t, "attach") +
		p.must(t, "profile", "show", "clouds")
	if strings.Contains(seen, token) || !strings.Contains(seen, cloudtest.Role) {
		t.Errorf("the token is seen, or the role is not:\n%s", seen)
	}
	if strings.Contains(state, "of-the-shell") {
		t.Errorf("a key of the shell goes before the role:\n%s", state)
	}
	clouds.Trust(subject + "preview")
	p.replaceIn(t, "Pulumi.yaml", "triggers: [1]", "triggers: [2]")
	p.must(t, "up", "--yes")
	if why := clouds.Refused(); strings.Count(why, "the subject \""+subject+"up\" is not trusted") < 3 {
		t.Errorf("an update has the rights of a preview: %s", why)
	}
	clouds.Trust(subject + "destroy")
	p.must(t, "destroy", "--yes")
	if why := clouds.Refused(); strings.Contains(why, "but \""+subject+"destroy") {
		t.Errorf("a destroy is not known as one: %s", why)
	}
}

var writtenToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)

// tokenIn finds a token in a text.
func tokenIn(t *testing.T, text string) string {
	t.Helper()
	found := writtenToken.FindString(text)
	if found == "" {
		t.Fatalf("there is no token in\n%s", text)
	}
	return found
}
