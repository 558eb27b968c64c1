package status

import (
	"context"
	"strings"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// PsCommand returns deployctl ps.
func PsCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "ps", Usage: "list the updates that run or wait, of all stacks that you may see",
		Description: "Those of a stack are in the order in which they run. SINCE is when an update began, or was asked " +
			"for. Previews of the stock CLI are not listed. With --organization, only the stacks of that organization.",
		Flags:  console.Common(console.JSONFlag, watchFlag("print the list again whenever it changes, until Ctrl-C")),
		Action: console.Action(s, runPs),
	}
}

// psEvery is the pause between two looks of --watch.
const psEvery = 2 * time.Second

func runPs(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	noteMode(ctx, s)
	return watch(ctx, s, psEvery, func(ctx context.Context) ([]deployments.UpdateInfo, error) {
		return s.Service.Ongoing(ctx, onlyOrganization(s))
	}, func(list []deployments.UpdateInfo) error { return sayOngoing(s, list) })
}

// sayOngoing prints updates that run or wait.
func sayOngoing(s *console.Session, list []deployments.UpdateInfo) error {
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
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
		rows = append(rows, []string{u.Update.String(), u.Command(), u.Status, console.When(u.Started), u.Initiator, reason})
	}
	return s.SayTable(rows)
}
