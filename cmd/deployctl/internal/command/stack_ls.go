package command

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

func stackLsCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "ls", Usage: "list the project's stacks",
		Flags: common(jsonFlag, &cli.BoolFlag{Name: "all", Aliases: []string{"a"},
			Usage: "list the stacks of every project"}),
		Action: action(s, runStackLs),
	}
}

func runStackLs(ctx context.Context, s *session) error {
	projectName, selected := "", ""
	if s.needProject() == nil {
		if !s.flags.Bool("all") {
			projectName = s.project.Name()
		}
		var err error
		if selected, err = s.selections().Selected(s.project); err != nil {
			return err
		}
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	all, err := s.statuses(ctx, deployments.StatusQuery{Organization: s.settings.Get(settings.Organization),
		Project: projectName})
	if err != nil {
		return err
	}
	if all.incomplete != "" {
		s.note("warning: " + all.incomplete)
	}
	if s.flags.Bool("json") {
		return s.sayJSON(all.stacks)
	}
	rows := [][]string{{"NAME", "VERSION", "UPDATED", "RESOURCES", "LAST", "DRIFTED", "RUNNING"}}
	for _, st := range all.stacks {
		name := st.Stack.Stack
		if projectName == "" {
			name = st.Stack.String()
		}
		if st.Stack.String() == selected {
			name += "*"
		}
		if st.Damaged != "" {
			rows = append(rows, []string{name, "-", "-", "-", "-", "-", "damaged"})
			s.note("error: the stack " + st.Stack.String() + " cannot be read: " + st.Damaged)
			continue
		}
		rows = append(rows, []string{name, fmt.Sprint(st.Version), when(st.Updated), fmt.Sprint(st.Resources),
			lastResult(st), driftText(st), runningText(st)})
	}
	return s.sayTable(rows)
}
