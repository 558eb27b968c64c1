package status

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// MaintenanceCommand returns deployctl maintenance.
func MaintenanceCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "maintenance", Usage: "stop a service from beginning anything new, or from changing anything",
		Description: "Only admins of all organizations can set it. What has begun ends in any case.",
		Subcommands: []*cli.Command{
			{
				Name: "on", Usage: "begin maintenance, or change it",
				Description: "From now on no update, preview, deployment or run of a schedule begins. Clients are told the " +
					"reason and until when; what waits in queues and by schedule begins afterwards. All processes of the " +
					"service know it within five seconds.",
				Flags: console.Common(
					&cli.StringFlag{Name: "reason", Usage: "`TEXT` for those who are refused meanwhile"},
					&cli.StringFlag{Name: "until", Usage: "it ends by itself at `TIME`: 2006-01-02T15:04:05Z, or " +
						"2006-01-02 15:04 in local time"},
					&cli.StringFlag{Name: "for", Usage: "it ends by itself after `DURATION`, such as 90m or 2h"},
					&cli.BoolFlag{Name: "read-only", Usage: "refuse also whatever else clients change: stacks, states, " +
						"schedules, tokens"}),
				Action: console.Action(s, runMaintenanceOn),
			},
			{Name: "off", Usage: "end maintenance before its time", Flags: console.Common(),
				Action: console.Action(s, runMaintenanceOff)},
			{Name: "status", Usage: "show whether the service is in maintenance, why and until when",
				Flags: console.Common(console.JSONFlag), Action: console.Action(s, runMaintenanceStatus)},
		},
	}
}

func runMaintenanceOn(ctx context.Context, s *console.Session) error {
	m := deployments.Mode{Kind: deployments.ModeMaintenance, Reason: s.Flags.String("reason")}
	if s.Flags.Bool("read-only") {
		m.Kind = deployments.ModeReadOnly
	}
	until, d := s.Flags.String("until"), s.Flags.String("for")
	var err error
	switch {
	case (until == "") == (d == ""):
		err = deployments.Errorf(deployments.CodeInvalid, "say when it ends by itself: with --until TIME or with --for "+
			"DURATION; `deployctl maintenance off` ends it earlier")
	case until != "":
		m.Until, err = console.Moment("until", until)
	default:
		var lasts time.Duration
		lasts, err = console.Duration("for", d)
		m.Until = time.Now().Add(lasts).Truncate(time.Second)
	}
	if err != nil {
		return err
	}
	if err := m.Validate(time.Now()); err != nil {
		return err
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	if err := s.Service.SetMode(ctx, m); err != nil {
		return err
	}
	s.Say("The service is %s. What has begun ends; `deployctl ps` lists it.", m)
	return nil
}

func runMaintenanceOff(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	if err := s.Service.SetMode(ctx, deployments.Mode{}); err != nil {
		return err
	}
	s.Say("The service takes everything again; what has waited begins within some seconds.")
	return nil
}

func runMaintenanceStatus(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	m, err := s.Service.Mode(ctx)
	switch {
	case err != nil:
		return err
	case s.Flags.Bool("json"):
		return s.SayJSON(m)
	case m.Kind == "":
		s.Say("The service is not in maintenance.")
	default:
		s.Say("The service is %s, since %s by %s.", m, console.When(m.Since), m.By)
	}
	return nil
}

// noteMode tells the user that the service is in a mode, beside a list of what runs or of stacks.
func noteMode(ctx context.Context, s *console.Session) {
	m, err := s.Service.Mode(ctx)
	if err != nil || m.Kind == "" { // a service of an earlier release has no modes, and any other error is the list's, too
		return
	}
	text := "Nothing new begins."
	if m.Kind == deployments.ModeReadOnly {
		text = "Nothing new begins, and nothing is changed."
	}
	s.Note("The service is " + m.String() + ". " + text)
}
