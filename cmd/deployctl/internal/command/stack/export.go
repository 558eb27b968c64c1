package stack

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/urfave/cli/v2"
)

// exportCommand returns deployctl export.
func exportCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "export", Usage: "print the stack's deployment as JSON, in Pulumi's format",
		Description: "With --raw, an admin gets the stored objects instead, in a tar archive, also when the state or what " +
			"the active update has written is damaged: for example before deployctl stack recover --discard. Its file " +
			"index.json says what is wrong with which object. Secrets stay encrypted.",
		Flags: console.OnStack(console.ShowSecretsFlag,
			&cli.StringFlag{Name: "file", Usage: "write to `FILE` instead of standard output"},
			&cli.IntFlag{Name: "version", Usage: "export version `N`; 0 is the latest"},
			&cli.StringFlag{Name: "raw", Usage: "write the stored objects of the newest state and of the active update to the " +
				"archive `FILE`; needs the role admin"}),
		Action: console.Action(s, runExport),
	}
}

func runExport(ctx context.Context, s *console.Session) error {
	if s.Flags.String("raw") != "" {
		return runRawExport(ctx, s)
	}
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	show := s.Flags.Bool("show-secrets")
	provider, err := s.ExportSecrets(ctx, info.Stack, show)
	if err != nil {
		return err
	}
	deployment, err := s.Service.Export(ctx, info.Stack, s.Flags.Int("version"), provider, show)
	if err != nil {
		return err
	}
	if path := s.Flags.String("file"); path != "" {
		text, err := json.MarshalIndent(deployment, "", "    ")
		if err != nil {
			return err
		}
		return os.WriteFile(s.Path(path), append(text, '\n'), 0o600) // it may have secrets
	}
	return s.SayJSON(deployment)
}

// runRawExport writes an archive of the stack's objects, under its name once it is whole. It asks nothing about the
// stack, which may be too damaged for an answer.
func runRawExport(ctx context.Context, s *console.Session) error {
	for _, flag := range []string{"file", "version", "show-secrets"} {
		if s.Flags.IsSet(flag) {
			return deployments.Errorf(deployments.CodeInvalid, "--raw cannot be used with --%s: it has the newest state, and "+
				"secrets stay encrypted", flag)
		}
	}
	name, err := s.ConnectedStack(ctx)
	if err != nil {
		return err
	}
	path := s.Path(s.Flags.String("raw"))
	part, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part") // which only its owner may read
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(part.Name()) }()
	err = s.Service.ExportRaw(ctx, name, part)
	if closed := part.Close(); err == nil {
		err = closed
	}
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return s.UnknownStack(ctx, name)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return err
	}
	s.Say("The objects of %s are in %s; index.json in it names those that are damaged.", name, s.Flags.String("raw"))
	return nil
}

// importCommand returns deployctl import.
func importCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "import", Usage: "replace the stack's deployment with an exported one",
		Flags: console.OnStack(
			&cli.StringFlag{Name: "file", Usage: "read `FILE` instead of standard input"},
			forgetFlag),
		Action: console.Action(s, runImport),
	}
}

// forgetFlag lets an import or a restore forget all of the stack's resources.
var forgetFlag = &cli.BoolFlag{
	Name: "force", Usage: "do not ask before forgetting all resources, if the deployment has none of them; needs the " +
		"role admin",
}

func runImport(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	var text []byte
	if path := s.Flags.String("file"); path != "" {
		text, err = os.ReadFile(s.Path(path))
	} else {
		text, err = io.ReadAll(s.In)
	}
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "cannot read the deployment: %w", err)
	}
	var deployment apitype.UntypedDeployment
	if err := json.Unmarshal(text, &deployment); err != nil || len(deployment.Deployment) == 0 {
		return deployments.Errorf(deployments.CodeInvalid, "this is not an exported deployment; deployctl stack "+
			"export and pulumi stack export write them")
	}
	provider, err := s.ExportSecrets(ctx, info.Stack, true)
	if err != nil {
		return err
	}
	request := deployments.ImportRequest{Stack: info.Stack, Deployment: deployment, Secrets: provider,
		Forget: s.Flags.Bool("force"), Initiator: console.Initiator()}
	version, err := s.Service.Import(ctx, request)
	if deployments.CodeOf(err) == deployments.CodeUnconfirmed {
		// without --file, standard input is the deployment, so nothing can be asked
		if err := s.ConfirmForgetting(ctx, err, s.Flags.String("file") != ""); err != nil {
			return err
		}
		request.Forget = true
		version, err = s.Service.Import(ctx, request)
	}
	if err != nil {
		return err
	}
	s.Say("Imported as version %d of %s.", version, info.Stack)
	return nil
}
