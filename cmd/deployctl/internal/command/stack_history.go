package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func stackHistoryCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "history", Aliases: []string{"hist"}, Usage: "list the stack's updates, latest first",
		Description: "A waiting update has the STATUS queued. STATE is newest for the stack's current state, kept if " +
			"deployctl stack restore " +
			"can bring it back, and damaged if it cannot be read.",
		Flags:  onStack(jsonFlag, limitFlag),
		Action: action(s, runStackHistory),
	}
}

func runStackHistory(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	list, err := s.service.History(ctx, info.Stack, s.flags.Int("limit"))
	if err != nil {
		return err
	}
	for _, waiting := range info.Queued { // in the order in which they will run
		list = slices.Insert(list, 0, waiting)
	}
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	rows := [][]string{{"VERSION", "KIND", "STATUS", "STATE", "STARTED", "CHANGES", "BY", "MESSAGE"}}
	for _, u := range list {
		if u.Status == deployments.StatusDamaged {
			s.note("error: update " + u.Update.Version + " cannot be shown: " + u.Error)
		}
		rows = append(rows, historyRow(u, info.Version))
	}
	return s.sayTable(rows)
}

// historyRow returns the row of an update in the history of a stack whose newest version is known. Of an update whose
// entry is damaged, only the version is known.
func historyRow(u deployments.UpdateInfo, newest int) []string {
	started := "-"
	if !u.Started.IsZero() {
		started = when(u.Started)
	}
	return []string{u.Update.Version, cmp.Or(string(u.Kind), "-"), u.Status, stateText(u, newest), started,
		changesText(u), u.Initiator, u.Message}
}

// stateText describes the state that an update left: newest (or damaged) if it is the stack's current one, kept if it
// can be restored, else "-".
func stateText(u deployments.UpdateInfo, newest int) string {
	switch {
	case u.Update.Number() == newest && u.Kept:
		return "newest"
	case u.Update.Number() == newest:
		return "damaged"
	case u.Kept:
		return "kept"
	}
	return "-"
}

// changesText lists what an update changed: "create 2, delete 1".
func changesText(u deployments.UpdateInfo) string {
	var parts []string
	for _, op := range sorted(u.Changes) {
		if n := u.Changes[op]; n > 0 && op != "same" {
			parts = append(parts, fmt.Sprintf("%s %d", op, n))
		}
	}
	return strings.Join(parts, ", ")
}
