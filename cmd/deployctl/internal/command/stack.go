package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/terminal/display"
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
		s.say("  version %d of %s, %s with the stack itself and its providers", info.Version,
			when(info.Updated), counted(info.Resources, "resource", "resources"))
	}
	last := s.lastUpdate(ctx, info)
	if last.Update.Version != "" {
		s.say("  last: %s", lastText(last))
	}
	if info.Active != nil {
		s.say("  %s %s since %s: %s", info.Active.Kind, doing(*info.Active), when(info.Active.Started), info.Active.Update)
		if hint := display.LostClient(info.Active); hint != "" {
			s.say("  %s", hint)
		}
		for _, urn := range info.Active.Waiting {
			s.say("  it is unknown whether %s was created; the update waits for deployctl resolve", urn)
		}
	}
	for _, name := range s.leftPending(ctx, last) {
		s.say("  pending: %s; its outcome is unknown; the next update settles it, or deployctl resolve does", name)
	}
	for _, waiting := range info.Queued {
		s.say("  %s waiting: %s", waiting.Kind, waiting.Update)
	}
	if n := s.driftOf(ctx, info); n > 0 {
		s.say("  %s drifted: see deployctl drift", counted(n, "resource has", "resources have"))
	}
	for _, name := range sorted(info.Tags) {
		s.say("  %s: %s", name, info.Tags[name])
	}
	return s.sayContent(ctx, info)
}

// sayContent prints what a stack has come to.
func (s *session) sayContent(ctx context.Context, info deployments.StackInfo) error {
	if info.Version == 0 {
		return nil
	}
	s.say("  deployctl state ls   lists its resources")
	outputs, err := s.outputs(ctx, info.Stack)
	if err != nil {
		s.note("cannot read the outputs: " + err.Error())
	}
	if len(outputs) == 0 {
		return nil
	}
	s.say("")
	return s.sayOutputs(outputs)
}

// doing says what an update that is active does.
func doing(u deployments.UpdateInfo) string {
	if u.Cancelling {
		return "being cancelled, running"
	}
	return "running"
}

// lastUpdate returns the stack's last update; nothing if there is none, or one is running.
func (s *session) lastUpdate(ctx context.Context, info deployments.StackInfo) (last deployments.UpdateInfo) {
	if info.Version == 0 || info.Active != nil {
		return last
	}
	if list, err := s.service.History(ctx, info.Stack, 1); err == nil && len(list) > 0 {
		last = list[0]
	}
	return last
}

// lastText says how an update ended.
func lastText(u deployments.UpdateInfo) string {
	text := fmt.Sprintf("%s %s", u.Kind, u.Status)
	if u.Initiator != "" {
		text += ", by " + u.Initiator
	}
	if first, _, _ := strings.Cut(u.Error, "\n"); first != "" {
		text += ": " + strings.TrimSuffix(first, ":")
	}
	return text
}

// leftPending names the resources on which the last update left pending operations, if it did not succeed.
func (s *session) leftPending(ctx context.Context, last deployments.UpdateInfo) []string {
	if last.Update.Version == "" || last.Status == string(engine.StatusSucceeded) {
		return nil
	}
	names, err := s.pending(ctx, last.Update)
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
