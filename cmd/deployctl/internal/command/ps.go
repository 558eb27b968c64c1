package command

import (
	"context"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func psCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "ps", Usage: "list the updates that run or wait, of all stacks that you may see",
		Description: "Those of a stack are in the order in which they run. SINCE is when an update began, or was asked " +
			"for. Previews of the stock CLI are not listed. With --organization, only the stacks of that organization.",
		Flags:  common(jsonFlag, watchFlag("print the list again whenever it changes, until Ctrl-C")),
		Action: action(s, runPs),
	}
}

// psEvery is the pause between two looks of --watch.
const psEvery = 2 * time.Second

func runPs(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.noteMode(ctx)
	return watch(ctx, s, psEvery, func(ctx context.Context) ([]deployments.UpdateInfo, error) {
		return s.service.Ongoing(ctx, s.onlyOrganization())
	}, s.sayOngoing)
}

// sayOngoing prints updates that run or wait.
func (s *session) sayOngoing(list []deployments.UpdateInfo) error {
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	rows := [][]string{{"UPDATE", "KIND", "STATE", "SINCE", "BY", "REASON"}}
	for _, u := range list {
		reason := u.Error
		switch {
		case u.Cancelling && reason == "":
			reason = "is being cancelled"
		case len(u.Waiting) > 0:
			reason = "waits for `deployctl resolve` of " + strings.Join(u.Waiting, ", ")
		}
		rows = append(rows, []string{u.Update.String(), u.Command(), u.Status, when(u.Started), u.Initiator, reason})
	}
	return s.sayTable(rows)
}
