package update

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/google/uuid"
)

// newRequest returns the request that the flags describe, without the fields that differ between a preview and its
// update. bundle is what the update takes along; nil: what the project's files are now.
func newRequest(
	ctx context.Context, s *console.Session, kind engine.Kind, info deployments.StackInfo, bundle *project.Bundle,
) (deployments.UpdateRequest, error) {
	r, err := flagRequest(ctx, s, kind, info)
	if err == nil {
		err = fillRequest(ctx, s, &r, bundle)
	}
	return r, err
}

// flagRequest returns the part of a request for which only flags are read.
func flagRequest(
	ctx context.Context, s *console.Session, kind engine.Kind, info deployments.StackInfo,
) (deployments.UpdateRequest, error) {
	stack := info.Stack
	r := deployments.UpdateRequest{
		Stack: stack, Kind: kind, Initiator: console.Initiator(), Message: s.Flags.String("message"),
		Refresh: refreshes(s, kind), TargetDependents: s.Flags.Bool("target-dependents"),
		ExcludeDependents: s.Flags.Bool("exclude-dependents"),
		ExcludeProtected:  s.Flags.Bool("exclude-protected"), IgnoreProtect: s.Flags.Bool("ignore-protect"),
		RunProgram: s.Flags.Bool("run-program"), ClearPendingCreates: s.Flags.Bool("clear-pending-creates"),
		Force: s.Flags.Bool("force"), ContinueOnError: s.Flags.Bool("continue-on-error"), Parallel: s.Flags.Int("parallel"),
	}
	named, err := s.NamedResources(ctx, info)
	if err != nil {
		return r, err
	}
	if s.Flags.Bool("adopt") {
		r.Adopt = []string{"**"}
	}
	r.Targets, r.Excludes, r.Replace = named["target"], named["exclude"], named["replace"]
	if r.Parallel < 1 || r.Parallel > deployments.MaxParallel {
		return r, deployments.Errorf(deployments.CodeInvalid, "--parallel must be from 1 to %d, not %d",
			deployments.MaxParallel, r.Parallel)
	}
	if err := sameBackend(s, info); err != nil {
		return r, err
	}
	if err := modes(s, &r); err != nil {
		return r, err
	}
	if s.Project == nil {
		return r, s.Elsewhere(stack)
	}
	r.PolicyPacks, err = policyPacks(s, kind)
	return r, err
}

// fillRequest adds the configuration, which gets the values of --config, the environment and the bundle, which it
// uploads.
func fillRequest(
	ctx context.Context, s *console.Session, r *deployments.UpdateRequest, bundle *project.Bundle,
) (err error) {
	if err := configure(ctx, s, r); err != nil {
		return err
	}
	if s.Service.Embedded {
		r.Environment = programEnvironment(s.Environ)
	}
	if bundle == nil {
		if bundle, err = s.Project.Gather(flagPaths(s, "policy-pack")...); err != nil {
			return err
		}
	}
	r.Bundle, err = bundle.Upload(ctx, s.Service, r.Stack)
	return err
}

// refreshes reports whether an update begins with a refresh: as --refresh says, else as the project does.
func refreshes(s *console.Session, kind engine.Kind) bool {
	if s.Flags.IsSet("refresh") {
		return s.Flags.Bool("refresh")
	}
	return s.Project != nil && s.Project.Refreshes() && (kind == engine.KindUp || kind == engine.KindDestroy)
}

// policyPacks reads --policy-pack and --policy-pack-config.
func policyPacks(s *console.Session, kind engine.Kind) ([]deployments.PolicyPack, error) {
	paths, configs := flagPaths(s, "policy-pack"), flagPaths(s, "policy-pack-config")
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

// flagPaths returns the values of a flag as paths, which are relative to the command's working directory.
func flagPaths(s *console.Session, flag string) []string {
	paths := slices.Clone(s.Flags.StringSlice(flag))
	for i, path := range paths {
		if !filepath.IsAbs(path) {
			paths[i] = filepath.Join(s.WorkDir, path)
		}
	}
	return paths
}

// modes reads --on-busy and --on-unknown.
func modes(s *console.Session, r *deployments.UpdateRequest) error {
	switch busy := deployments.OnBusy(s.Flags.String("on-busy")); busy {
	case "", deployments.OnBusyQueue, deployments.OnBusyFail, deployments.OnBusySupersede:
		r.OnBusy = busy
	default:
		return deployments.Errorf(deployments.CodeInvalid, "--on-busy takes queue, fail or supersede, not %q", busy)
	}
	switch unknown := s.Flags.String("on-unknown"); unknown {
	case "":
		r.WaitOnUnknown = s.Asks()
	case "wait", "fail":
		r.WaitOnUnknown = unknown == "wait"
	default:
		return deployments.Errorf(deployments.CodeInvalid, "--on-unknown takes wait or fail, not %q", unknown)
	}
	return nil
}

// configure stores the values of --config in the stack's configuration, and adds the configuration and its secrets
// provider to the request.
func configure(ctx context.Context, s *console.Session, r *deployments.UpdateRequest) error {
	secrets, err := s.Secrets(r.Stack)
	if err != nil {
		return err
	}
	if err := saveConfig(s, secrets.Stack); err != nil {
		return err
	}
	for _, sentence := range append(secrets.Stack.Unread(), meantRuntime(s.Project)...) {
		s.Note("warning: " + sentence)
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
func saveConfig(s *console.Session, stack *project.Stack) error {
	pairs, path := s.Flags.StringSlice("config"), s.Flags.Bool("path")
	if len(pairs) == 0 {
		return nil
	}
	for _, pair := range pairs {
		text, value, err := ConfigPair(pair)
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
	s.Kept = filepath.Base(stack.Path)
	return stack.Save()
}

// ConfigPair divides a value of --config.
func ConfigPair(pair string) (key, value string, err error) {
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
