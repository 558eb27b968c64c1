package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"
)

func scheduleCommand(s *Env) *cli.Command {
	about := func(name, usage string, run func(context.Context, *session) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{Name: name, Usage: usage, ArgsUsage: "NAME", Flags: onStack(flags...),
			Action: action(s, run)}
	}
	return &cli.Command{
		Name: "schedule", Usage: "run drift checks, updates, refreshes and destroys on a schedule",
		Subcommands: []*cli.Command{
			scheduleNewCommand(s),
			{Name: "ls", Usage: "list the stack's schedules", Flags: onStack(jsonFlag, &cli.BoolFlag{Name: "all",
				Aliases: []string{"a"}, Usage: "list those of every stack that you may see, without a project"}),
				Action: action(s, runScheduleLs)},
			about("show", "show a schedule, and why it is paused", runScheduleShow, jsonFlag),
			about("runs", "list a schedule's runs, latest first", runScheduleRuns, jsonFlag, limitFlag),
			about("run", "run a schedule now, even if it is paused", runScheduleRun),
			about("pause", "pause a schedule", runSchedulePause),
			about("resume", "resume a paused schedule", runScheduleResume),
			about("rm", "remove a schedule", runScheduleRm),
		},
	}
}

// schedule returns the name of the command's schedule.
func (s *session) schedule(ctx context.Context) (deployments.ScheduleName, error) {
	info, err := s.knownStack(ctx)
	return deployments.ScheduleName{StackName: info.Stack, Name: s.flags.Args().First()}, err
}

func runScheduleLs(ctx context.Context, s *session) error {
	all := s.flags.Bool("all")
	list, err := s.schedules(ctx, all)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(list)
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
	if err := s.sayTable(rows); err != nil {
		return err
	}
	for _, sched := range list {
		if sched.Note != "" {
			s.say("%s: %s", called(sched.Name), sched.Note)
		}
	}
	return nil
}

// schedules returns the schedules of the command's stack, or all that the caller may see.
func (s *session) schedules(ctx context.Context, all bool) ([]deployments.Schedule, error) {
	if !all {
		info, err := s.knownStack(ctx)
		if err != nil {
			return nil, err
		}
		return s.service.Schedules(ctx, info.Stack)
	}
	if s.flags.IsSet(stackFlag.Name) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "--all lists the schedules of every stack: leave --%s out",
			stackFlag.Name)
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	stacks, err := s.service.ListStacks(ctx, "", "")
	if err != nil {
		return nil, err
	}
	ofStacks := make([][]deployments.Schedule, len(stacks))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(schedulesAtOnce)
	for i, info := range stacks {
		if info.Damaged != "" {
			s.note("error: the stack " + info.Stack.String() + " cannot be read: " + info.Damaged)
			continue
		}
		asking.Go(func() (err error) {
			ofStacks[i], err = s.service.Schedules(ctx, info.Stack)
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
		last, ended = when(sched.Last.Started), sched.Last.Status
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
	return "once, at " + when(sched.At)
}

func nextText(sched deployments.Schedule) string {
	if sched.Paused {
		return "paused"
	}
	return when(sched.Next)
}

func runScheduleShow(ctx context.Context, s *session) error {
	name, err := s.schedule(ctx)
	if err != nil {
		return err
	}
	sched, err := s.service.Schedule(ctx, name)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(sched)
	}
	s.say("%s of %s", sched.Name.Name, sched.Name.StackName)
	s.say("  %s, %s", kindText(sched), whenText(sched))
	s.say("  created by %s at %s", sched.Initiator, when(sched.Created))
	if sched.Paused {
		s.say("  %s\n  deployctl schedule resume %s   resumes it", sched.Note, name.Name)
	} else {
		s.say("  next run: %s", when(sched.Next))
	}
	if sched.Last != nil {
		s.say("  last run: %s, %s", when(sched.Last.Started), runText(*sched.Last))
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

func runScheduleRuns(ctx context.Context, s *session) error {
	name, err := s.schedule(ctx)
	if err != nil {
		return err
	}
	list, err := s.service.ScheduleRuns(ctx, name, s.flags.Int("limit"))
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(list)
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
		rows = append(rows, []string{when(run.Started), when(run.Ended), strings.Join(updates, ", "), runText(run)})
	}
	return s.sayTable(rows)
}

func runScheduleRun(ctx context.Context, s *session) error {
	name, err := s.schedule(ctx)
	if err != nil {
		return err
	}
	if err := s.service.RunSchedule(ctx, name); err != nil {
		return err
	}
	of := ""
	if s.flags.IsSet("stack") {
		of = " --stack " + s.flags.String("stack")
	}
	s.say("%s runs now.\n  deployctl schedule runs %s%s   shows how it ends", name.Name, name.Name, of)
	return nil
}

func runSchedulePause(ctx context.Context, s *session) error {
	name, err := s.schedule(ctx)
	if err != nil {
		return err
	}
	if err := s.service.PauseSchedule(ctx, name, true, initiator()); err != nil {
		return err
	}
	s.say("%s is paused.\n  deployctl schedule resume %s   resumes it", name.Name, name.Name)
	return nil
}

func runScheduleResume(ctx context.Context, s *session) error {
	name, err := s.schedule(ctx)
	if err != nil {
		return err
	}
	if err := s.service.PauseSchedule(ctx, name, false, initiator()); err != nil {
		return err
	}
	s.say("%s is resumed.", name.Name)
	return nil
}

func runScheduleRm(ctx context.Context, s *session) error {
	name, err := s.schedule(ctx)
	if err != nil {
		return err
	}
	if err := s.service.RemoveSchedule(ctx, name); err != nil {
		return err
	}
	s.say("Removed schedule %s of %s.", name.Name, name.StackName)
	return nil
}
