package status

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// Command returns deployctl status.
func Command(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show the health of all stacks that you may see",
		Description: "LAST is the result of the stack's last update, DRIFTED how many resources the last drift check has " +
			"found, unless the stack was updated since, NEXT when its next schedule runs, and NEEDS what a person has to " +
			"do. With --organization, only the stacks of that organization.",
		Flags: console.Common(console.JSONFlag,
			watchFlag("look again every ten seconds, and print the list when it has changed, until Ctrl-C"),
			&cli.BoolFlag{Name: "problems", Usage: "show only stacks whose last update has not succeeded, that have " +
				"drifted, or that need a person"}),
		Action: console.Action(s, runStatus),
	}
}

// statusEvery is the pause between two looks of --watch. Each costs several requests of the bucket for each stack.
const statusEvery = 10 * time.Second

func runStatus(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	noteMode(ctx, s)
	q := deployments.StatusQuery{Organization: onlyOrganization(s)}
	return watch(ctx, s, statusEvery, func(ctx context.Context) (found, error) { return Statuses(ctx, s, q) },
		func(f found) error { return sayStatuses(s, f, s.Flags.Bool("problems")) })
}

// onlyOrganization is the organization that the flag names; empty without it.
func onlyOrganization(s *console.Session) string {
	if s.Flags.IsSet(settings.Organization.Flag()) {
		return s.Settings.Get(settings.Organization)
	}
	return ""
}

// found are all stacks of a query, and why schedules and waits are not known.
type found struct {
	Stacks     []deployments.StackStatus
	Incomplete string
}

// Statuses reads all pages.
func Statuses(ctx context.Context, s *console.Session, q deployments.StatusQuery) (all found, err error) {
	for {
		page, err := s.Service.Statuses(ctx, deployments.Caller{}, q)
		if err != nil {
			return all, err
		}
		all.Stacks = append(all.Stacks, page.Stacks...)
		if page.Incomplete != "" {
			all.Incomplete = page.Incomplete
		}
		if page.Next == "" {
			return all, nil
		}
		q.After = page.Next
	}
}

// sayStatuses prints stacks, or only those with problems.
func sayStatuses(s *console.Session, f found, problems bool) error {
	list := []deployments.StackStatus{}
	for _, st := range f.Stacks {
		if !problems || !st.Healthy() {
			list = append(list, st)
		}
	}
	if f.Incomplete != "" {
		s.Note("warning: " + f.Incomplete)
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"STACK", "RESOURCES", "LAST", "ENDED", "RUNNING", "DRIFTED", "NEXT", "NEEDS"}}
	for _, st := range list {
		ended := ""
		if st.Last != nil {
			ended = console.When(st.Last.Ended)
		}
		rows = append(rows, []string{st.Stack.String(), fmt.Sprint(st.Resources), LastResult(st), ended, RunningText(st),
			DriftText(st), nextRun(st), strings.Join(st.Needs(), "; ")})
	}
	return s.SayTable(rows)
}

// LastResult says what became of a stack's last update.
func LastResult(st deployments.StackStatus) string {
	if st.Last == nil {
		return "never"
	}
	return strings.TrimSpace(st.Last.Command() + " " + st.Last.Status)
}

// RunningText names the command that is changing a stack; "" if none is.
func RunningText(st deployments.StackStatus) string {
	if st.Active == nil {
		return ""
	}
	if st.Active.Cancelling {
		return st.Active.Command() + ", being cancelled"
	}
	return st.Active.Command()
}

// DriftText is how many resources have drifted; "" if none is known to have.
func DriftText(st deployments.StackStatus) string {
	if n := st.Drifted(); n > 0 {
		return fmt.Sprint(n)
	}
	return ""
}

// nextRun is when the first of a stack's schedules runs.
func nextRun(st deployments.StackStatus) string {
	var next time.Time
	for _, sched := range st.Schedules {
		if !sched.Next.IsZero() && (next.IsZero() || sched.Next.Before(next)) {
			next = sched.Next
		}
	}
	if next.IsZero() {
		return ""
	}
	return console.When(next)
}
