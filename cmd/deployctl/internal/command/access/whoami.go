package access

import (
	"context"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// WhoamiCommand returns deployctl whoami.
func WhoamiCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "whoami", Usage: "print who you are to the service",
		Description: "It prints the owner of your token, or the name of a token without one. With --verbose it also prints " +
			"the token, the organizations that you may see, what you may do there, and the service.",
		Flags: console.Common(console.JSONFlag, &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"},
			Usage: "print organizations, roles and the service, too"}),
		Action: console.Action(s, runWhoami),
	}
}

// whoami is what the command prints, as --json has it. The first four are those of the stock CLI.
type whoami struct {
	User          string                `json:"user"`
	Organizations []string              `json:"organizations"`
	URL           string                `json:"url"` // of the service, or "embedded"
	Token         tokenInformation      `json:"tokenInformation"`
	Identity      string                `json:"identity,omitempty"`
	Grants        [][]deployments.Grant `json:"grants"`
}

type tokenInformation struct {
	Name string `json:"name"`
}

func runWhoami(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	a, err := s.Service.WhoAmI(ctx, deployments.Caller{})
	if err != nil {
		return err
	}
	w := whoami{User: a.Name(), Organizations: a.Organizations, URL: s.Settings.Get(settings.Server),
		Token: tokenInformation{a.Token}, Identity: a.Identity, Grants: a.Grants}
	if w.URL == "" {
		w.URL = "embedded"
	}
	switch {
	case s.Flags.Bool("json"):
		return s.SayJSON(w)
	case s.Flags.Bool("verbose"):
		return s.SayTable(w.rows())
	}
	s.Say("%s", w.User)
	return nil
}

// rows are those of the table; of what the caller may do, each list of grants has one.
func (w whoami) rows() [][]string {
	rows := [][]string{{"User", w.User}, {"Organizations", strings.Join(w.Organizations, ", ")}, {"Service", w.URL},
		{"Token", w.Token.Name}}
	if w.Identity != "" {
		rows = append(rows, []string{"Identity", w.Identity})
	}
	title := "May be"
	for _, list := range w.Grants {
		var grants []string
		for _, g := range list {
			grants = append(grants, grantText(g))
		}
		rows = append(rows, []string{title, strings.Join(grants, ", ")})
		title = "but only"
	}
	return rows
}
