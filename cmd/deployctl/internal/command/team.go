package command

import (
	"context"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

func teamCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "team", Usage: "manage teams: members who share a role in an organization",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "add a team, or change a team's role", ArgsUsage: "TEAM",
				Flags: common(grantFlags()...), Action: action(s, runTeamAdd),
			},
			{Name: "ls", Usage: "list the teams that you administer", Flags: common(jsonFlag), Action: action(s, runTeamLs)},
			{
				Name: "rm", Usage: "remove a team", ArgsUsage: "TEAM", Flags: common(), Action: action(s, runTeamRm),
				Description: "Its members lose the role of the team. A member without any other role is removed, too.",
			},
			{
				Name: "join", Usage: "add a member to a team", ArgsUsage: "TEAM MEMBER", Flags: common(),
				Description: "A member of this name is added if there is none.", Action: action(s, runTeamJoin),
			},
			{Name: "leave", Usage: "remove a member from a team", ArgsUsage: "TEAM MEMBER", Flags: common(),
				Action: action(s, runTeamLeave)},
		},
	}
}

func runTeamAdd(ctx context.Context, s *session) error {
	grant, err := s.grant()
	if err != nil {
		return err
	}
	if grant == nil {
		return deployments.Errorf(deployments.CodeInvalid, "a team needs a role; pass --role viewer, deployer or admin")
	}
	name := s.flags.Args().First()
	if err := (deployments.Team{Name: name, Grant: *grant}).Validate(); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.service.GrantTeam(ctx, name, *grant); err != nil {
		return err
	}
	s.say("The members of %s are %s.", name, grantText(*grant))
	return nil
}

func runTeamLs(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	list, err := s.service.ListTeams(ctx)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	rows := [][]string{{"NAME", "MAY", "MEMBERS", "SINCE"}}
	for _, t := range list {
		if t.Damaged != "" {
			s.note("error: the team " + t.Name + " cannot be read: " + t.Damaged)
			continue
		}
		rows = append(rows, []string{t.Name, grantText(t.Grant), strings.Join(t.Members, " "), when(t.Created)})
	}
	return s.sayTable(rows)
}

func runTeamRm(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	return s.service.RemoveTeam(ctx, s.settings.Get(settings.Organization), s.flags.Args().First())
}

func runTeamJoin(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	return s.service.JoinTeam(ctx, s.settings.Get(settings.Organization), s.flags.Args().Get(0), s.flags.Args().Get(1))
}

func runTeamLeave(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	member := s.flags.Args().Get(1)
	err := s.service.LeaveTeam(ctx, s.settings.Get(settings.Organization), s.flags.Args().Get(0), member)
	if err == nil {
		s.noteBegun(member)
	}
	return err
}
