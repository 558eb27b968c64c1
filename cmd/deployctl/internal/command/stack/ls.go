package stack

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/status"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// lsCommand returns deployctl ls.
func lsCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "ls", Usage: "list the project's stacks",
		Flags: console.Common(console.JSONFlag, &cli.BoolFlag{Name: "all", Aliases: []string{"a"},
			Usage: "list the stacks of every project"}),
		Action: console.Action(s, runLs),
	}
}

func runLs(ctx context.Context, s *console.Session) error {
	projectName, selected := "", ""
	if s.NeedProject() == nil {
		if !s.Flags.Bool("all") {
			projectName = s.Project.Name()
		}
		var err error
		if selected, err = s.Selections().Selected(s.Project); err != nil {
			return err
		}
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	all, err := status.Statuses(ctx, s, deployments.StatusQuery{Organization: s.Settings.Get(settings.Organization),
		Project: projectName})
	if err != nil {
		return err
	}
	if all.Incomplete != "" {
		s.Note("warning: " + all.Incomplete)
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(all.Stacks)
	}
	rows := [][]string{{"NAME", "VERSION", "UPDATED", "RESOURCES", "LAST", "DRIFTED", "RUNNING"}}
	for _, st := range all.Stacks {
		name := st.Stack.Stack
		if projectName == "" {
			name = st.Stack.String()
		}
		if st.Stack.String() == selected {
			name += "*"
		}
		if st.Damaged != "" {
			rows = append(rows, []string{name, "-", "-", "-", "-", "-", "damaged"})
			s.Note("error: the stack " + st.Stack.String() + " cannot be read: " + st.Damaged)
			continue
		}
		rows = append(rows, []string{name, fmt.Sprint(st.Version), console.When(st.Updated), fmt.Sprint(st.Resources),
			status.LastResult(st), status.DriftText(st), status.RunningText(st)})
	}
	return s.SayTable(rows)
}
