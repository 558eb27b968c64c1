package update

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/urfave/cli/v2"
)

// DriftCommand returns deployctl drift.
func DriftCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "drift", Usage: "show the result of the last scheduled drift check (same as drift status)",
		Flags: console.OnStack(console.JSONFlag), Action: console.Action(s, runDriftStatus),
		Subcommands: []*cli.Command{{
			Name: "status", Usage: "show the result of the last drift check, property by property",
			Flags: console.OnStack(console.JSONFlag), Action: console.Action(s, runDriftStatus),
		}, {
			Name: "detect", Usage: "show what was changed outside of the stack, as a preview of a refresh does",
			Flags:  updateFlags(console.RunProgramFlag, expectNoChangesFlag),
			Action: console.Action(s, runDriftDetect),
		}, {
			Name: "repair", Usage: "read every resource, and bring back what was changed outside of the stack",
			Description: changeExits,
			Flags:       changeFlags(ignoreProtectFlag, policyPackFlag, policyPackConfigFlag, previewOnlyFlag),
			Action:      console.Action(s, runDriftRepair),
		}},
	}
}

func runDriftDetect(ctx context.Context, s *console.Session) error {
	return previewKind(ctx, s, engine.KindRefresh)
}

func runDriftRepair(ctx context.Context, s *console.Session) error {
	return changeStack(ctx, s, engine.KindUp, func(r *deployments.UpdateRequest) error {
		r.Refresh = true
		return nil
	})
}

func runDriftStatus(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	drift, err := s.Service.Drift(ctx, info.Stack)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(drift)
	}
	if len(drift.Resources) == 0 {
		s.Say("No resource of %s had drifted at %s.", info.Stack, console.When(drift.At))
		return nil
	}
	s.Say("%s of %s had drifted at %s.", console.Counted(len(drift.Resources), "resource", "resources"), info.Stack,
		console.When(drift.At))
	rows := append([][]string{{"RESOURCE", "PROPERTY", "EXPECTED", "ACTUAL"}}, projection.DriftRows(drift.Resources)...)
	if err := s.SayTable(rows); err != nil {
		return err
	}
	switch {
	case drift.Remediation != nil:
		s.Say("Repaired by %s.", drift.Remediation)
	case info.Updated.After(drift.At):
		s.Say("The stack has been updated since; the next drift check shows what is left of this.")
	}
	return nil
}
