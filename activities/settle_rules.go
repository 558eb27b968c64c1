package activities

import (
	"context"
	"encoding/json"
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

// settleKey is the stack's configuration of rules: {"TYPE": {"read": "property:NAME"}} says that the id of a resource
// of the type is its input NAME, so that Read finds it; {"TYPE": {"list": "property:PATH"}} that it is the one, of all
// that its provider lists, which has what its input has at PATH, such as tags.Name.
const settleKey = "deployctl:settle"

// settleRule says how to find out whether a lost create happened. The zero rule: nobody can tell.
type settleRule struct {
	reconcile bool                  // creating it again is safe and finds it
	lookup    bool                  // its provider finds it by its inputs
	path      resource.PropertyPath // of the input that is the id, or that tells it from all others
	list      bool                  // which of the two
}

// value is what tells the resource; empty when nothing does.
func (r settleRule) value(inputs resource.PropertyMap) string {
	if v, ok := r.path.Get(bags.Bare(resource.NewProperty(inputs))); ok && len(r.path) > 0 && v.IsString() {
		return v.StringValue()
	}
	return ""
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

// settleRule gives the rule of a type: the stack's own, or else what its provider says of itself.
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
