package command

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func maintenanceCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "maintenance", Usage: "stop a service from beginning anything new, or from changing anything",
		Description: "Only admins of all organizations can set it. What has begun ends in any case.",
		Subcommands: []*cli.Command{
			{
				Name: "on", Usage: "begin maintenance, or change it",
				Description: "From now on no update, preview, deployment or run of a schedule begins. Clients are told the " +
					"reason and until when; what waits in queues and by schedule begins afterwards. All processes of the " +
					"service know it within five seconds.",
				Flags: common(
					&cli.StringFlag{Name: "reason", Usage: "`TEXT` for those who are refused meanwhile"},
					&cli.StringFlag{Name: "until", Usage: "it ends by itself at `TIME`: 2006-01-02T15:04:05Z, or " +
						"2006-01-02 15:04 in local time"},
					&cli.StringFlag{Name: "for", Usage: "it ends by itself after `DURATION`, such as 90m or 2h"},
					&cli.BoolFlag{Name: "read-only", Usage: "refuse also whatever else clients change: stacks, states, " +
						"schedules, tokens"}),
				Action: action(s, runMaintenanceOn),
			},
			{Name: "off", Usage: "end maintenance before its time", Flags: common(), Action: action(s, runMaintenanceOff)},
			{Name: "status", Usage: "show whether the service is in maintenance, why and until when", Flags: common(jsonFlag),
				Action: action(s, runMaintenanceStatus)},
		},
	}
}

func runMaintenanceOn(ctx context.Context, s *session) error {
	m := deployments.Mode{Kind: deployments.ModeMaintenance, Reason: s.flags.String("reason")}
	if s.flags.Bool("read-only") {
		m.Kind = deployments.ModeReadOnly
	}
	until, d := s.flags.String("until"), s.flags.String("for")
	var err error
	switch {
	case (until == "") == (d == ""):
		err = deployments.Errorf(deployments.CodeInvalid, "say when it ends by itself: with --until TIME or with --for "+
			"DURATION; `deployctl maintenance off` ends it earlier")
	case until != "":
		m.Until, err = momentOf("until", until)
	default:
		var lasts time.Duration
		lasts, err = duration("for", d)
		m.Until = time.Now().Add(lasts).Truncate(time.Second)
	}
	if err != nil {
		return err
	}
	if err := m.Validate(time.Now()); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.service.SetMode(ctx, m); err != nil {
		return err
	}
	s.say("The service is %s. What has begun ends; `deployctl ps` lists it.", m)
	return nil
}

func runMaintenanceOff(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.service.SetMode(ctx, deployments.Mode{}); err != nil {
		return err
	}
	s.say("The service takes everything again; what has waited begins within some seconds.")
	return nil
}

func runMaintenanceStatus(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	m, err := s.service.Mode(ctx)
	switch {
	case err != nil:
		return err
	case s.flags.Bool("json"):
		return s.sayJSON(m)
	case m.Kind == "":
		s.say("The service is not in maintenance.")
	default:
		s.say("The service is %s, since %s by %s.", m, when(m.Since), m.By)
	}
	return nil
}

// noteMode tells the user that the service is in a mode, beside a list of what runs or of stacks.
func (s *session) noteMode(ctx context.Context) {
	m, err := s.service.Mode(ctx)
	if err != nil || m.Kind == "" { // a service of an earlier release has no modes, and any other error is the list's, too
		return
	}
	text := "Nothing new begins."
	if m.Kind == deployments.ModeReadOnly {
		text = "Nothing new begins, and nothing is changed."
	}
	s.note("The service is " + m.String() + ". " + text)
}
