package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"
)

// Command returns deployctl schedule.
func Command(s *console.Env) *cli.Command {
	about := func(name, usage string, run func(context.Context, *console.Session) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, ArgsUsage: "NAME", Flags: console.OnStack(flags...),
			Action: console.Action(s, run)}
	}
	return &cli.Command{
		Name: "schedule", Usage: "run drift checks, updates, refreshes and destroys on a schedule",
		Subcommands: []*cli.Command{
			newCommand(s),
			{Name: "ls", Usage: "list the stack's schedules",
				Flags: console.OnStack(console.JSONFlag, &cli.BoolFlag{Name: "all",
					Aliases: []string{"a"}, Usage: "list those of every stack that you may see, without a project"}),
				Action: console.Action(s, runLs)},
			about("show", "show a schedule, and why it is paused", runShow, console.JSONFlag),
			about("runs", "list a schedule's runs, latest first", runRuns, console.JSONFlag, console.LimitFlag),
			about("run", "run a schedule now, even if it is paused", runRun),
			about("pause", "pause a schedule", runPause),
			about("resume", "resume a paused schedule", runResume),
			about("rm", "remove a schedule", runRm),
		},
	}
}

// schedule returns the name of the command's schedule.
func schedule(ctx context.Context, s *console.Session) (deployments.ScheduleName, error) {
	info, err := s.KnownStack(ctx)
	return deployments.ScheduleName{StackName: info.Stack, Name: s.Flags.Args().First()}, err
}

func runLs(ctx context.Context, s *console.Session) error {
	all := s.Flags.Bool("all")
	list, err := schedules(ctx, s, all)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	called := func(n deployments.ScheduleName) string {
		if all {
			return n.String()
		}
		return n.Name
	}
	rows := [][]string{{"NAME", "KIND", "WHEN", "NEXT", "LAST", "ENDED"}}
	for _, sched := range list {
		rows = append(rows, append([]string{called(sched.Name)}, scheduleRow(sched)...))
	}
	if err := s.SayTable(rows); err != nil {
		return err
	}
	for _, sched := range list {
		if sched.Note != "" {
			s.Say("%s: %s", called(sched.Name), sched.Note)
		}
	}
	return nil
}

// schedules returns the schedules of the command's stack, or all that the caller may see.
func schedules(ctx context.Context, s *console.Session, all bool) ([]deployments.Schedule, error) {
	if !all {
		info, err := s.KnownStack(ctx)
		if err != nil {
			return nil, err
		}
		return s.Service.Schedules(ctx, info.Stack)
	}
	if s.Flags.IsSet(console.StackFlag.Name) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "--all lists the schedules of every stack: leave --%s out",
			console.StackFlag.Name)
	}
	if err := s.Dial(ctx); err != nil {
		return nil, err
	}
	stacks, err := s.Service.ListStacks(ctx, "", "")
	if err != nil {
		return nil, err
	}
	ofStacks := make([][]deployments.Schedule, len(stacks))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(schedulesAtOnce)
	for i, info := range stacks {
		if info.Damaged != "" {
			s.Note("error: the stack " + info.Stack.String() + " cannot be read: " + info.Damaged)
			continue
		}
		asking.Go(func() (err error) {
			ofStacks[i], err = s.Service.Schedules(ctx, info.Stack)
			if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
				err = nil // it was removed meanwhile
			}
			return err
		})
	}
	err = asking.Wait()
	return slices.Concat(ofStacks...), err
}

// schedulesAtOnce is of how many stacks the schedules are asked for at a time.
const schedulesAtOnce = 4

func scheduleRow(sched deployments.Schedule) []string {
	last, ended := "never", ""
	if sched.Last != nil {
		last, ended = console.When(sched.Last.Started), sched.Last.Status
	}
	return []string{kindText(sched), whenText(sched), nextText(sched), last, ended}
}

// kindText describes what a schedule does.
func kindText(sched deployments.Schedule) string {
	text := string(sched.Kind)
	if sched.Remediate {
		text += ", remediate"
	}
	if sched.RemoveStack {
		text += ", remove the stack"
	}
	return text
}

