package scenario

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"gopkg.in/yaml.v3"
)

// Rules are the policies of a pack, in rules.yaml of its directory.
type Rules struct {
	Name     string
	Version  string
	Policies []*Rule
	// DieOnce names a file: the pack ends its process when it analyses a resource of the name Dies, unless the file
	// exists, which it then does.
	DieOnce, Dies string
	// Gates is a directory: before the pack analyses a resource of a name in Holds, or with the name "stack" the stack, it
	// makes the file NAME.reached there, and waits for NAME.open.
	Gates string
	Holds []string
}

// hold waits at a gate.
func (r Rules) hold(ctx context.Context, name string) {
	if !slices.Contains(r.Holds, name) {
		return
	}
	_ = os.WriteFile(filepath.Join(r.Gates, name+".reached"), nil, 0o600)
	for ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(r.Gates, name+".open")); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Rule is a policy: no resource has Value in Property; with Set, it makes the property have that value. A rule of the
// Stack allows at most Most resources of the type.
type Rule struct {
	Name, Type, Property, Value, Set, Severity, Message string
	Level                                               string
	Stack                                               bool
	Most                                                int
}

// Analyzer is a policy pack that follows rules.
type Analyzer struct {
	rpc.UnimplementedAnalyzerServer
	mu    sync.Mutex
	rules Rules
	stack *rpc.AnalyzerStackConfigureRequest
}

// NewAnalyzer reads the rules of the pack in a directory.
func NewAnalyzer(dir string) (*Analyzer, error) {
	text, err := os.ReadFile(filepath.Join(dir, "rules.yaml"))
	if err != nil {
		return nil, err
	}
	a := &Analyzer{}
	return a, yaml.Unmarshal(text, &a.rules)
}

// Handshake has nothing to say.
func (a *Analyzer) Handshake(context.Context, *rpc.AnalyzerHandshakeRequest) (*rpc.AnalyzerHandshakeResponse, error) {
	return &rpc.AnalyzerHandshakeResponse{}, nil
}

// ConfigureStack keeps the name of the stack for messages.
func (a *Analyzer) ConfigureStack(
	_ context.Context, req *rpc.AnalyzerStackConfigureRequest,
) (*rpc.AnalyzerStackConfigureResponse, error) {
	a.stack = req
	return &rpc.AnalyzerStackConfigureResponse{}, nil
}

func level(name string) rpc.EnforcementLevel {
	return map[string]rpc.EnforcementLevel{
		"": rpc.EnforcementLevel_ADVISORY, "advisory": rpc.EnforcementLevel_ADVISORY,
		"mandatory": rpc.EnforcementLevel_MANDATORY, "remediate": rpc.EnforcementLevel_REMEDIATE,
		"disabled": rpc.EnforcementLevel_DISABLED,
	}[name]
}

var severities = map[string]rpc.PolicySeverity{
	"low": rpc.PolicySeverity_POLICY_SEVERITY_LOW, "high": rpc.PolicySeverity_POLICY_SEVERITY_HIGH,
}

// GetAnalyzerInfo describes the rules. The value of each can be configured.
func (a *Analyzer) GetAnalyzerInfo(context.Context, *emptypb.Empty) (*rpc.AnalyzerInfo, error) {
	info := &rpc.AnalyzerInfo{Name: a.rules.Name, Version: a.rules.Version, SupportsConfig: true}
	text, err := structpb.NewStruct(map[string]any{"value": map[string]any{"type": "string"}})
	if err != nil {
		return nil, err
	}
	for _, r := range a.rules.Policies {
		kind := rpc.PolicyType_POLICY_TYPE_RESOURCE
		if r.Stack {
			kind = rpc.PolicyType_POLICY_TYPE_STACK
		}
		info.Policies = append(info.Policies, &rpc.PolicyInfo{
			Name: r.Name, EnforcementLevel: level(r.Level), PolicyType: kind, Severity: severities[r.Severity],
			ConfigSchema: &rpc.PolicyConfigSchema{Properties: text},
		})
	}
	return info, nil
}

