package autonaming

import (
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/host/stackconfig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

func read(text string) (*Rules, error) {
	return Read(stackconfig.Config{
		Key: {Value: text}, "shop:team": {Value: "blue"}, "shop:password": {Value: "hush", Secret: true},
	}, Stack{"acme", "shop", "dev"})
}

func TestTheMostExactRuleProposesAName(t *testing.T) {
	rules, err := read(`{"pattern": "${organization}-${project}-${stack}-${config.team}-${name}-${hex(4)}", "providers": {
		"aws": {"mode": "verbatim", "resources": {
			"aws:s3:Bucket": {"pattern": "${name}-${alphanum(3)}${string(3)}${num(3)}-${uuid}", "enforce": true},
			"aws:s3:Object": {"mode": "default"}}},
		"gcp": {"mode": "disabled"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typ          tokens.Type
		name         string
		mode         plugin.AutonamingMode
		deletesFirst bool
	}{
		{"azure:web:Site", "^acme-shop-dev-blue-web-[0-9a-f]{4}$", plugin.AutonamingModePropose, false},
		{"aws:ec2:Vpc", "^web$", plugin.AutonamingModeEnforce, true},
		{"aws:s3:Bucket", "^web-[a-z0-9]{3}[a-z]{3}[0-9]{3}-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-" +
			"[0-9a-f]{12}$", plugin.AutonamingModeEnforce, false},
		{"gcp:storage:Bucket", "^$", plugin.AutonamingModeDisabled, true},
	} {
		u := urn.New("dev", "shop", "", c.typ, "web")
		got, again := rules.Propose(u, []byte("seed")), rules.Propose(u, []byte("seed"))
		if !regexp.MustCompile(c.name).MatchString(got.ProposedName) || got.Mode != c.mode || *again != *got ||
			rules.DeletesFirst(c.typ) != c.deletesFirst {
			t.Errorf("%s: %+v, again %+v, deletes first %v", c.typ, got, again, rules.DeletesFirst(c.typ))
		}
	}
	for _, left := range []tokens.Type{"aws:s3:Object", "pulumi:providers:aws"} {
		if got := rules.Propose(urn.New("dev", "shop", "", left, "web"), nil); got != nil || rules.DeletesFirst(left) {
			t.Errorf("%s: %+v", left, got)
		}
	}
	u := urn.New("dev", "shop", "", "azure:web:Site", "web")
	if one, other := rules.Propose(u, []byte("a")), rules.Propose(u, []byte("b")); *one == *other {
		t.Errorf("two seeds make the name %s", one.ProposedName)
	}
}

func TestWithoutRulesNamesAreTheProviders(t *testing.T) {
	none, err := Read(stackconfig.Config{}, Stack{})
	if err != nil || none.Propose("urn:pulumi:dev::shop::a:b:C::web", nil) != nil || none.DeletesFirst("a:b:C") {
		t.Errorf("%+v, %v", none, err)
	}
}

func TestARuleThatCannotBeMeantIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                   "cannot unmarshal",
		`{"patern": "x"}`:                      "unknown field",
		`{"mode": "loud"}`:                     `the mode is "loud"`,
		`{"mode": "verbatim", "pattern": "x"}`: "a mode excludes a pattern",
		`{"enforce": true}`:                    "enforce needs a pattern",
		`{"pattern": "${hex(999999999999)}"}`:  "at most 256 characters",
		`{"pattern": "${hex(257)}"}`:           "at most 256 characters",
		`{"pattern": "${nothing}"}`:            "${nothing}: it must be",
		`{"pattern": "${config.none}"}`:        "no configuration value none",
		`{"pattern": "${config.password}"}`:    "password is secret",
		`{"providers": {"aws": {"resources": {"aws:s3:Bucket": {}}}}}`: "a mode or a pattern is missing",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
}
