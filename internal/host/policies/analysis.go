package policies

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// analysis asks the policy packs of an update about one resource.
type analysis struct {
	packs    *Packs
	resource plugin.AnalyzerResource
	result   engine.Analysis
}

// Analyze asks the policy packs about the checked inputs of a plan. It returns the inputs as the remediations have
// changed them. First every pack remediates, in order; then every pack analyses what came out of that.
func (a *Packs) Analyze(
	ctx context.Context, p engine.Plan, checked resource.PropertyMap,
) (resource.PropertyMap, *engine.Analysis, error) {
	of := analysis{packs: a}
	var err error
	if of.resource, err = a.analyzerResource(ctx, p); err != nil {
		return nil, nil, err
	}
	of.resource.Properties = checked
	for _, pack := range a.packs {
		if err := of.remediate(ctx, pack); err != nil {
			return nil, nil, err
		}
	}
	for _, pack := range a.packs {
		if err := of.check(ctx, pack); err != nil {
			return nil, nil, err
		}
	}
	return of.resource.Properties, &of.result, nil
}

// analyzerResource returns what policy packs get of a plan, but for the properties.
func (a *Packs) analyzerResource(ctx context.Context, p engine.Plan) (plugin.AnalyzerResource, error) {
	g := p.Goal
	r := plugin.AnalyzerResource{
		URN: p.URN, Type: g.Type, Name: p.URN.Name(),
		Options: plugin.AnalyzerResourceOptions{
			Protect: g.Protect != nil && *g.Protect, IgnoreChanges: g.IgnoreChanges,
			DeleteBeforeReplace: g.DeleteBeforeReplace, AdditionalSecretOutputs: keysOf(g.AdditionalSecretOutputs),
			AliasURNs: p.Aliases, CustomTimeouts: customTimeouts(g.Timeouts), Parent: g.Parent,
		},
	}
	if p.Provider == nil {
		return r, nil
	}
	ref, err := token.ParseReference(p.Provider.Ref)
	if err != nil {
		return r, failure.Internal(err)
	}
	inputs, err := a.options.Values.Decode(ctx, p.Provider.Inputs)
	r.Provider = providerResource(ref.URN(), inputs)
	return r, failure.Internal(err)
}

func providerResource(u urn.URN, inputs resource.PropertyMap) *plugin.AnalyzerProviderResource {
	return &plugin.AnalyzerProviderResource{URN: u, Type: u.Type(), Name: u.Name(), Properties: inputs}
}

func keysOf(names []string) []resource.PropertyKey {
	keys := make([]resource.PropertyKey, len(names))
	for i, name := range names {
		keys[i] = resource.PropertyKey(name)
	}
	return keys
}

func customTimeouts(t *engine.Timeouts) resource.CustomTimeouts {
	if t == nil {
		return resource.CustomTimeouts{}
	}
	return resource.CustomTimeouts{Create: t.Create, Update: t.Update, Delete: t.Delete, Read: t.Read}
}

// remediate lets one pack change the properties. A remediation that only has something to say is an advisory violation.
func (a *analysis) remediate(ctx context.Context, pack *pack) error {
	return pack.use(ctx, func(analyzer *pluginhost.Analyzer) error {
		response, err := analyzer.Remediate(ctx, a.resource)
		if err != nil {
			return err
		}
		var found []string
		for _, r := range response.Remediations {
			found = append(found, r.PolicyName)
			of := pack.named(r.PolicyPackName, r.PolicyPackVersion)
			switch {
			case r.Diagnostic != "":
				a.result.Violations = append(a.result.Violations, engine.Violation{
					Pack: of, Policy: r.PolicyName, Level: engine.PolicyAdvisory, Message: r.Diagnostic,
				})
			case r.Properties != nil:
				done := engine.Remediation{Pack: of, Policy: r.PolicyName}
				if done.Before, err = a.packs.options.Values.Encode(ctx, a.resource.Properties); err != nil {
					return failure.Internal(err)
				}
				if done.After, err = a.packs.options.Values.Encode(ctx, r.Properties); err != nil {
					return failure.Internal(err)
				}
				a.result.Remediations = append(a.result.Remediations, done)
				a.resource.Properties = r.Properties
			}
		}
		summary := pack.summarize(plugin.AnalyzerPolicyTypeResource, found, response.NotApplicable)
		a.packs.put(apitype.EngineEvent{PolicyRemediateSummaryEvent: &apitype.PolicyRemediateSummaryEvent{
			ResourceURN: string(a.resource.URN), PolicyPackName: pack.info.Name, PolicyPackVersion: pack.info.Version,
			Passed: summary.passed, Failed: summary.failed,
		}})
		return nil
	})
}

// check lets one pack analyse the properties.
func (a *analysis) check(ctx context.Context, pack *pack) error {
	return pack.use(ctx, func(analyzer *pluginhost.Analyzer) error {
		response, err := analyzer.Analyze(ctx, a.resource)
		if err != nil {
			return err
		}
		a.result.Packs = append(a.result.Packs, pack.named("", ""))
		violations, found := pack.violations(response)
		for i := range violations {
			violations[i].URN = "" // it is the resource's, whatever the policy says
		}
		a.result.Violations = append(a.result.Violations, violations...)
		summary := pack.summarize(plugin.AnalyzerPolicyTypeResource, found, response.NotApplicable)
		a.packs.put(apitype.EngineEvent{PolicyAnalyzeSummaryEvent: &apitype.PolicyAnalyzeSummaryEvent{
			ResourceURN: string(a.resource.URN), PolicyPackName: pack.info.Name, PolicyPackVersion: pack.info.Version,
			Passed: summary.passed, Failed: summary.failed,
		}})
		return nil
	})
}

// violations returns what a pack has found, and the names of the policies that found it. What a remediation has left is
// mandatory.
func (p *pack) violations(response plugin.AnalyzeResponse) (list []engine.Violation, names []string) {
	for _, d := range response.Diagnostics {
		level := engine.PolicyMandatory
		switch d.EnforcementLevel {
		case apitype.Advisory:
			level = engine.PolicyAdvisory
		case apitype.Disabled:
			continue
		default:
		}
		list = append(list, engine.Violation{
			Pack: p.named(d.PolicyPackName, d.PolicyPackVersion), Policy: d.PolicyName, Level: level,
			Severity: string(d.Severity), Message: d.Message, URN: d.URN,
		})
		names = append(names, d.PolicyName)
	}
	return list, names
}

// named returns the name and the version of the pack: those of an answer, or else of the pack itself. The version of
// PulumiPolicy.yaml goes before both.
func (p *pack) named(name, version string) engine.PolicyPack {
	if name == "" {
		name = p.info.Name
	}
	if version == "" || p.analyzer != nil && p.analyzer.Version != "" {
		version = p.info.Version
	}
	return engine.PolicyPack{Name: name, Version: version}
}

// summary has the names of the policies that passed and that failed.
type summary struct{ passed, failed []string }

func (p *pack) summarize(
	kind plugin.AnalyzerPolicyType, found []string, notApplicable []plugin.PolicyNotApplicable,
) (s summary) {
	s.passed, s.failed = Summarize(p.info, kind, found, notApplicable)
	return s
}

// put records an event that nothing depends on.
func (a *Packs) put(event apitype.EngineEvent) {
	event.Timestamp = int(time.Now().Unix())
	a.options.Put(event)
}
