package command

import (
	"context"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

func memberCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "member", Usage: "manage members of an organization and their roles",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "add a member to an organization, or change a member's role", ArgsUsage: "NAME",
				Description: "A member is one of an organization, or with --organization '*' of all of them: the same name in " +
					"another organization is another member.",
				Flags: common(grantFlags()...), Action: action(s, runMemberAdd),
			},
			{Name: "ls", Usage: "list the members that you administer", Flags: common(jsonFlag),
				Action: action(s, runMemberLs)},
			{
				Name: "rm", Usage: "remove a member from an organization", ArgsUsage: "NAME",
				Description: "The member's tokens are rejected from then on.",
				Flags:       common(), Action: action(s, runMemberRm),
			},
		},
	}
}

func runMemberAdd(ctx context.Context, s *session) error {
	grant, err := s.grant()
	if err != nil {
		return err
	}
	if grant == nil {
		return deployments.Errorf(deployments.CodeInvalid, "a member needs a role; pass --role viewer, deployer or "+
			"admin")
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.service.GrantMember(ctx, s.flags.Args().First(), *grant); err != nil {
		return err
	}
	s.say("%s is %s.", s.flags.Args().First(), grantText(*grant))
	return nil
}

func runMemberLs(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	list, err := s.service.ListMembers(ctx)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	rows := [][]string{{"NAME", "MAY", "SINCE"}}
	for _, m := range list {
		if m.Damaged != "" {
			s.note("error: the member " + m.Name + " of " + organizationText(m.Organization) + " cannot be read: " + m.Damaged)
			continue
		}
		rows = append(rows, []string{m.Name, grantsText(m), when(m.Created)})
	}
	return s.sayTable(rows)
}

// grantsText tells what a member may do, also by being in teams.
func grantsText(m deployments.Member) string {
	var grants []string
	if m.Grant != nil {
		grants = append(grants, grantText(*m.Grant))
	}
	for _, t := range m.Teams {
		grants = append(grants, grantText(t.Grant)+" (team "+t.Name+")")
	}
	return strings.Join(grants, "; ")
}

func runMemberRm(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	name := s.flags.Args().First()
	if err := s.service.RemoveMember(ctx, name, s.settings.Get(settings.Organization)); err != nil {
		return err
	}
	s.noteBegun(name)
	return nil
}
