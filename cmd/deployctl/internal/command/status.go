package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

func statusCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "status", Usage: "show the health of all stacks that you may see",
		Description: "LAST is the result of the stack's last update, DRIFTED how many resources the last drift check has " +
			"found, unless the stack was updated since, NEXT when its next schedule runs, and NEEDS what a person has to " +
			"do. With --organization, only the stacks of that organization.",
		Flags: common(jsonFlag,
			watchFlag("look again every ten seconds, and print the list when it has changed, until Ctrl-C"),
			&cli.BoolFlag{Name: "problems", Usage: "show only stacks whose last update has not succeeded, that have " +
				"drifted, or that need a person"}),
		Action: action(s, runStatus),
	}
}

// statusEvery is the pause between two looks of --watch. Each costs several requests of the bucket for each stack.
const statusEvery = 10 * time.Second

func runStatus(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.noteMode(ctx)
	q := deployments.StatusQuery{Organization: s.onlyOrganization()}
	return watch(ctx, s, statusEvery, func(ctx context.Context) (found, error) { return s.statuses(ctx, q) },
		func(f found) error { return s.sayStatuses(f, s.flags.Bool("problems")) })
}

// onlyOrganization is the organization that the flag names; empty without it.
func (s *session) onlyOrganization() string {
	if s.flags.IsSet(settings.Organization.Flag()) {
		return s.settings.Get(settings.Organization)
	}
	return ""
}

// found are all stacks of a query, and why schedules and waits are not known.
type found struct {
	stacks     []deployments.StackStatus
	incomplete string
}

// statuses reads all pages.
func (s *session) statuses(ctx context.Context, q deployments.StatusQuery) (all found, err error) {
	for {
		page, err := s.service.Statuses(ctx, deployments.Caller{}, q)
		if err != nil {
			return all, err
		}
		all.stacks = append(all.stacks, page.Stacks...)
		if page.Incomplete != "" {
			all.incomplete = page.Incomplete
		}
		if page.Next == "" {
			return all, nil
		}
		q.After = page.Next
	}
}

// sayStatuses prints stacks, or only those with problems.
func (s *session) sayStatuses(f found, problems bool) error {
	list := []deployments.StackStatus{}
	for _, st := range f.stacks {
		if !problems || !st.Healthy() {
			list = append(list, st)
		}
	}
	if f.incomplete != "" {
		s.note("warning: " + f.incomplete)
	}
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	rows := [][]string{{"STACK", "RESOURCES", "LAST", "ENDED", "RUNNING", "DRIFTED", "NEXT", "NEEDS"}}
	for _, st := range list {
		ended := ""
		if st.Last != nil {
			ended = when(st.Last.Ended)
		}
		rows = append(rows, []string{st.Stack.String(), fmt.Sprint(st.Resources), lastResult(st), ended, runningText(st),
			driftText(st), nextRun(st), strings.Join(st.Needs(), "; ")})
	}
	return s.sayTable(rows)
}

// lastResult says what became of a stack's last update.
func lastResult(st deployments.StackStatus) string {
	if st.Last == nil {
		return "never"
	}
	return strings.TrimSpace(st.Last.Command() + " " + st.Last.Status)
}

func runningText(st deployments.StackStatus) string {
	if st.Active == nil {
		return ""
	}
	if st.Active.Cancelling {
		return st.Active.Command() + ", being cancelled"
	}
	return st.Active.Command()
}

func driftText(st deployments.StackStatus) string {
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
	return when(next)
}
