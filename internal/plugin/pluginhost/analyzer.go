package pluginhost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/encoding"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// PolicyPack names a policy pack to start, and the stack whose update it checks.
type PolicyPack struct {
	Dir                          string // of PulumiPolicy.yaml
	Organization, Project, Stack string
	Tags                         map[string]string
	SecretKeys                   []string // keys of Options.Config whose values are secret
	DryRun                       bool
}

// Analyzer is a running policy pack. Its calls must not overlap.
type Analyzer struct {
	plugin.Analyzer
	// Version is the version that PulumiPolicy.yaml names; it goes before the one that the pack names. May be empty.
	Version string
	end     *endpoint
}

// Alive reports whether the policy pack can still answer.
func (a *Analyzer) Alive() bool { return a.end.alive() }

// Close ends the policy pack.
func (a *Analyzer) Close() error {
	a.end.stop(stopGrace)
	return nil
}

// Explain returns the error of a call to the policy pack, or a *LostError if its process has ended. A call whose
// context has ended fails with that.
func (a *Analyzer) Explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if failure, ok := rpcerror.FromError(err); ok &&
		(failure.Code() == codes.Unavailable || failure.Code() == codes.Canceled) {
		a.end.awaitDeath()
	}
	if a.end.alive() {
		return err
	}
	return &LostError{a.end.name + " ended" + a.end.exit() + a.end.tail.text()}
}

// PolicyPackRuntime returns the runtime of the policy pack in a directory.
func (h *Host) PolicyPackRuntime(dir string) (workspace.ProjectRuntimeInfo, error) {
	project, err := h.policyPack(dir)
	if err != nil {
		return workspace.ProjectRuntimeInfo{}, err
	}
	return project.Runtime, nil
}

// policyPack reads PulumiPolicy.yaml through the sandbox, because programs may change it.
func (h *Host) policyPack(dir string) (*workspace.PolicyPackProject, error) {
	text, err := h.opts.Box.ReadFile(filepath.Join(dir, "PulumiPolicy.yaml"))
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("PulumiPolicy.yaml cannot be read: %w", err)
	}
	project := &workspace.PolicyPackProject{}
	err = encoding.YAML.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), project)
	if err == nil {
		err = project.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("PulumiPolicy.yaml cannot be read: %w", err)
	}
	h.addVirtualEnvironment(dir, &project.Runtime)
	return project, nil
}

// InstallPolicyPack installs the packages that a policy pack imports, if its runtime has a language host.
func (h *Host) InstallPolicyPack(ctx context.Context, dir string) error {
	project, err := h.policyPack(dir)
	if err != nil {
		return err
	}
	info, err := policyPackInfo(dir, project)
	if err != nil {
		return err
	}
	end, err := h.languageEndpoint(ctx, project.Runtime.Name())
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer end.stop(stopGrace)
	l := &Language{
		host: h, runtime: project.Runtime.Name(), end: end, client: pulumirpc.NewLanguageRuntimeClient(end.conn), info: info,
	}
	if err := l.handshake(ctx); err != nil {
		return err
	}
	return l.InstallDependencies(ctx, dir)
}

// policyPackInfo describes a policy pack to its language host.
func policyPackInfo(dir string, project *workspace.PolicyPackProject) (*pulumirpc.ProgramInfo, error) {
	options, err := structpb.NewStruct(project.Runtime.Options())
	if err != nil {
		return nil, fmt.Errorf("options of runtime %s in PulumiPolicy.yaml: %w", project.Runtime.Name(), err)
	}
	entry := project.Main
	if entry == "" {
		entry = "."
	}
	return &pulumirpc.ProgramInfo{
		RootDirectory: dir, ProgramDirectory: dir, EntryPoint: entry, Options: options,
	}, nil
}

// Analyzer starts a policy pack: with the language host of its runtime or, if there is none, with the plugin
// pulumi-analyzer-policy-RUNTIME. It ends with the Host.
func (h *Host) Analyzer(ctx context.Context, pack PolicyPack) (*Analyzer, error) {
	project, err := h.policyPack(pack.Dir)
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	end, err := h.analyzerEndpoint(starting, pack, project)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	closed := h.closed
	h.analyzers = append(h.analyzers, end)
	h.mu.Unlock()
	if closed {
		end.stop(0)
		return nil, errClosed
	}
	client := pulumirpc.NewAnalyzerClient(end.conn)
	a := &Analyzer{
		Analyzer: plugin.NewAnalyzerWithClient(tokens.QName(end.name), client), Version: project.Version, end: end,
	}
	if err := h.introduce(starting, client, pack); err != nil {
		end.stop(0)
		return nil, a.Explain(ctx, err)
	}
	return a, nil
}

