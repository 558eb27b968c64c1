package command

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func tokenCommand(s *Surroundings) *cli.Command {
	return &cli.Command{
		Name: "token", Usage: "manage access tokens of the service",
		Subcommands: []*cli.Command{
			{Name: "create", Usage: "make a token and print it, once", ArgsUsage: "NAME", Flags: common(), Action: action(s, runTokenCreate)},
			{Name: "ls", Usage: "list tokens", Flags: common(jsonFlag), Action: action(s, runTokenLs)},
			{Name: "rm", Usage: "make a token useless", ArgsUsage: "NAME", Flags: common(), Action: action(s, runTokenRm)},
		},
	}
}

func runTokenCreate(ctx context.Context, s *session) error {
	if err := deployments.ValidateName("token", s.flags.Args().First()); err != nil {
		return err
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	text, err := s.service.CreateToken(ctx, s.flags.Args().First())
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
	rows := [][]string{{"NAME", "CREATED", "USED"}}
	for _, t := range list {
		rows = append(rows, []string{t.Name, when(t.Created), when(t.Used)})
	}
	return s.sayTable(rows)
}

func runTokenRm(ctx context.Context, s *session) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	return s.service.RemoveToken(ctx, s.flags.Args().First())
}
