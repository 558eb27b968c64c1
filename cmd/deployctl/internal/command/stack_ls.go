package command

import (
	"context"
	"fmt"

	"github.com/deployctl/deployctl/internal/settings"
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

// driftsAtMost is the number of stacks for which a list shows whether they have drifted: each costs a call to the
// service.
const driftsAtMost = 50

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
	list, err := s.service.ListStacks(ctx, s.settings.Get(settings.Organization), projectName)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	rows := [][]string{{"NAME", "VERSION", "UPDATED", "RESOURCES", "DRIFTED", "RUNNING"}}
	for i, info := range list {
		name, running, drifted := info.Stack.Stack, "", ""
		if i < driftsAtMost {
			if n := s.driftOf(ctx, info); n > 0 {
				drifted = fmt.Sprint(n)
			}
		}
		if projectName == "" {
			name = info.Stack.String()
		}
		if info.Stack.String() == selected {
			name += "*"
		}
		if info.Active != nil {
			running = string(info.Active.Kind)
		}
		if info.Damaged != "" {
			rows = append(rows, []string{name, "-", "-", "-", "-", "damaged"})
			s.note("error: the stack " + info.Stack.String() + " cannot be read: " + info.Damaged)
			continue
		}
		rows = append(rows, []string{name, fmt.Sprint(info.Version), when(info.Updated), fmt.Sprint(info.Resources),
			drifted, running})
	}
	return s.sayTable(rows)
}
