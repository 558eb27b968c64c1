package command

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/google/uuid"
)

// request returns the request that the flags describe, without the fields that differ between a preview and its update.
// bundle is what the update takes along; nil: what the project's files are now.
func (s *session) request(
	ctx context.Context, kind engine.Kind, info deployments.StackInfo, bundle *project.Bundle,
) (deployments.UpdateRequest, error) {
	stack := info.Stack
	r := deployments.UpdateRequest{
		Stack: stack, Kind: kind, Initiator: initiator(), Message: s.flags.String("message"),
		Refresh: s.refreshes(kind), TargetDependents: s.flags.Bool("target-dependents"),
		ExcludeDependents: s.flags.Bool("exclude-dependents"),
		ExcludeProtected:  s.flags.Bool("exclude-protected"), IgnoreProtect: s.flags.Bool("ignore-protect"),
		RunProgram: s.flags.Bool("run-program"), ClearPendingCreates: s.flags.Bool("clear-pending-creates"),
		Force: s.flags.Bool("force"), ContinueOnError: s.flags.Bool("continue-on-error"), Parallel: s.flags.Int("parallel"),
	}
	named, err := s.namedResources(ctx, info)
	if err != nil {
		return r, err
	}
	if s.flags.Bool("adopt") {
		r.Adopt = []string{"**"}
	}
	r.Targets, r.Excludes, r.Replace = named["target"], named["exclude"], named["replace"]
	if r.Parallel < 1 || r.Parallel > deployments.MaxParallel {
		return r, deployments.Errorf(deployments.CodeInvalid, "--parallel must be from 1 to %d, not %d",
			deployments.MaxParallel, r.Parallel)
	}
	if err := s.sameBackend(info); err != nil {
		return r, err
	}
	if err := s.modes(&r); err != nil {
		return r, err
	}
	if s.project == nil {
		return r, s.elsewhere(stack)
	}
	if err := s.configure(ctx, &r); err != nil {
		return r, err
	}
	if s.service.Embedded {
		r.Environment = programEnvironment(s.Environ)
	}
	if r.PolicyPacks, err = s.policyPacks(kind); err != nil {
		return r, err
	}
	if bundle == nil {
		if bundle, err = s.project.Gather(s.paths("policy-pack")...); err != nil {
			return r, err
		}
	}
	r.Bundle, err = bundle.Upload(ctx, s.service, stack)
	return r, err
}

// refreshes reports whether an update begins with a refresh: as --refresh says, else as the project does.
func (s *session) refreshes(kind engine.Kind) bool {
	if s.flags.IsSet("refresh") {
		return s.flags.Bool("refresh")
	}
	return s.project != nil && s.project.Refreshes() && (kind == engine.KindUp || kind == engine.KindDestroy)
}

// policyPacks reads --policy-pack and --policy-pack-config.
func (s *session) policyPacks(kind engine.Kind) ([]deployments.PolicyPack, error) {
	paths, configs := s.paths("policy-pack"), s.paths("policy-pack-config")
	switch {
	case len(paths) > 0 && kind != engine.KindUp:
		return nil, deployments.Errorf(deployments.CodeInvalid, "only an up, or the preview of one, takes --policy-pack")
	case len(configs) > 0 && len(configs) != len(paths):
		return nil, deployments.Errorf(deployments.CodeInvalid, "--policy-pack is given %d times and "+
			"--policy-pack-config %d times; give one configuration for each policy pack, or none at all", len(paths),
			len(configs))
	}
	packs := make([]deployments.PolicyPack, len(paths))
	for n, path := range paths {
		packs[n].Dir = project.PolicyPackDir(n, path)
		if len(configs) == 0 {
			continue
		}
		var err error
		if packs[n].Config, err = readPackConfig(configs[n]); err != nil {
			return nil, err
		}
	}
	return packs, nil
}

func readPackConfig(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", deployments.Errorf(deployments.CodeInvalid, "--policy-pack-config: %w", err)
	}
	text := strings.TrimSpace(string(data))
	if text != "" && !json.Valid(data) {
		return "", deployments.Errorf(deployments.CodeInvalid, "%s is not JSON: correct it, or name another file "+
			"with --policy-pack-config", file)
	}
	return text, nil
}

