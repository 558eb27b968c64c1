package access

import (
	"context"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// TeamCommand returns deployctl team.
func TeamCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "team", Usage: "manage teams: members who share a role in an organization",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "add a team, or change a team's role", ArgsUsage: "TEAM",
				Flags: console.Common(grantFlags()...), Action: console.Action(s, runTeamAdd),
			},
			{Name: "ls", Usage: "list the teams that you administer", Flags: console.Common(console.JSONFlag),
				Action: console.Action(s, runTeamLs)},
			{
				Name: "rm", Usage: "remove a team", ArgsUsage: "TEAM", Flags: console.Common(), Action: console.Action(s,
					runTeamRm),
				Description: "Its members lose the role of the team. A member without any other role is removed, too.",
			},
			{
				Name: "join", Usage: "add a member to a team", ArgsUsage: "TEAM MEMBER", Flags: console.Common(),
				Description: "A member of this name is added if there is none.", Action: console.Action(s, runTeamJoin),
			},
			{Name: "leave", Usage: "remove a member from a team", ArgsUsage: "TEAM MEMBER", Flags: console.Common(),
				Action: console.Action(s, runTeamLeave)},
		},
	}
}

func runTeamAdd(ctx context.Context, s *console.Session) error {
	grant, err := readGrant(s)
	if err != nil {
		return err
	}
	if grant == nil {
		return deployments.Errorf(deployments.CodeInvalid, "a team needs a role; pass --role viewer, deployer or admin")
	}
	name := s.Flags.Args().First()
	if err := (deployments.Team{Name: name, Grant: *grant}).Validate(); err != nil {
		return err
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	if err := s.Service.GrantTeam(ctx, name, *grant); err != nil {
		return err
	}
	s.Say("The members of %s are %s.", name, grantText(*grant))
	return nil
}

func runTeamLs(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	list, err := s.Service.ListTeams(ctx)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"NAME", "MAY", "MEMBERS", "SINCE"}}
	for _, t := range list {
		if t.Damaged != "" {
			s.Note("error: the team " + t.Name + " cannot be read: " + t.Damaged)
			continue
		}
		rows = append(rows, []string{t.Name, grantText(t.Grant), strings.Join(t.Members, " "), console.When(t.Created)})
	}
	return s.SayTable(rows)
}

func runTeamRm(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	return s.Service.RemoveTeam(ctx, s.Settings.Get(settings.Organization), s.Flags.Args().First())
}

func runTeamJoin(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	return s.Service.JoinTeam(ctx, s.Settings.Get(settings.Organization), s.Flags.Args().Get(0), s.Flags.Args().Get(1))
}

func runTeamLeave(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	member := s.Flags.Args().Get(1)
	err := s.Service.LeaveTeam(ctx, s.Settings.Get(settings.Organization), s.Flags.Args().Get(0), member)
	if err == nil {
		noteBegun(s, member)
	}
	return err
}
