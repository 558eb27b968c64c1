package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func stackHistoryCommand(s *Surroundings) *cli.Command {
	return &cli.Command{
		Name: "history", Aliases: []string{"hist"}, Usage: "list the stack's updates, the latest first",
		Flags:  onStack(jsonFlag, &cli.IntFlag{Name: "limit", Usage: "at most `N`", Value: 20}),
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
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	rows := [][]string{{"VERSION", "KIND", "STATUS", "STARTED", "CHANGES", "BY", "MESSAGE"}}
	for _, u := range list {
		rows = append(rows, []string{u.Update.Version, string(u.Kind), u.Status, when(u.Started), changesText(u), u.Initiator, u.Message})
	}
	return s.sayTable(rows)
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
