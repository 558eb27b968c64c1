package command

import (
	"context"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// trustFlags are those that tell which identities are trusted.
func trustFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "issuer", Required: true, Usage: "`URL` of the issuer, as its tokens write it"},
		&cli.StringSliceFlag{Name: "claim", Required: true, Usage: "condition `CLAIM=PATTERN` on a claim of the " +
			"token, in which * stands for any text, and ? for one character; may be repeated"},
		&cli.StringSliceFlag{Name: "audience", Usage: "`AUDIENCE` of the token; may be repeated; not set: " +
			deployments.OrganizationAudience("ORGANIZATION")},
		&cli.StringFlag{Name: "lifetime", Usage: "longest `DURATION` of an access token, up to 24h", Value: "1h"},
	}
}

func trustCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "trust", Usage: "manage whose identity tokens (OpenID Connect) are exchanged for access tokens",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "trust identities of an issuer, or change a trust", ArgsUsage: "NAME",
				Description: "A job of a CI service then logs in with the identity token that the CI service gives it: " +
					"pulumi login URL --oidc-token TOKEN --oidc-org ORGANIZATION. All conditions must hold, and the " +
					"first trust by name decides.",
				Flags: common(append(grantFlags(), trustFlags()...)...), Action: action(s, runTrustAdd),
			},
			{Name: "ls", Usage: "list the trusts that you administer", Flags: common(jsonFlag),
				Action: action(s, runTrustLs)},
			{
				Name: "rm", Usage: "remove a trust", ArgsUsage: "NAME", Flags: common(), Action: action(s, runTrustRm),
				Description: "The access tokens that were given by it are rejected from then on.",
			},
		},
	}
}

func runTrustAdd(ctx context.Context, s *session) error {
	grant, err := s.grant()
	if err != nil {
		return err
	}
	if grant == nil {
		return deployments.Errorf(deployments.CodeInvalid, "a trust needs the role of its tokens; pass --role viewer, "+
			"deployer or admin")
	}
	trust := deployments.Trust{Organization: grant.Organization, Name: s.flags.Args().First(),
		Issuer: s.flags.String("issuer"), Audiences: s.flags.StringSlice("audience"), Grant: *grant}
	if trust.Lifetime, err = duration("lifetime", s.flags.String("lifetime")); err != nil {
		return err
	}
	for _, text := range s.flags.StringSlice("claim") {
		claim, pattern, _ := strings.Cut(text, "=")
		trust.Conditions = append(trust.Conditions, deployments.Condition{Claim: claim, Pattern: pattern})
	}
	if err := trust.Validate(); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if err := s.service.PutTrust(ctx, trust); err != nil {
		return err
	}
	s.say("Identities of %s with %s are %s, for %s.", trust.Issuer, conditionsText(trust), grantText(*grant),
		trust.Lifetime)
	return nil
}

// conditionsText writes the conditions of a trust.
func conditionsText(t deployments.Trust) string {
	var texts []string
	for _, c := range t.Conditions {
		texts = append(texts, c.Claim+"="+c.Pattern)
	}
	return strings.Join(texts, " ")
}

func runTrustLs(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	list, err := s.service.ListTrusts(ctx)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(list)
	}
	rows := [][]string{{"NAME", "ISSUER", "CONDITIONS", "MAY", "SINCE"}}
	for _, t := range list {
		if t.Damaged != "" {
			s.note("error: the trust " + t.Name + " cannot be read: " + t.Damaged)
			continue
		}
		rows = append(rows, []string{t.Name, t.Issuer, conditionsText(t), grantText(t.Grant), when(t.Created)})
	}
	return s.sayTable(rows)
}

func runTrustRm(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	return s.service.RemoveTrust(ctx, s.settings.Get(settings.Organization), s.flags.Args().First())
}
