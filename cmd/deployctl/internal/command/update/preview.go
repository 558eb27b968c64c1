package update

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

// PreviewCommand returns deployctl preview.
func PreviewCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "preview", Aliases: []string{"pre", "plan"}, Usage: "show what an update would do",
		Flags: updateFlags(refreshFlag, replaceFlag, adoptFlag, forceFlag, ignoreProtectFlag, console.ExcludeProtectedFlag,
			console.RunProgramFlag, policyPackFlag, policyPackConfigFlag,
			&cli.StringFlag{Name: "kind", Usage: "`KIND` of update to preview: up, refresh or destroy", Value: "up"},
			&cli.StringFlag{Name: "import-file", Usage: "write what would be created to `FILE`, for deployctl import"},
			&cli.StringFlag{Name: "save-plan", Usage: "write what would change to `FILE`, for deployctl up --plan"},
			expectNoChangesFlag),
		Action: console.Action(s, runPreview),
	}
}

func runPreview(ctx context.Context, s *console.Session) error {
	kind := engine.Kind(s.Flags.String("kind"))
	if _, known := questions[kind]; !known || kind == engine.KindImport {
		return deployments.Errorf(deployments.CodeInvalid, "--kind takes up, refresh or destroy, not %q", kind)
	}
	if s.Flags.String("save-plan") != "" && kind != engine.KindUp {
		return deployments.Errorf(deployments.CodeInvalid, "--save-plan saves what an up would do; leave out --kind")
	}
	return previewKind(ctx, s, kind)
}

// previewKind previews an update of a kind.
func previewKind(ctx context.Context, s *console.Session, kind engine.Kind) error {
	if err := s.NeedProject(); err != nil {
		return err
	}
	stack, early, err := stackAndFiles(ctx, s)
	defer early.end()
	if err != nil {
		return err
	}
	warnOfOtherDirectory(s, kind, stack)
	noteRunning(s, stack)
	request, err := newRequest(ctx, s, kind, stack, early.take)
	if err != nil {
		return err
	}
	state, err := showPreview(ctx, s, request, "")
	if err == nil {
		err = writeImportFile(s, state)
	}
	if err == nil {
		err = savePlan(ctx, s, request, stack, state)
	}
	if err == nil && s.Flags.Bool("expect-no-changes") && state.Changed() {
		return deployments.Errorf(deployments.CodeConflict, "no changes were expected (--expect-no-changes), but the "+
			"preview shows some")
	}
	return err
}
