package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

func stateEditCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "edit", Usage: "edit the whole state with VISUAL or EDITOR",
		Description: "What you save is checked like an import. Secrets are ciphertexts, as in an export. It is " +
			"rejected if the stack has changed meanwhile.",
		Flags: onStack(yesFlag, &cli.BoolFlag{Name: "force", Usage: "do not ask before forgetting all resources; " +
			"needs the role admin"}),
		Action: action(s, runStateEdit),
	}
}

func runStateEdit(ctx context.Context, s *session) error {
	editor := s.Variable("VISUAL")
	if editor == "" {
		editor = s.Variable("EDITOR")
	}
	if editor == "" {
		return deployments.Errorf(deployments.CodeInvalid, "there is no editor: set EDITOR, for example to vi")
	}
	if err := s.mustAsk(); err != nil {
		return err
	}
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	provider, err := s.exportSecrets(ctx, info.Stack, true)
	if err != nil {
		return err
	}
	untyped, err := s.service.Export(ctx, info.Stack, info.Version, provider, false)
	if err != nil {
		return err
	}
	before, err := json.MarshalIndent(untyped, "", "    ")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "deployctl-state-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it has no secrets in plaintext
	path := filepath.Join(dir, "state.json")
	if err := os.WriteFile(path, append(before, '\n'), 0o600); err != nil {
		return err
	}
	request := deployments.ImportRequest{Stack: info.Stack, Secrets: provider, BaseVersion: &info.Version,
		Forget: s.flags.Bool("force"), Initiator: initiator()}
	for {
		text, err := s.edited(ctx, editor, path)
		if err != nil {
			return err
		}
		if bytes.Equal(bytes.TrimSpace(text), before) {
			return s.declined()
		}
		version, err := s.importEdited(ctx, request, untyped, text)
		if err == nil {
			s.say("Version %d of %s is what you saved.", version, info.Stack)
			return nil
		}
		if s.flags.Bool("yes") || deployments.CodeOf(err) != deployments.CodeInvalid {
			return err
		}
		s.note("error: " + err.Error())
		if err := s.confirm(ctx, "Edit it again?", nil); err != nil {
			return err
		}
	}
}

// edited runs the editor, and returns the content of the file when it ends.
func (s *session) edited(ctx context.Context, editor, path string) ([]byte, error) {
	command := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "editor", path)
	command.Stdin, command.Stdout, command.Stderr, command.Env, command.Dir = s.In, s.Out, s.Err, s.Environ, s.dir
	if err := command.Run(); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the editor %q failed, and nothing was changed: %w",
			editor, err)
	}
	return os.ReadFile(path)
}

// importEdited shows how an edited deployment differs, asks, and imports it.
func (s *session) importEdited(
	ctx context.Context, r deployments.ImportRequest, before apitype.UntypedDeployment, text []byte,
) (int, error) {
	if err := json.Unmarshal(text, &r.Deployment); err != nil || len(r.Deployment.Deployment) == 0 {
		return 0, deployments.Errorf(deployments.CodeInvalid, "this is no deployment: %w", err)
	}
	changes, err := deploymentChanges(before, r.Deployment)
	if err != nil {
		return 0, err
	}
	s.sayChanges(changes)
	if !s.flags.Bool("yes") {
		if err := s.confirm(ctx, fmt.Sprintf("Make this the newest state of %s?", r.Stack), nil); err != nil {
			return 0, err
		}
	}
	version, err := s.service.Import(ctx, r)
	if deployments.CodeOf(err) == deployments.CodeUnconfirmed {
		if err := s.confirmForgetting(ctx, err, true); err != nil {
			return 0, err
		}
		r.Forget = true
		return s.service.Import(ctx, r)
	}
	return version, err
}

// deploymentChanges describes how the resources of two deployments differ, a line for each.
func deploymentChanges(before, after apitype.UntypedDeployment) ([]string, error) {
	was, err := parseResources(before)
	if err != nil {
		return nil, err
	}
	is, err := parseResources(after)
	if err != nil {
		return nil, err
	}
	copies := func(list []apitype.ResourceV3) map[urn.URN][]apitype.ResourceV3 {
		found := map[urn.URN][]apitype.ResourceV3{}
		for _, r := range list {
			found[r.URN] = append(found[r.URN], r)
		}
		return found
	}
	old, now := copies(was), copies(is)
	var changes []string
	for _, u := range sortedURNs(old, now) {
		switch {
		case old[u] == nil:
			changes = append(changes, "add "+string(u))
		case now[u] == nil:
			changes = append(changes, "delete "+string(u))
		case !reflect.DeepEqual(old[u], now[u]):
			changes = append(changes, "change "+string(u))
		}
	}
	if len(changes) == 0 {
		changes = []string{"change what is not a resource, or their order"}
	}
	return changes, nil
}

// sortedURNs returns the keys of both maps.
func sortedURNs(a, b map[urn.URN][]apitype.ResourceV3) []urn.URN {
	all := map[string][]apitype.ResourceV3{}
	for _, m := range []map[urn.URN][]apitype.ResourceV3{a, b} {
		for u, list := range m {
			all[string(u)] = list
		}
	}
	var out []urn.URN
	for _, u := range sorted(all) {
		out = append(out, urn.URN(u))
	}
	return out
}