// Configure sets levels and values.
func (a *Analyzer) Configure(_ context.Context, req *rpc.ConfigureAnalyzerRequest) (*emptypb.Empty, error) {
	for _, r := range a.rules.Policies {
		c := req.GetPolicyConfig()[r.Name]
		if c == nil {
			continue
		}
		for _, name := range []string{"advisory", "mandatory", "remediate", "disabled"} {
			if level(name) == c.GetEnforcementLevel() {
				r.Level = name
			}
		}
		if v := c.GetProperties().GetFields()["value"].GetStringValue(); v != "" {
			r.Value = v
		}
	}
	return &emptypb.Empty{}, nil
}

// applies reports that a rule is about a resource.
func (r *Rule) applies(typ string) bool {
	return r.Level != "disabled" && (r.Type == "" || r.Type == typ)
}

// Remediate sets the properties of rules that remediate.
func (a *Analyzer) Remediate(_ context.Context, req *rpc.AnalyzeRequest) (*rpc.RemediateResponse, error) {
	res := &rpc.RemediateResponse{}
	fields := maps.Clone(req.GetProperties().GetFields())
	if fields == nil {
		fields = map[string]*structpb.Value{}
	}
	for _, r := range a.rules.Policies {
		if r.Level != "remediate" || r.Stack || !r.applies(req.GetType()) ||
			fields[r.Property].GetStringValue() != r.Value {
			continue
		}
		fields[r.Property] = structpb.NewStringValue(r.Set)
		res.Remediations = append(res.Remediations, &rpc.Remediation{
			PolicyName: r.Name, PolicyPackName: a.rules.Name, PolicyPackVersion: a.rules.Version,
			Properties: &structpb.Struct{Fields: maps.Clone(fields)},
		})
	}
	return res, nil
}

// Analyze finds what the rules forbid.
func (a *Analyzer) Analyze(ctx context.Context, req *rpc.AnalyzeRequest) (*rpc.AnalyzeResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rules.hold(ctx, req.GetName())
	if a.rules.DieOnce != "" && req.GetName() == a.rules.Dies {
		if file, err := os.OpenFile(a.rules.DieOnce, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = file.Close()
			os.Exit(3)
		}
	}
	res := &rpc.AnalyzeResponse{}
	for _, r := range a.rules.Policies {
		switch {
		case r.Stack:
		case !r.applies(req.GetType()):
			res.NotApplicable = append(res.NotApplicable, &rpc.PolicyNotApplicable{PolicyName: r.Name})
		case req.GetProperties().GetFields()[r.Property].GetStringValue() == r.Value:
			res.Diagnostics = append(res.Diagnostics, a.diagnostic(r, r.Message))
		}
	}
	return res, nil
}

func (a *Analyzer) diagnostic(r *Rule, message string) *rpc.AnalyzeDiagnostic {
	return &rpc.AnalyzeDiagnostic{
		PolicyName: r.Name, PolicyPackName: a.rules.Name, PolicyPackVersion: a.rules.Version, Message: message,
		EnforcementLevel: level(r.Level),
	}
}

// AnalyzeStack counts resources.
func (a *Analyzer) AnalyzeStack(ctx context.Context, req *rpc.AnalyzeStackRequest) (*rpc.AnalyzeResponse, error) {
	a.rules.hold(ctx, "stack")
	res := &rpc.AnalyzeResponse{}
	for _, r := range a.rules.Policies {
		n := 0
		for _, resource := range req.GetResources() {
			if r.Stack && r.applies(resource.GetType()) {
				n++
			}
		}
		if r.Stack && n > r.Most {
			res.Diagnostics = append(res.Diagnostics, a.diagnostic(r,
				fmt.Sprintf("%s has %d, and at most %d are allowed", a.stack.GetStack(), n, r.Most)))
		}
	}
	return res, nil
}

// GetPluginInfo gives the version.
func (a *Analyzer) GetPluginInfo(context.Context, *emptypb.Empty) (*rpc.PluginInfo, error) {
	return &rpc.PluginInfo{Version: Version}, nil
}

// Cancel is nothing.
func (a *Analyzer) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}
