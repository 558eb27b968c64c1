package schedule

import (
	"cmp"
	"context"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/urfave/cli/v2"
)

// newCommand returns deployctl new.
func newCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "new", Usage: "create a schedule of drift checks, updates, refreshes or destroys", ArgsUsage: "KIND",
		Description: "KIND is drift, update, preview, refresh or destroy. A run has the program, " +
			"configuration and environment of the stack's last up; of an update or a preview, of the last successful one.",
		Flags: console.OnStack(append(console.SelectionFlags(), console.ExcludeProtectedFlag, console.RunProgramFlag,
			console.ContinueOnErrorFlag,
			&cli.StringFlag{Name: "every", Usage: "run every `DURATION`, such as 30m, 12h or 7d"},
			&cli.StringFlag{Name: "cron", Usage: "run at the times of this cron `EXPRESSION`: five fields, in UTC " +
				"unless it begins with CRON_TZ=ZONE"},
			&cli.StringFlag{Name: "at", Usage: "run once at `TIME`: 2006-01-02T15:04:05Z, or 2006-01-02 15:04 in " +
				"local time"},
			&cli.StringFlag{Name: "in", Usage: "run once after `DURATION`; with destroy, this is the stack's time to " +
				"live"},
			&cli.BoolFlag{Name: "remediate", Usage: "repair the drift that a check finds with an update"},
			&cli.BoolFlag{Name: "remove-stack", Usage: "remove the stack once a destroy has deleted its resources"},
			&cli.BoolFlag{Name: "paused", Usage: "create it paused"},
			&cli.StringFlag{Name: "name", Usage: "`NAME` of the schedule; not set: KIND"})...),
		Action: console.Action(s, runNew),
	}
}

func runNew(ctx context.Context, s *console.Session) error {
	kind := s.Flags.Args().First()
	sched := deployments.Schedule{
		Kind: deployments.ScheduleKind(kind), Cron: s.Flags.String("cron"), Remediate: s.Flags.Bool("remediate"),
		RemoveStack: s.Flags.Bool("remove-stack"), Paused: s.Flags.Bool("paused"), Initiator: console.Initiator(),
		Name: deployments.ScheduleName{Name: s.Flags.String("name")},
		Options: deployments.ScheduleOptions{
			TargetDependents: s.Flags.Bool("target-dependents"), ExcludeDependents: s.Flags.Bool("exclude-dependents"),
			ExcludeProtected: s.Flags.Bool("exclude-protected"), RunProgram: s.Flags.Bool("run-program"),
			ContinueOnError: s.Flags.Bool("continue-on-error"),
		},
	}
	if sched.Name.Name == "" {
		sched.Name.Name = kind
	}
	if err := times(s, &sched); err != nil {
		return err
	}
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	sched.Name.StackName = info.Stack
	named, err := s.NamedResources(ctx, info)
	if err != nil {
		return err
	}
	sched.Options.Targets, sched.Options.Excludes = named["target"], named["exclude"]
	if err := cmp.Or(sched.Validate(), schedulable(s, info.Stack)); err != nil {
		return err
	}
	if err := s.Service.CreateSchedule(ctx, sched); err != nil {
		return err
	}
	s.Say("Created schedule %s of %s: %s, %s.", sched.Name.Name, info.Stack, kindText(sched), whenText(sched))
	if sched.Paused {
		s.Say("  deployctl schedule resume %s   starts it", sched.Name.Name)
	}
	return nil
}

// schedulable refuses a stack whose configuration file says that its secrets are under a passphrase: of one that was
// never updated, the service does not know that.
func schedulable(s *console.Session, name deployments.StackName) error {
	if s.Project == nil {
		return nil
	}
	secrets, err := s.Secrets(name)
	if err != nil {
		return err
	}
	found, err := secrets.Describe()
	if err == nil && found.Type == project.SecretsPassphrase {
		err = deployments.Errorf(deployments.CodeInvalid, "the secrets of %s are under a passphrase, which the service does "+
			"not have: what runs by schedule needs a stack with the service's own secrets provider (deployctl stack "+
			"change-secrets-provider default)", name)
	}
	return err
}

// times reads --every, --at and --in.
func times(s *console.Session, sched *deployments.Schedule) (err error) {
	if text := s.Flags.String("every"); text != "" {
		if sched.Every, err = console.Duration("every", text); err != nil {
			return err
		}
	}
	at, in := s.Flags.String("at"), s.Flags.String("in")
	switch {
	case at != "" && in != "":
		return deployments.Errorf(deployments.CodeInvalid, "--at and --in exclude each other; pass one of them")
	case at != "":
		sched.At, err = console.Moment("at", at)
	case in != "":
		var d time.Duration
		d, err = console.Duration("in", in)
		sched.At = time.Now().Add(d).Truncate(time.Second)
	}
	return err
}
