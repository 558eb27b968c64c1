package access

import (
	"context"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
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

// TrustCommand returns deployctl trust.
func TrustCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "trust", Usage: "manage whose identity tokens (OpenID Connect) are exchanged for access tokens",
		Subcommands: []*cli.Command{
			{
				Name: "add", Usage: "trust identities of an issuer, or change a trust", ArgsUsage: "NAME",
				Description: "A job of a CI service then logs in with the identity token that the CI service gives it: " +
					"pulumi login URL --oidc-token TOKEN --oidc-org ORGANIZATION. All conditions must hold, and the " +
					"first trust by name decides.",
				Flags: console.Common(append(grantFlags(), trustFlags()...)...), Action: console.Action(s, runTrustAdd),
			},
			{Name: "ls", Usage: "list the trusts that you administer", Flags: console.Common(console.JSONFlag),
				Action: console.Action(s, runTrustLs)},
			{
				Name: "rm", Usage: "remove a trust", ArgsUsage: "NAME", Flags: console.Common(), Action: console.Action(s,
					runTrustRm),
				Description: "The access tokens that were given by it are rejected from then on.",
			},
		},
	}
}

func runTrustAdd(ctx context.Context, s *console.Session) error {
	grant, err := readGrant(s)
	if err != nil {
		return err
	}
	if grant == nil {
		return deployments.Errorf(deployments.CodeInvalid, "a trust needs the role of its tokens; pass --role viewer, "+
			"deployer or admin")
	}
	trust := deployments.Trust{Organization: grant.Organization, Name: s.Flags.Args().First(),
		Issuer: s.Flags.String("issuer"), Audiences: s.Flags.StringSlice("audience"), Grant: *grant}
	if trust.Lifetime, err = console.Duration("lifetime", s.Flags.String("lifetime")); err != nil {
		return err
	}
	for _, text := range s.Flags.StringSlice("claim") {
		claim, pattern, _ := strings.Cut(text, "=")
		trust.Conditions = append(trust.Conditions, deployments.Condition{Claim: claim, Pattern: pattern})
	}
	if err := trust.Validate(); err != nil {
		return err
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	if err := s.Service.PutTrust(ctx, trust); err != nil {
		return err
	}
	s.Say("Identities of %s with %s are %s, for %s.", trust.Issuer, conditionsText(trust), grantText(*grant),
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

func runTrustLs(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	list, err := s.Service.ListTrusts(ctx)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"NAME", "ISSUER", "CONDITIONS", "MAY", "SINCE"}}
	for _, t := range list {
		if t.Damaged != "" {
			s.Note("error: the trust " + t.Name + " cannot be read: " + t.Damaged)
			continue
		}
		rows = append(rows, []string{t.Name, t.Issuer, conditionsText(t), grantText(t.Grant), console.When(t.Created)})
	}
	return s.SayTable(rows)
}

func runTrustRm(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	return s.Service.RemoveTrust(ctx, s.Settings.Get(settings.Organization), s.Flags.Args().First())
}
