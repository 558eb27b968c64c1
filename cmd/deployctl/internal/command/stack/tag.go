package stack

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// tagCommand returns deployctl tag.
func tagCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "tag", Usage: "read and set the stack's tags",
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list tags", Flags: console.OnStack(console.JSONFlag), Action: console.Action(s, runTagLs)},
			{Name: "get", Usage: "print a tag", ArgsUsage: "NAME", Flags: console.OnStack(),
				Action: console.Action(s, runTagGet)},
			{Name: "set", Usage: "set a tag", ArgsUsage: "NAME VALUE", Flags: console.OnStack(),
				Action: console.Action(s, runTagSet)},
			{Name: "rm", Usage: "remove a tag", ArgsUsage: "NAME", Flags: console.OnStack(),
				Action: console.Action(s, runTagRm)},
		},
	}
}

func runTagLs(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(info.Tags)
	}
	rows := [][]string{{"NAME", "VALUE"}}
	for _, name := range console.Sorted(info.Tags) {
		rows = append(rows, []string{name, info.Tags[name]})
	}
	return s.SayTable(rows)
}

func runTagGet(ctx context.Context, s *console.Session) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	name := s.Flags.Args().First()
	value, ok := info.Tags[name]
	if !ok {
		return deployments.Errorf(deployments.CodeNotFound, "stack %s has no tag %q", info.Stack, name)
	}
	s.Say("%s", value)
	return nil
}

func runTagSet(ctx context.Context, s *console.Session) error {
	name, value := s.Flags.Args().Get(0), s.Flags.Args().Get(1)
	if name == "" {
		return deployments.Errorf(deployments.CodeInvalid, "a tag needs a name")
	}
	return changeTags(ctx, s, map[string]string{name: value}, nil)
}

func runTagRm(ctx context.Context, s *console.Session) error {
	return changeTags(ctx, s, nil, []string{s.Flags.Args().First()})
}

// changeTags sets tags of the stack and removes some. It sends only those: another command may set others meanwhile.
func changeTags(ctx context.Context, s *console.Session, set map[string]string, removed []string) error {
	info, err := s.KnownStack(ctx)
	if err != nil {
		return err
	}
	return s.Service.ChangeTags(ctx, info.Stack, set, removed)
}
