package command

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func stackTagCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "tag", Usage: "read and set the stack's tags",
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list tags", Flags: onStack(jsonFlag), Action: action(s, runTagLs)},
			{Name: "get", Usage: "print a tag", ArgsUsage: "NAME", Flags: onStack(), Action: action(s, runTagGet)},
			{Name: "set", Usage: "set a tag", ArgsUsage: "NAME VALUE", Flags: onStack(), Action: action(s, runTagSet)},
			{Name: "rm", Usage: "remove a tag", ArgsUsage: "NAME", Flags: onStack(), Action: action(s, runTagRm)},
		},
	}
}

func runTagLs(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	if s.flags.Bool("json") {
		return s.sayJSON(info.Tags)
	}
	rows := [][]string{{"NAME", "VALUE"}}
	for _, name := range sorted(info.Tags) {
		rows = append(rows, []string{name, info.Tags[name]})
	}
	return s.sayTable(rows)
}

func runTagGet(ctx context.Context, s *session) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	name := s.flags.Args().First()
	value, ok := info.Tags[name]
	if !ok {
		return deployments.Errorf(deployments.CodeNotFound, "stack %s has no tag %q", info.Stack, name)
	}
	s.say("%s", value)
	return nil
}

func runTagSet(ctx context.Context, s *session) error {
	name, value := s.flags.Args().Get(0), s.flags.Args().Get(1)
	if name == "" {
		return deployments.Errorf(deployments.CodeInvalid, "a tag needs a name")
	}
	return s.changeTags(ctx, map[string]string{name: value}, nil)
}

func runTagRm(ctx context.Context, s *session) error {
	return s.changeTags(ctx, nil, []string{s.flags.Args().First()})
}

// changeTags sets tags of the stack and removes some. It sends only those: another command may set others meanwhile.
func (s *session) changeTags(ctx context.Context, set map[string]string, removed []string) error {
	info, err := s.knownStack(ctx)
	if err != nil {
		return err
	}
	return s.service.ChangeTags(ctx, info.Stack, set, removed)
}
