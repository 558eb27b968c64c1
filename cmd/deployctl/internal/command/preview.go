package command

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

func previewCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "preview", Aliases: []string{"pre", "plan"}, Usage: "show what an update would do",
		Flags: updateFlags(refreshFlag, replaceFlag, adoptFlag, forceFlag, ignoreProtectFlag, excludeProtectedFlag,
			runProgramFlag, policyPackFlag, policyPackConfigFlag,
			&cli.StringFlag{Name: "kind", Usage: "`KIND` of update to preview: up, refresh or destroy", Value: "up"},
			&cli.StringFlag{Name: "import-file", Usage: "write what would be created to `FILE`, for deployctl import"},
			&cli.StringFlag{Name: "save-plan", Usage: "write what would change to `FILE`, for deployctl up --plan"},
			expectNoChangesFlag),
		Action: action(s, runPreview),
	}
}

func runPreview(ctx context.Context, s *session) error {
	kind := engine.Kind(s.flags.String("kind"))
	if _, known := questions[kind]; !known || kind == engine.KindImport {
		return deployments.Errorf(deployments.CodeInvalid, "--kind takes up, refresh or destroy, not %q", kind)
	}
	if s.flags.String("save-plan") != "" && kind != engine.KindUp {
		return deployments.Errorf(deployments.CodeInvalid, "--save-plan saves what an up would do; leave out --kind")
	}
	return s.runPreview(ctx, kind)
}

// runPreview previews an update of a kind.
func (s *session) runPreview(ctx context.Context, kind engine.Kind) error {
	if err := s.needProject(); err != nil {
		return err
	}
	stack, err := s.existingStack(ctx)
	if err != nil {
		return err
	}
	s.warnOfOtherDirectory(kind, stack)
	s.noteRunning(stack)
	request, err := s.request(ctx, kind, stack, nil)
	if err != nil {
		return err
	}
	state, err := s.preview(ctx, request, "")
	if err == nil {
		err = s.writeImportFile(state)
	}
	if err == nil {
		err = s.savePlan(ctx, request, stack, state)
	}
	if err == nil && s.flags.Bool("expect-no-changes") && state.Changed() {
		return deployments.Errorf(deployments.CodeConflict, "no changes were expected (--expect-no-changes), but the "+
			"preview shows some")
	}
	return err
}
