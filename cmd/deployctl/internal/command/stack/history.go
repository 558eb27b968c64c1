package stack

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// historyCommand returns deployctl history.
func historyCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "history", Aliases: []string{"hist"}, Usage: "list the stack's updates, latest first",
		Description: "A waiting update has the STATUS queued. STATE is newest for the stack's current state, kept if " +
			"deployctl stack restore " +
			"can bring it back, and damaged if it cannot be read.",
		Flags: console.OnStack(console.JSONFlag, console.LimitFlag,
			&cli.IntFlag{Name: "page", Usage: "list page `N`, counted from 1; --page-size updates are a page"},
			&cli.IntFlag{Name: "page-size", Usage: "list `N` updates a page", Value: 10}),
		Action: console.Action(s, runHistory),
	}
}

func runHistory(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	list, err := history(ctx, s, info)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"VERSION", "KIND", "STATUS", "STATE", "STARTED", "CHANGES", "BY", "MESSAGE"}}
	for _, u := range list {
		if u.Status == deployments.StatusDamaged {
			s.Note("error: update " + u.Update.Version + " cannot be shown: " + u.Error)
		}
		rows = append(rows, historyRow(u, info.Version))
	}
	return s.SayTable(rows)
}

// history returns the updates that --limit or --page and --page-size select. Waiting ones, in the order in which they
// will run, come before all others.
func history(ctx context.Context, s *console.Session, info deployments.StackInfo) ([]deployments.UpdateInfo, error) {
	page, size := 1, s.Flags.Int("limit")
	if s.Flags.IsSet("page") || s.Flags.IsSet("page-size") {
		page, size = max(1, s.Flags.Int("page")), s.Flags.Int("page-size")
		if s.Flags.IsSet("limit") || s.Flags.Int("page") < 0 || size < 1 || page > math.MaxInt32/size {
			return nil, deployments.Errorf(deployments.CodeInvalid, "--page and --page-size take numbers from 1 on, and "+
				"exclude --limit")
		}
	}
	list, err := s.Service.History(ctx, info.Stack, page*size)
	if err != nil {
		return nil, err
	}
	for _, waiting := range info.Queued {
		list = slices.Insert(list, 0, waiting)
	}
	if size == 0 {
		return list, nil
	}
	return list[min(len(list), (page-1)*size):min(len(list), page*size)], nil
}

// historyRow returns the row of an update in the history of a stack whose newest version is known. Of an update whose
// entry is damaged, only the version is known.
func historyRow(u deployments.UpdateInfo, newest int) []string {
	started := "-"
	if !u.Started.IsZero() {
		started = console.When(u.Started)
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
	for _, op := range console.Sorted(u.Changes) {
		if n := u.Changes[op]; n > 0 && op != "same" {
			parts = append(parts, fmt.Sprintf("%s %d", op, n))
		}
	}
	return strings.Join(parts, ", ")
}