// paths returns the values of a flag as paths, which are relative to the command's working directory.
func (s *session) paths(flag string) []string {
	paths := slices.Clone(s.flags.StringSlice(flag))
	for i, path := range paths {
		if !filepath.IsAbs(path) {
			paths[i] = filepath.Join(s.dir, path)
		}
	}
	return paths
}

// modes reads --on-busy and --on-unknown.
func (s *session) modes(r *deployments.UpdateRequest) error {
	switch busy := deployments.OnBusy(s.flags.String("on-busy")); busy {
	case "", deployments.OnBusyQueue, deployments.OnBusyFail, deployments.OnBusySupersede:
		r.OnBusy = busy
	default:
		return deployments.Errorf(deployments.CodeInvalid, "--on-busy takes queue, fail or supersede, not %q", busy)
	}
	switch unknown := s.flags.String("on-unknown"); unknown {
	case "":
		r.WaitOnUnknown = s.asks()
	case "wait", "fail":
		r.WaitOnUnknown = unknown == "wait"
	default:
		return deployments.Errorf(deployments.CodeInvalid, "--on-unknown takes wait or fail, not %q", unknown)
	}
	return nil
}

// configure stores the values of --config in the stack's configuration, and adds the configuration and its secrets
// provider to the request.
func (s *session) configure(ctx context.Context, r *deployments.UpdateRequest) error {
	secrets, err := s.secrets(r.Stack)
	if err != nil {
		return err
	}
	if err := s.saveConfig(secrets.Stack); err != nil {
		return err
	}
	for _, sentence := range append(secrets.Stack.Unread(), meantRuntime(s.project)...) {
		s.note("warning: " + sentence)
	}
	if r.Config, err = secrets.Stack.Values(ctx, secrets.Crypter); err != nil {
		return err
	}
	r.Secrets, err = secrets.Provider(ctx)
	return err
}

// meantRuntime says which runtime a project means whose own one is none.
func meantRuntime(p *project.Project) []string {
	name := p.Definition.Runtime.Name()
	if meant := plugins.MeantRuntime(name); meant != "" {
		return []string{fmt.Sprintf("%s has the runtime %s; did you mean %s?", p.File, name, meant)}
	}
	return nil
}

// saveConfig saves the values of --config in the stack's configuration file.
func (s *session) saveConfig(stack *project.Stack) error {
	pairs, path := s.flags.StringSlice("config"), s.flags.Bool("path")
	if len(pairs) == 0 {
		return nil
	}
	for _, pair := range pairs {
		text, value, err := configPair(pair)
		if err != nil {
			return err
		}
		key, err := stack.Key(text, path)
		if err == nil {
			err = stack.Set(key, stack.Typed(key, value, path), path)
		}
		if err != nil {
			return err
		}
	}
	s.kept = filepath.Base(stack.Path)
	return stack.Save()
}

// configPair divides a value of --config.
func configPair(pair string) (key, value string, err error) {
	key, value, found := strings.Cut(pair, "=")
	if !found {
		err = deployments.Errorf(deployments.CodeInvalid, "--config takes KEY=VALUE, not %q", key)
	}
	return key, value, err
}

// hiddenVariables are prefixes of variables that programs must not see: deployctl's own settings, and passwords of
// secrets.
var hiddenVariables = []string{"DEPLOYCTL_", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_ACCESS_TOKEN"}

// programEnvironment returns the variables of the user's environment that programs and plugins receive.
func programEnvironment(environ []string) []string {
	var kept []string
	for _, variable := range environ {
		hidden := false
		for _, prefix := range hiddenVariables {
			hidden = hidden || strings.HasPrefix(variable, prefix)
		}
		if !hidden {
			kept = append(kept, variable)
		}
	}
	return kept
}

// newRequestID returns an id for one submission; the service accepts it once, however often it is sent.
func newRequestID() string { return uuid.NewString() }
