package command

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/urfave/cli/v2"
)

func resolveCommand(s *Env) *cli.Command {
	return &cli.Command{
		Name: "resolve", Usage: "answer whether a create with an unknown outcome took effect", ArgsUsage: "URN",
		Description: "The exit code is 4 if the update does not wait for this URN, and 2 if there is no such update.",
		Flags: onStack(
			&cli.StringFlag{Name: "created", Usage: "the resource exists and has this `ID`"},
			&cli.BoolFlag{Name: "absent", Usage: "the resource does not exist"},
			&cli.StringFlag{Name: "update", Usage: "the waiting `UPDATE`; not set: the stack's running update"}),
		Action: action(s, runResolve),
	}
}

func runResolve(ctx context.Context, s *session) error {
	id, absent := s.flags.String("created"), s.flags.Bool("absent")
	if (id == "") == !absent {
		return deployments.Errorf(deployments.CodeInvalid, "pass either --created ID or --absent")
	}
	name := s.flags.Args().First()
	if _, err := urn.Parse(name); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%q is not a URN; the update prints the URN that it waits "+
			"for", name)
	}
	u, err := s.updateOf(ctx, s.flags.String("update"), false)
	if deployments.CodeOf(err) == deployments.CodeNotFound {
		return deployments.Errorf(deployments.CodeNotFound, "%v; run `deployctl up --on-unknown wait` in another "+
			"terminal, and resolve "+
			"the create while it waits", err)
	}
	if err != nil {
		return err
	}
	if err := s.service.Resolve(ctx, u.Update, name, id); err != nil {
		return err
	}
	s.say("%s continues.", u.Update)
	return nil
}
