package access

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// TokenCommand returns deployctl token.
func TokenCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "token", Usage: "manage access tokens of the service",
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "create a token and print it (it is shown only once)", ArgsUsage: "NAME",
				Description: "A token has its own role (--role) or the roles of a member of the organization (--member). With " +
					"both, it may do what both allow. With --own it may do what your own token may, as long as that lasts, and " +
					"the name of your token comes before its name.",
				Flags: console.Common(append(grantFlags(),
					&cli.BoolFlag{Name: "own", Usage: "make it from your own token; not with --role or --member"},
					&cli.StringFlag{Name: "member", Usage: "`MEMBER` of the organization (--organization) that the token belongs to"},
					&cli.StringFlag{Name: "expires", Usage: "expire after `DURATION`, such as 12h or 90d; not set: " +
						"never"})...),
				Action: console.Action(s, runTokenCreate),
			},
			{Name: "ls", Usage: "list the tokens that you administer", Flags: console.Common(console.JSONFlag),
				Action: console.Action(s, runTokenLs)},
			{Name: "rm", Usage: "revoke a token", ArgsUsage: "NAME", Flags: console.Common(),
				Action: console.Action(s, runTokenRm)},
		},
	}
}

// grantFlags returns the flags of a grant; its organization is a setting.
func grantFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "role", Usage: "`ROLE` in the organization of --organization, or in all if that is " +
			"'*': viewer, deployer or admin"},
		&cli.StringSliceFlag{Name: "stacks", Usage: "allow only stacks that match `GLOB`, a pattern of PROJECT/STACK " +
			"such as 'shop/*'; may be repeated"},
	}
}

// readGrant returns the grant that the flags describe; nil without a role.
func readGrant(s *console.Session) (*deployments.Grant, error) {
	g := deployments.Grant{
		Role: deployments.Role(s.Flags.String("role")), Organization: s.Settings.Get(settings.Organization),
		Stacks: s.Flags.StringSlice("stacks"),
	}
	if g.Role == "" {
		if len(g.Stacks) > 0 {
			return nil, deployments.Errorf(deployments.CodeInvalid, "--stacks needs a role; pass --role")
		}
		return nil, nil
	}
	return &g, g.Validate()
}

func runTokenCreate(ctx context.Context, s *console.Session) error {
	grant, err := readGrant(s)
	if err != nil {
		return err
	}
	token := deployments.Token{Name: s.Flags.Args().First(), Member: s.Flags.String("member"), Grant: grant}
	if token.Member != "" {
		token.Organization = s.Settings.Get(settings.Organization)
	}
	if text := s.Flags.String("expires"); text != "" {
		after, err := console.Duration("expires", text)
		if err != nil {
			return err
		}
		token.Expires = time.Now().Add(after)
	}
	create := deployments.Service.CreateToken
	if s.Flags.Bool("own") {
		create = deployments.Service.DeriveToken
		if grant != nil || token.Member != "" {
			return deployments.Errorf(deployments.CodeInvalid, "a token that is made from your own has no other role: leave "+
				"out --role and --member, or --own")
		}
		err = deployments.ValidateName("token", token.Name)
	} else {
		err = token.Validate()
	}
	if err != nil {
		return err
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	text, err := create(s.Service, ctx, token)
	if err != nil {
		return err
	}
	s.Note("This is the only time the token is shown:")
	s.Say("%s", text)
	return nil
}

func runTokenLs(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	list, err := s.Service.ListTokens(ctx)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"NAME", "MEMBER", "MAY", "CREATED", "USED", "EXPIRES"}}
	for _, t := range list {
		if t.Damaged != "" {
			s.Note("error: the token " + t.Name + " cannot be read: " + t.Damaged)
		}
		rows = append(rows, []string{t.Name, ownerText(t), ScopeText(t), console.When(t.Created), console.When(t.Used),
			console.When(t.Expires)})
	}
	return s.SayTable(rows)
}

// ownerText names the member of a token, and of which organization.
func ownerText(t deployments.Token) string {
	if t.Member == "" {
		return ""
	}
	return t.Member + " of " + organizationText(t.Organization)
}

// ScopeText describes what a token may do.
func ScopeText(t deployments.Token) string {
	switch {
	case t.Origin != nil && t.Origin.Token != "":
		return "what " + t.Origin.Token + " may"
	case t.Origin != nil && t.Grant != nil:
		return grantText(*t.Grant) + ", by the trust " + t.Origin.Trust + " for " + t.Origin.Identity
	case t.Grant == nil && t.Member == "":
		return "everything (it has no scope)"
	case t.Grant == nil:
		return "the roles of its member" + limitText(t)
	}
	return grantText(*t.Grant) + limitText(t)
}

// limitText says to what a token is limited because of who created it.
func limitText(t deployments.Token) string {
	text := ""
	for _, list := range t.Limit {
		for _, g := range list {
			text += ", within " + grantText(g)
		}
	}
	return text
}

// organizationText names an organization, or all of them.
func organizationText(name string) string {
	if name == deployments.AnyOrganization {
		return "every organization"
	}
	return name
}

// grantText describes a grant, such as "deployer of acme: shop/*".
func grantText(g deployments.Grant) string {
	text := string(g.Role) + " of " + organizationText(g.Organization)
	if len(g.Stacks) > 0 {
		text += ": " + strings.Join(g.Stacks, " ")
	}
	return text
}

func runTokenRm(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	name := s.Flags.Args().First()
	if err := s.Service.RemoveToken(ctx, name); err != nil {
		return err
	}
	noteBegun(s, name)
	return nil
}

// noteBegun reminds the user, after a token or a role was removed, of the updates that continue.
func noteBegun(s *console.Session, name string) {
	s.Note(fmt.Sprintf("Updates that %s started continue: deployctl audit --user %s lists them, and deployctl cancel "+
		"cancels a running one.", name, name))
}
