package command

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/urfave/cli/v2"
)

func scheduleNewCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "new", Usage: "create a schedule of drift checks, updates, refreshes or destroys", ArgsUsage: "KIND",
		Description: "KIND is drift, update, preview, refresh or destroy. A run has the program, " +
			"configuration and environment of the stack's last up; of an update or a preview, of the last successful one.",
		Flags: onStack(append(selectionFlags(), excludeProtectedFlag, runProgramFlag, continueOnErrorFlag,
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
		Action: action(s, runScheduleNew),
	}
}

func runScheduleNew(ctx context.Context, s *session) error {
	kind := s.flags.Args().First()
	sched := deployments.Schedule{
		Kind: deployments.ScheduleKind(kind), Cron: s.flags.String("cron"), Remediate: s.flags.Bool("remediate"),
		RemoveStack: s.flags.Bool("remove-stack"), Paused: s.flags.Bool("paused"), Initiator: initiator(),
		Name: deployments.ScheduleName{Name: s.flags.String("name")},
		Options: deployments.ScheduleOptions{
			TargetDependents: s.flags.Bool("target-dependents"), ExcludeDependents: s.flags.Bool("exclude-dependents"),
			ExcludeProtected: s.flags.Bool("exclude-protected"), RunProgram: s.flags.Bool("run-program"),
			ContinueOnError: s.flags.Bool("continue-on-error"),
		},
	}
	if sched.Name.Name == "" {
		sched.Name.Name = kind
	}
	if err := s.times(&sched); err != nil {
		return err
	}
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	sched.Name.StackName = info.Stack
	named, err := s.namedResources(ctx, info)
	if err != nil {
		return err
	}
	sched.Options.Targets, sched.Options.Excludes = named["target"], named["exclude"]
	if err := cmp.Or(sched.Validate(), s.schedulable(info.Stack)); err != nil {
		return err
	}
	if err := s.service.CreateSchedule(ctx, sched); err != nil {
		return err
	}
	s.say("Created schedule %s of %s: %s, %s.", sched.Name.Name, info.Stack, kindText(sched), whenText(sched))
	if sched.Paused {
		s.say("  deployctl schedule resume %s   starts it", sched.Name.Name)
	}
	return nil
}

// schedulable refuses a stack whose configuration file says that its secrets are under a passphrase: of one that was
// never updated, the service does not know that.
func (s *session) schedulable(name deployments.StackName) error {
	if s.project == nil {
		return nil
	}
	secrets, err := s.secrets(name)
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
func (s *session) times(sched *deployments.Schedule) (err error) {
	if text := s.flags.String("every"); text != "" {
		if sched.Every, err = duration("every", text); err != nil {
			return err
		}
	}
	at, in := s.flags.String("at"), s.flags.String("in")
	switch {
	case at != "" && in != "":
		return deployments.Errorf(deployments.CodeInvalid, "--at and --in exclude each other; pass one of them")
	case at != "":
		sched.At, err = moment(at)
	case in != "":
		var d time.Duration
		d, err = duration("in", in)
		sched.At = time.Now().Add(d).Truncate(time.Second)
	}
	return err
}

// duration parses a duration, which may have days, such as 7d or 1d12h.
func duration(flag, text string) (time.Duration, error) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		days, rest = "0", text
	}
	n, err := strconv.Atoi(days)
	var d time.Duration
	if err == nil && rest != "" {
		d, err = time.ParseDuration(rest)
	}
	d += time.Duration(n) * 24 * time.Hour
	if err != nil || d <= 0 {
		return 0, deployments.Errorf(deployments.CodeInvalid, "--%s takes a duration such as 30m, 12h or 7d, not %q",
			flag, text)
	}
	return d, nil
}

// moment parses a time.
func moment(text string) (time.Time, error) { return momentOf("at", text) }

// momentOf parses the point in time of a flag.
func momentOf(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, deployments.Errorf(deployments.CodeInvalid, "--%s takes a time such as 2006-01-02T15:04:05Z or "+
			"\"2006-01-02 15:04\", not %q", flag, text)
	}
	return at, nil
}
