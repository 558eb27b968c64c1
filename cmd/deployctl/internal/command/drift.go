package command

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/urfave/cli/v2"
)

func driftCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "drift", Usage: "show the result of the last drift check (same as drift status)",
		Flags: onStack(jsonFlag), Action: action(s, runDriftStatus),
		Subcommands: []*cli.Command{{
			Name: "status", Usage: "show the result of the last drift check, property by property",
			Flags: onStack(jsonFlag), Action: action(s, runDriftStatus),
		}, {
			Name: "detect", Usage: "show what was changed outside of the stack, as a preview of a refresh does",
			Flags:  updateFlags(runProgramFlag, expectNoChangesFlag),
			Action: action(s, runDriftDetect),
		}, {
			Name: "repair", Usage: "read every resource, and bring back what was changed outside of the stack",
			Description: changeExits,
			Flags:       changeFlags(ignoreProtectFlag, policyPackFlag, policyPackConfigFlag, previewOnlyFlag),
			Action:      action(s, runDriftRepair),
		}},
	}
}

func runDriftDetect(ctx context.Context, s *session) error {
	return s.runPreview(ctx, engine.KindRefresh)
}

func runDriftRepair(ctx context.Context, s *session) error {
	return s.change(ctx, engine.KindUp, func(r *deployments.UpdateRequest) error {
		r.Refresh = true
		return nil
	})
}

func runDriftStatus(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	drift, err := s.service.Drift(ctx, info.Stack)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(drift)
	}
	if len(drift.Resources) == 0 {
		s.say("No resource of %s had drifted at %s.", info.Stack, when(drift.At))
		return nil
	}
	s.say("%s of %s had drifted at %s.", counted(len(drift.Resources), "resource", "resources"), info.Stack,
		when(drift.At))
	rows := append([][]string{{"RESOURCE", "PROPERTY", "EXPECTED", "ACTUAL"}}, projection.DriftRows(drift.Resources)...)
	if err := s.sayTable(rows); err != nil {
		return err
	}
	switch {
	case drift.Remediation != nil:
		s.say("Repaired by %s.", drift.Remediation)
	case info.Updated.After(drift.At):
		s.say("The stack has been updated since; the next drift check shows what is left of this.")
	}
	return nil
}
