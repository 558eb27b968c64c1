package activities

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/bags"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/internal/stackconfig"
	"github.com/deployctl/deployctl/internal/token"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// settleKey is the configuration key of the stack's settle rules. {"TYPE": {"read": "property:NAME"}} means: the id of
// a resource of the type is its input NAME, so Read finds it. {"TYPE": {"list": "property:PATH"}} means: the resource
// is the one, of all that its provider lists, that has the same value as the input at PATH, such as tags.Name.
const settleKey = "deployctl:settle"

// settleRule is how to settle a create. Under the zero rule a lost create is undecidable.
type settleRule struct {
	reconcile bool                  // the provider is convergent: a repeated create finds the resource
	lookup    bool                  // the provider has a look-up by inputs
	path      resource.PropertyPath // the input that is the id or, with list, identifies the resource
	list      bool                  // find it in the provider's list; else read it by its id
}

// value returns the property that identifies the resource; "" if it has none.
func (r settleRule) value(inputs resource.PropertyMap) string {
	if v, ok := r.path.Get(bags.Bare(resource.NewProperty(inputs))); ok && len(r.path) > 0 && v.IsString() {
		return v.StringValue()
	}
	return ""
}

// suffix ends the names that providers generate: hexadecimal digits, 7 or 8 as they are asked.
var suffix = regexp.MustCompile(`^-?[0-9a-f]{7,8}$`)

// generated reports whether the property that identifies a resource was generated for a create that another engine
// began: the stock CLI stores its inputs as they were checked, and no seed. Providers that are bridged say which
// properties they have set; of others, the name itself tells.
func (at *attempt) generated(rule settleRule, inputs resource.PropertyMap) bool {
	value := rule.value(inputs)
	if len(at.step.Seed) > 0 || value == "" {
		return false
	}
	if set := inputs["__defaults"]; set.IsArray() && len(rule.path) == 1 {
		return slices.ContainsFunc(set.ArrayValue(), func(v resource.PropertyValue) bool {
			return v.IsString() && v.StringValue() == rule.path[0]
		})
	}
	rest, ok := strings.CutPrefix(value, at.step.URN.Name())
	return ok && suffix.MatchString(rest)
}

// readRules reads the stack's configuration of rules.
func readRules(config stackconfig.Config) (map[string]settleRule, error) {
	rules := map[string]settleRule{}
	text := config[settleKey].Value
	if text == "" {
		return rules, nil
	}
	var written map[string]struct {
		Read string `json:"read"`
		List string `json:"list"`
	}
	if err := json.Unmarshal([]byte(text), &written); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			`configuration %s must be JSON like {"TYPE": {"read": "property:NAME"}}: %w`, settleKey, err)
	}
	for t, rule := range written {
		text, ok := strings.CutPrefix(rule.Read+rule.List, "property:")
		path, err := resource.ParsePropertyPath(text)
		if !ok || err != nil || len(path) == 0 || (rule.Read == "") == (rule.List == "") {
			return nil, deployments.Errorf(deployments.CodeInvalid,
				`configuration %s: the rule of %s must be {"read": "property:NAME"} or {"list": "property:PATH"}`,
				settleKey, t)
		}
		rules[t] = settleRule{path: path, list: rule.List != ""}
	}
	return rules, nil
}

// settleRule returns the rule of a type: the one in the stack's configuration, or else the one that its provider
// declares.
func (s *session) settleRule(ctx context.Context, p *pluginhost.Provider, t tokens.Type) settleRule {
	if rule, ok := s.rules[string(t)]; ok {
		return rule
	}
	resp, err := p.GetMapping(ctx, plugin.GetMappingRequest{Key: provider.SettleMapping})
	if err != nil || len(resp.Data) == 0 || resp.Provider != string(token.Package(t)) {
		return settleRule{}
	}
	var told map[string]provider.Settle
	if json.Unmarshal(resp.Data, &told) != nil {
		return settleRule{}
	}
	by := told[string(t)]
	return settleRule{reconcile: by == provider.SettleByReconcile, lookup: by == provider.SettleByRead}
}