// introduce makes the handshake and names the stack. Older policy packs implement neither call.
func (h *Host) introduce(ctx context.Context, client pulumirpc.AnalyzerClient, pack PolicyPack) error {
	_, err := client.Handshake(ctx, &pulumirpc.AnalyzerHandshakeRequest{
		EngineAddress: h.address, RootDirectory: &pack.Dir, ProgramDirectory: &pack.Dir,
	})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return fmt.Errorf("handshake: %w", err)
	}
	_, err = client.ConfigureStack(ctx, &pulumirpc.AnalyzerStackConfigureRequest{
		Stack: pack.Stack, Project: pack.Project, Organization: pack.Organization, Tags: pack.Tags,
		DryRun: pack.DryRun, Config: h.opts.Config, ConfigSecretKeys: pack.SecretKeys,
	})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return err
	}
	return nil
}

func (h *Host) analyzerEndpoint(
	ctx context.Context, pack PolicyPack, project *workspace.PolicyPackProject,
) (*endpoint, error) {
	runtime := project.Runtime.Name()
	language, err := h.languageEndpoint(ctx, runtime)
	if err == nil {
		return h.runAnalyzer(ctx, language, pack, project)
	}
	if !isMissing(err) {
		return nil, err
	}
	path, missing := h.locate(ctx, plugins.Request{
		Plugin: plugins.Plugin{Kind: apitype.AnalyzerPlugin, Name: "policy-" + runtime},
	})
	if isMissing(missing) {
		return nil, fmt.Errorf("nothing can run a policy pack of the runtime %s: %w", runtime, err)
	}
	if missing != nil {
		return nil, missing
	}
	args := []string{h.address, "."}
	for k, v := range project.Runtime.Options() {
		args = append(args, fmt.Sprintf("-%s=%v", k, v))
	}
	return launch(ctx, launchSpec{
		name: "policy pack", path: path, args: args, dir: pack.Dir, env: h.analyzerEnv(pack, runtime), box: h.opts.Box,
		intake: h.opts.Intake, spares: h.spares, output: h.analyzerOutput, shown: true,
	})
}

// analyzerOutput logs a line that a policy pack has written.
func (h *Host) analyzerOutput(severity diag.Severity, line string) {
	h.opts.Log(Message{Severity: severity, Text: line, Source: "policy pack"})
}

// runAnalyzer has a language host run a policy pack.
func (h *Host) runAnalyzer(
	ctx context.Context, language *endpoint, pack PolicyPack, project *workspace.PolicyPackProject,
) (*endpoint, error) {
	info, err := policyPackInfo(pack.Dir, project)
	if err != nil {
		language.stop(0)
		return nil, err
	}
	return runPlugin(ctx, pluginRun{
		name: "policy pack", language: language, box: h.opts.Box, intake: h.opts.Intake,
		request: &pulumirpc.RunPluginRequest{
			Pwd: pack.Dir, Args: []string{h.address}, Env: h.analyzerEnv(pack, project.Runtime.Name()),
			Program: pack.Dir, //nolint:staticcheck // older hosts
			Info:    info, Kind: string(apitype.AnalyzerPlugin), Name: filepath.Base(pack.Dir), LoaderTarget: h.address,
		},
		output: h.analyzerOutput, shown: true,
	})
}

// analyzerEnv returns the environment of a policy pack. Packs without ConfigureStack read the stack from it.
func (h *Host) analyzerEnv(pack PolicyPack, runtime string) []string {
	var own []string
	if config, err := json.Marshal(h.opts.Config); err == nil && len(h.opts.Config) > 0 {
		own = append(own, "PULUMI_CONFIG="+string(config))
	}
	prefixes := []string{"PULUMI_"}
	if runtime == "nodejs" {
		prefixes = append(prefixes, "PULUMI_NODEJS_")
	}
	for _, prefix := range prefixes {
		own = append(own, prefix+"ORGANIZATION="+pack.Organization, prefix+"PROJECT="+pack.Project,
			prefix+"STACK="+pack.Stack, prefix+"DRY_RUN="+strconv.FormatBool(pack.DryRun))
	}
	return h.env.with(own...)
}
