package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

func tokenCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "token", Usage: "manage access tokens of the service",
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "create a token and print it (it is shown only once)", ArgsUsage: "NAME",
				Description: "A token has its own role (--role) or the roles of a member of the organization (--member). With " +
					"both, it may do what both allow. With --own it may do what your own token may, as long as that lasts, and " +
					"the name of your token comes before its name.",
				Flags: common(append(grantFlags(),
					&cli.BoolFlag{Name: "own", Usage: "make it from your own token; not with --role or --member"},
					&cli.StringFlag{Name: "member", Usage: "`MEMBER` of the organization (--organization) that the token belongs to"},
					&cli.StringFlag{Name: "expires", Usage: "expire after `DURATION`, such as 12h or 90d; not set: " +
						"never"})...),
				Action: action(s, runTokenCreate),
			},
			{Name: "ls", Usage: "list the tokens that you administer", Flags: common(jsonFlag),
				Action: action(s, runTokenLs)},
			{Name: "rm", Usage: "revoke a token", ArgsUsage: "NAME", Flags: common(), Action: action(s, runTokenRm)},
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

// grant returns the grant that the flags describe; nil without a role.
func (s *session) grant() (*deployments.Grant, error) {
	g := deployments.Grant{
		Role: deployments.Role(s.flags.String("role")), Organization: s.settings.Get(settings.Organization),
		Stacks: s.flags.StringSlice("stacks"),
	}
	if g.Role == "" {
		if len(g.Stacks) > 0 {
			return nil, deployments.Errorf(deployments.CodeInvalid, "--stacks needs a role; pass --role")
		}
		return nil, nil
	}
	return &g, g.Validate()
}

func runTokenCreate(ctx context.Context, s *session) error {
	grant, err := s.grant()
	if err != nil {
		return err
	}
	token := deployments.Token{Name: s.flags.Args().First(), Member: s.flags.String("member"), Grant: grant}
	if token.Member != "" {
		token.Organization = s.settings.Get(settings.Organization)
	}
	if text := s.flags.String("expires"); text != "" {
		after, err := duration("expires", text)
		if err != nil {
			return err
		}
		token.Expires = time.Now().Add(after)
	}
	create := deployments.Service.CreateToken
	if s.flags.Bool("own") {
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
	if err := s.connect(ctx); err != nil {
		return err
	}
	text, err := create(s.service, ctx, token)
	if err != nil {
		return err
	}
	s.note("This is the only time the token is shown:")
	s.say("%s", text)
	return nil
}

func runTokenLs(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	list, err := s.service.ListTokens(ctx)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	rows := [][]string{{"NAME", "MEMBER", "MAY", "CREATED", "USED", "EXPIRES"}}
	for _, t := range list {
		if t.Damaged != "" {
			s.note("error: the token " + t.Name + " cannot be read: " + t.Damaged)
		}
		rows = append(rows, []string{t.Name, ownerText(t), scopeText(t), when(t.Created), when(t.Used), when(t.Expires)})
	}
	return s.sayTable(rows)
}

// ownerText names the member of a token, and of which organization.
func ownerText(t deployments.Token) string {
	if t.Member == "" {
		return ""
	}
	return t.Member + " of " + organizationText(t.Organization)
}

// scopeText describes what a token may do.
func scopeText(t deployments.Token) string {
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

func runTokenRm(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	name := s.flags.Args().First()
	if err := s.service.RemoveToken(ctx, name); err != nil {
		return err
	}
	s.noteBegun(name)
	return nil
}

// noteBegun reminds the user, after a token or a role was removed, of the updates that continue.
func (s *session) noteBegun(name string) {
	s.note(fmt.Sprintf("Updates that %s started continue: deployctl audit --user %s lists them, and deployctl cancel "+
		"cancels a running one.", name, name))
}
