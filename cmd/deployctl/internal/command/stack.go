package command

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/urfave/cli/v2"
)

func stackCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "stack", Usage: "show the stack, or manage stacks",
		Flags:  onStack(jsonFlag),
		Action: action(s, runStack),
		Subcommands: []*cli.Command{
			stackInitCommand(s), stackLsCommand(s), stackSelectCommand(s), stackUnselectCommand(s), stackRmCommand(s),
			stackOutputCommand(s),
			stackExportCommand(s), stackImportCommand(s), stackHistoryCommand(s), stackRestoreCommand(s),
			stackRecoverCommand(s),
			stackTagCommand(s), stackRenameCommand(s), stackSecretsCommand(s),
		},
	}
}

// knownStack returns the command's stack from the service.
func (s *session) knownStack(ctx context.Context) (deployments.StackInfo, error) {
	if err := s.connect(ctx); err != nil {
		return deployments.StackInfo{}, err
	}
	name, err := s.stackName(ctx)
	if err != nil {
		return deployments.StackInfo{}, err
	}
	info, err := s.service.Stack(ctx, name)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return info, s.unknownStack(ctx, name)
	}
	return info, err
}

func runStack(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(info)
	}
	s.say("%s", info.Stack)
	if info.Version == 0 {
		s.say("  never updated")
	} else {
		s.say("  version %d of %s, %d resources", info.Version, when(info.Updated), info.Resources)
	}
	if info.Active != nil {
		s.say("  %s running since %s: %s", info.Active.Kind, when(info.Active.Started), info.Active.Update)
		for _, urn := range info.Active.Waiting {
			s.say("  it is unknown whether %s was created; the update waits for deployctl resolve", urn)
		}
	}
	for _, name := range s.leftPending(ctx, info) {
		s.say("  pending: %s; its outcome is unknown; the next update settles it, or deployctl resolve does", name)
	}
	for _, waiting := range info.Queued {
		s.say("  %s waiting: %s", waiting.Kind, waiting.Update)
	}
	if n := s.driftOf(ctx, info); n > 0 {
		s.say("  %d resources have drifted: see deployctl drift", n)
	}
	for _, name := range sorted(info.Tags) {
		s.say("  %s: %s", name, info.Tags[name])
	}
	return nil
}

// leftPending names the resources on which the last update left pending operations, if it did not succeed.
func (s *session) leftPending(ctx context.Context, info deployments.StackInfo) []string {
	if info.Version == 0 || info.Active != nil {
		return nil
	}
	last, err := s.service.History(ctx, info.Stack, 1)
	if err != nil || len(last) == 0 || last[0].Status == string(engine.StatusSucceeded) {
		return nil
	}
	names, err := s.pending(ctx, last[0].Update)
	if err != nil {
		s.note("cannot read the pending operations of the last update: " + err.Error())
	}
	return names
}

// driftOf returns how many drifted resources the last drift check found, unless the stack has been updated since.
func (s *session) driftOf(ctx context.Context, info deployments.StackInfo) int {
	drift, err := s.service.Drift(ctx, info.Stack)
	if err != nil || drift.Remediation != nil || info.Updated.After(drift.At) {
		return 0 // usually there was no drift check
	}
	return len(drift.Resources)
}

// when formats a time for the user.
func when(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format(time.DateTime)
}
