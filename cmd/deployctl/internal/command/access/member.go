package access

import (
	"context"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// MemberCommand returns deployctl member.
func MemberCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "member", Usage: "manage members of an organization and their roles",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "add a member to an organization, or change a member's role", ArgsUsage: "NAME",
				Description: "A member is one of an organization, or with --organization '*' of all of them: the same name in " +
					"another organization is another member.",
				Flags: console.Common(grantFlags()...), Action: console.Action(s, runMemberAdd),
			},
			{Name: "ls", Usage: "list the members that you administer", Flags: console.Common(console.JSONFlag),
				Action: console.Action(s, runMemberLs)},
			{
				Name: "rm", Usage: "remove a member from an organization", ArgsUsage: "NAME",
				Description: "The member's tokens are rejected from then on.",
				Flags:       console.Common(), Action: console.Action(s, runMemberRm),
			},
		},
	}
}

func runMemberAdd(ctx context.Context, s *console.Session) error {
	grant, err := readGrant(s)
	if err != nil {
		return err
	}
	if grant == nil {
		return deployments.Errorf(deployments.CodeInvalid, "a member needs a role; pass --role viewer, deployer or "+
			"admin")
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	if err := s.Service.GrantMember(ctx, s.Flags.Args().First(), *grant); err != nil {
		return err
	}
	s.Say("%s is %s.", s.Flags.Args().First(), grantText(*grant))
	return nil
}

func runMemberLs(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	list, err := s.Service.ListMembers(ctx)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"NAME", "MAY", "SINCE"}}
	for _, m := range list {
		if m.Damaged != "" {
			s.Note("error: the member " + m.Name + " of " + organizationText(m.Organization) + " cannot be read: " + m.Damaged)
			continue
		}
		rows = append(rows, []string{m.Name, GrantsText(m), console.When(m.Created)})
	}
	return s.SayTable(rows)
}

// GrantsText tells what a member may do, also by being in teams.
func GrantsText(m deployments.Member) string {
	var grants []string
	if m.Grant != nil {
		grants = append(grants, grantText(*m.Grant))
	}
	for _, t := range m.Teams {
		grants = append(grants, grantText(t.Grant)+" (team "+t.Name+")")
	}
	return strings.Join(grants, "; ")
}

func runMemberRm(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	name := s.Flags.Args().First()
	if err := s.Service.RemoveMember(ctx, name, s.Settings.Get(settings.Organization)); err != nil {
		return err
	}
	noteBegun(s, name)
	return nil
}