// whenText describes when a schedule runs.
func whenText(sched deployments.Schedule) string {
	if sched.At.IsZero() {
		return sched.When()
	}
	return "once, at " + console.When(sched.At)
}

func nextText(sched deployments.Schedule) string {
	if sched.Paused {
		return "paused"
	}
	return console.When(sched.Next)
}

func runShow(ctx context.Context, s *console.Session) error {
	name, err := schedule(ctx, s)
	if err != nil {
		return err
	}
	sched, err := s.Service.Schedule(ctx, name)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(sched)
	}
	s.Say("%s of %s", sched.Name.Name, sched.Name.StackName)
	s.Say("  %s, %s", kindText(sched), whenText(sched))
	s.Say("  created by %s at %s", sched.Initiator, console.When(sched.Created))
	switch {
	case sched.Paused:
		s.Say("  %s\n  deployctl schedule resume %s   resumes it", sched.Note, name.Name)
	case sched.Note != "":
		s.Say("  %s", sched.Note)
	default:
		s.Say("  next run: %s", console.When(sched.Next))
	}
	if sched.Last != nil {
		s.Say("  last run: %s, %s", console.When(sched.Last.Started), runText(*sched.Last))
	}
	return nil
}

// runText describes the result of a run.
func runText(run deployments.ScheduleRun) string {
	text := run.Status
	if run.Drifted > 0 {
		text += fmt.Sprintf(", %d drifted", run.Drifted)
	}
	if run.Error != "" {
		text += ": " + run.Error
	}
	return text
}

func runRuns(ctx context.Context, s *console.Session) error {
	name, err := schedule(ctx, s)
	if err != nil {
		return err
	}
	list, err := s.Service.ScheduleRuns(ctx, name, s.Flags.Int("limit"))
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"STARTED", "ENDED", "UPDATES", "STATUS"}}
	for _, run := range list {
		var updates []string
		for _, u := range run.Updates {
			if u.Number() == 0 { // of a preview, which has no number
				updates = append(updates, "preview")
				continue
			}
			updates = append(updates, u.Version)
		}
		ended := "-" // it runs
		if !run.Ended.IsZero() {
			ended = console.When(run.Ended)
		}
		rows = append(rows, []string{console.When(run.Started), ended, strings.Join(updates, ", "), runText(run)})
	}
	return s.SayTable(rows)
}

func runRun(ctx context.Context, s *console.Session) error {
	name, err := schedule(ctx, s)
	if err != nil {
		return err
	}
	if err := s.Service.RunSchedule(ctx, name); err != nil {
		return err
	}
	of := ""
	if s.Flags.IsSet("stack") {
		of = " --stack " + s.Flags.String("stack")
	}
	s.Say("%s runs now.\n  deployctl schedule runs %s%s   shows how it ends", name.Name, name.Name, of)
	return nil
}

func runPause(ctx context.Context, s *console.Session) error {
	name, err := schedule(ctx, s)
	if err != nil {
		return err
	}
	if err := s.Service.PauseSchedule(ctx, name, true, console.Initiator()); err != nil {
		return err
	}
	s.Say("%s is paused.\n  deployctl schedule resume %s   resumes it", name.Name, name.Name)
	return nil
}

func runResume(ctx context.Context, s *console.Session) error {
	name, err := schedule(ctx, s)
	if err != nil {
		return err
	}
	if err := s.Service.PauseSchedule(ctx, name, false, console.Initiator()); err != nil {
		return err
	}
	s.Say("%s is resumed.", name.Name)
	return nil
}

func runRm(ctx context.Context, s *console.Session) error {
	name, err := schedule(ctx, s)
	if err != nil {
		return err
	}
	if err := s.Service.RemoveSchedule(ctx, name); err != nil {
		return err
	}
	s.Say("Removed schedule %s of %s.", name.Name, name.StackName)
	return nil
}
