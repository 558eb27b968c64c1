package deployments_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/deployments"
)

// TestALimitOfWhatIsKeptIsWhereItIsSaidToBe is TestALimitIsWhereItIsSaidToBe for what outlasts an update.
func TestALimitOfWhatIsKeptIsWhereItIsSaidToBe(t *testing.T) {
	if got, want := []int{deployments.MaxTokens, deployments.MaxMembers, deployments.MaxOwned, deployments.MaxProfiles},
		[]int{20_000, 10_000, 1_000, 100}; !slices.Equal(got, want) { // the store checks them, and its test where
		t.Errorf("an organization has at most %d tokens, members, teams or trusts, and profiles", got)
	}
	text := func(n int) string { return strings.Repeat("a", n) }
	trust := func(change func(*deployments.Trust)) error {
		made := deployments.Trust{Organization: "acme", Name: "ci", Issuer: "https://example.com", Grant: deployments.Grant{
			Role: deployments.RoleDeployer, Organization: "acme"}, Conditions: []deployments.Condition{
			{Claim: "sub", Pattern: "a"}}}
		change(&made)
		return made.Validate()
	}
	hook := func(change func(*deployments.Webhook)) error {
		made := deployments.Webhook{Name: deployments.WebhookName{Scope: deployments.WebhookScope{Organization: "acme"}},
			Title: "all", URL: "https://example.com", Format: deployments.WebhookRaw}
		change(&made)
		return made.Validate()
	}
	settings := func(run apitype.OperationContext) error {
		return deployments.DeploymentSettings{DeploymentSettings: apitype.DeploymentSettings{Operation: &run}}.Validate()
	}
	filtered := func(paths ...string) error {
		return deployments.DeploymentSettings{DeploymentSettings: apitype.DeploymentSettings{
			GitHub: &apitype.DeploymentSettingsGitHub{Paths: paths}}}.Validate()
	}
	empty, err := json.Marshal(deployments.DeploymentSettings{DeploymentSettings: apitype.DeploymentSettings{
		Operation: &apitype.OperationContext{EnvironmentVariables: map[string]apitype.SecretValue{"A": {}}}}})
	if err != nil {
		t.Fatal(err)
	}
	others := len(empty) // besides the value
	for name, c := range map[string]struct {
		limit int
		check func(n int) error
	}{
		"conditions of a trust": {20, func(n int) error {
			return trust(func(made *deployments.Trust) { made.Conditions = slices.Repeat(made.Conditions, n) })
		}},
		"audiences of a trust": {20, func(n int) error {
			return trust(func(made *deployments.Trust) { made.Audiences = slices.Repeat([]string{"a"}, n) })
		}},
		"an audience": {1000, func(n int) error {
			return trust(func(made *deployments.Trust) { made.Audiences = []string{text(n)} })
		}},
		"a claim": {1000, func(n int) error {
			return trust(func(made *deployments.Trust) { made.Conditions[0].Claim = text(n) })
		}},
		"a pattern": {1000, func(n int) error {
			return trust(func(made *deployments.Trust) { made.Conditions[0].Pattern = text(n) })
		}},
		"an issuer": {1000, func(n int) error {
			return trust(func(made *deployments.Trust) { made.Issuer += "/" + text(n-len(made.Issuer)-1) })
		}},
		"names of a trust and its organization": {70, func(n int) error {
			return trust(func(made *deployments.Trust) { made.Name = text(n - len(made.Organization)) })
		}},
		"hours of an exchanged token": {24, func(n int) error {
			return trust(func(made *deployments.Trust) { made.Lifetime = time.Duration(n) * time.Hour })
		}},
		"stack globs": {50, func(n int) error {
			return trust(func(made *deployments.Trust) { made.Grant.Stacks = slices.Repeat([]string{"a/*"}, n) })
		}},
		"a webhook's name": {200, func(n int) error {
			return hook(func(made *deployments.Webhook) { made.Title = text(n) })
		}},
		"a webhook's URL": {2048, func(n int) error {
			return hook(func(made *deployments.Webhook) { made.URL += "/" + text(n-len(made.URL)-1) })
		}},
		"a webhook's secret": {1024, func(n int) error {
			return hook(func(made *deployments.Webhook) { made.Secret = text(n) })
		}},
		"a cron expression": {1 << 10, func(n int) error {
			return deployments.Schedule{Name: deployments.ScheduleName{StackName: dev, Name: "s"},
				Kind: deployments.ScheduleDrift, Cron: text(n)}.Validate()
		}},
		"commands before a deployment": {50, func(n int) error {
			return settings(apitype.OperationContext{PreRunCommands: slices.Repeat([]string{"a"}, n)})
		}},
		"path filters":  {50, func(n int) error { return filtered(slices.Repeat([]string{"a"}, n)...) }},
		"a path filter": {200, func(n int) error { return filtered(text(n)) }},
		"segments of a path filter": {20, func(n int) error {
			return filtered(strings.Join(slices.Repeat([]string{"**"}, n), "/"))
		}},
		"settings of deployments": {256 << 10, func(n int) error {
			return settings(apitype.OperationContext{EnvironmentVariables: map[string]apitype.SecretValue{
				"A": {Value: text(n - others)}}})
		}},
	} {
		if err := c.check(c.limit); err != nil {
			t.Errorf("%s of %d: %.300v", name, c.limit, err)
		}
		if err := c.check(c.limit + 1); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s of %d: %.300v", name, c.limit+1, err)
		}
	}
}
