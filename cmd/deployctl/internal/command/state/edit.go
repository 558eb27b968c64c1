package state

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

// editCommand returns deployctl edit.
func editCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "edit", Usage: "edit the whole state with VISUAL or EDITOR",
		Description: "What you save is checked like an import. Secrets are ciphertexts, as in an export. It is " +
			"rejected if the stack has changed meanwhile.",
		Flags: console.OnStack(console.YesFlag, &cli.BoolFlag{Name: "force",
			Usage: "do not ask before forgetting all resources; " +
				"needs the role admin"}),
		Action: console.Action(s, runEdit),
	}
}

func runEdit(ctx context.Context, s *console.Session) error {
	editor := s.Variable("VISUAL")
	if editor == "" {
		editor = s.Variable("EDITOR")
	}
	if editor == "" {
		return deployments.Errorf(deployments.CodeInvalid, "there is no editor: set EDITOR, for example to vi")
	}
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	provider, err := s.ExportSecrets(ctx, info.Stack, true)
	if err != nil {
		return err
	}
	untyped, err := s.Service.Export(ctx, info.Stack, info.Version, provider, false)
	if err != nil {
		return err
	}
	if err := s.MustAsk(); err != nil {
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
		Forget: s.Flags.Bool("force"), Initiator: console.Initiator()}
	for {
		text, err := edited(ctx, s, editor, path)
		if err != nil {
			return err
		}
		if bytes.Equal(bytes.TrimSpace(text), before) {
			return s.Declined()
		}
		version, err := importEdited(ctx, s, request, untyped, text)
		if err == nil {
			s.Say("Version %d of %s is what you saved.", version, info.Stack)
			return nil
		}
		if s.Flags.Bool("yes") || deployments.CodeOf(err) != deployments.CodeInvalid {
			return err
		}
		s.Note("error: " + err.Error())
		if err := s.Confirm(ctx, "Edit it again?", nil); err != nil {
			return err
		}
	}
}

// edited runs the editor, and returns the content of the file when it ends.
func edited(ctx context.Context, s *console.Session, editor, path string) ([]byte, error) {
	command := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "editor", path)
	command.Stdin, command.Stdout, command.Stderr, command.Env, command.Dir = s.In, s.Out, s.Err, s.Environ, s.WorkDir
	if err := command.Run(); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the editor %q failed, and nothing was changed: %w",
			editor, err)
	}
	return os.ReadFile(path)
}

// importEdited shows how an edited deployment differs, asks, and imports it.
func importEdited(
	ctx context.Context, s *console.Session, r deployments.ImportRequest, before apitype.UntypedDeployment, text []byte,
) (int, error) {
	if err := json.Unmarshal(text, &r.Deployment); err != nil || len(r.Deployment.Deployment) == 0 {
		return 0, deployments.Errorf(deployments.CodeInvalid, "this is no deployment: %w", err)
	}
	changes, err := deploymentChanges(before, r.Deployment)
	if err != nil {
		return 0, err
	}
	sayChanges(s, changes)
	if !s.Flags.Bool("yes") {
		if err := s.Confirm(ctx, fmt.Sprintf("Make this the newest state of %s?", r.Stack), nil); err != nil {
			return 0, err
		}
	}
	version, err := s.Service.Import(ctx, r)
	if deployments.CodeOf(err) == deployments.CodeUnconfirmed {
		if err := s.ConfirmForgetting(ctx, err, true); err != nil {
			return 0, err
		}
		r.Forget = true
		return s.Service.Import(ctx, r)
	}
	return version, err
}

// deploymentChanges describes how the resources of two deployments differ, a line for each.
func deploymentChanges(before, after apitype.UntypedDeployment) ([]string, error) {
	was, err := console.ParseResources(before)
	if err != nil {
		return nil, err
	}
	is, err := console.ParseResources(after)
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
	for _, u := range console.Sorted(all) {
		out = append(out, urn.URN(u))
	}
	return out
}
