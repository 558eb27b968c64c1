package stack

import (
	"context"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/urfave/cli/v2"
)

// Command returns deployctl stack, with commands of other groups that belong below it.
func Command(s *console.Env, more ...*cli.Command) *cli.Command {
	return &cli.Command{
		Name: "stack", Usage: "show the stack, or manage stacks",
		Flags:  console.OnStack(console.JSONFlag),
		Action: console.Action(s, runStack),
		Subcommands: append([]*cli.Command{
			initCommand(s), lsCommand(s), selectCommand(s), unselectCommand(s), rmCommand(s),
			outputCommand(s),
			exportCommand(s), importCommand(s), historyCommand(s), restoreCommand(s),
			recoverCommand(s),
			tagCommand(s), renameCommand(s), secretsCommand(s),
		}, more...),
	}
}

func runStack(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(info)
	}
	s.Say("%s", info.Stack)
	if info.Version == 0 {
		s.Say("  never updated")
	} else {
		s.Say("  version %d of %s, %s with the stack itself and its providers", info.Version,
			console.When(info.Updated), console.Counted(info.Resources, "resource", "resources"))
	}
	if info.Identity != "" && info.Identity != info.Stack.String() {
		s.Say("  its names and marks are those of %s (stack init --identity)", info.Identity)
	}
	last := lastUpdate(ctx, s, info)
	if last.Update.Version != "" {
		s.Say("  last: %s", lastText(last))
	}
	if info.Active != nil {
		s.Say("  %s %s since %s: %s", info.Active.Kind, doing(*info.Active), console.When(info.Active.Started),
			info.Active.Update)
		if hint := display.LostClient(info.Active); hint != "" {
			s.Say("  %s", hint)
		}
		for _, urn := range info.Active.Waiting {
			s.Say("  it is unknown whether %s was created; the update waits for deployctl resolve", urn)
		}
	}
	for _, name := range leftPending(ctx, s, last) {
		s.Say("  pending: %s; its outcome is unknown; the next update settles it, or deployctl resolve does", name)
	}
	for _, waiting := range info.Queued {
		s.Say("  %s waiting: %s", waiting.Kind, waiting.Update)
	}
	if n := driftOf(ctx, s, info); n > 0 {
		s.Say("  %s drifted: see deployctl drift", console.Counted(n, "resource has", "resources have"))
	}
	for _, name := range console.Sorted(info.Tags) {
		s.Say("  %s: %s", name, info.Tags[name])
	}
	return sayContent(ctx, s, info)
}

// sayContent prints what a stack has come to.
func sayContent(ctx context.Context, s *console.Session, info deployments.StackInfo) error {
	if info.Version == 0 {
		return nil
	}
	s.Say("  deployctl state ls   lists its resources")
	outputs, err := Outputs(ctx, s, info.Stack)
	if err != nil {
		s.Note("cannot read the outputs: " + err.Error())
	}
	if len(outputs) == 0 {
		return nil
	}
	s.Say("")
	return sayOutputs(s, outputs)
}

// doing says what an update that is active does.
func doing(u deployments.UpdateInfo) string {
	if u.Cancelling {
		return "being cancelled, running"
	}
	return "running"
}

// lastUpdate returns the stack's last update; nothing if there is none, or one is running.
func lastUpdate(ctx context.Context, s *console.Session, info deployments.StackInfo) (last deployments.UpdateInfo) {
	if info.Version == 0 || info.Active != nil {
		return last
	}
	if list, err := s.Service.History(ctx, info.Stack, 1); err == nil && len(list) > 0 {
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
func leftPending(ctx context.Context, s *console.Session, last deployments.UpdateInfo) []string {
	if last.Update.Version == "" || last.Status == string(engine.StatusSucceeded) {
		return nil
	}
	names, err := pendingNames(ctx, s, last.Update)
	if err != nil {
		s.Note("cannot read the pending operations of the last update: " + err.Error())
	}
	return names
}

// driftOf returns how many drifted resources the last drift check found, unless the stack has been updated since.
func driftOf(ctx context.Context, s *console.Session, info deployments.StackInfo) int {
	drift, err := s.Service.Drift(ctx, info.Stack)
	if err != nil || drift.Remediation != nil || info.Updated.After(drift.At) {
		return 0 // usually there was no drift check
	}
	return len(drift.Resources)
}
