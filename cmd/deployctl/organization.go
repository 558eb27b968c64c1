package main

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/worker"
	"github.com/urfave/cli/v2"
)

// organizationCommand manages which organizations have workers of their own. Like keyCommand it works on what serve and worker stand on.
func organizationCommand(s *command.Surroundings) *cli.Command {
	flags := []cli.Flag{settingsFlag, homeFlag}
	return &cli.Command{
		Name: "organization", Usage: "manage which organizations have workers of their own",
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list the organizations that have workers of their own", Flags: flags, Action: devAction(s, runOrganizationLs)},
			{
				Name: "share", Usage: "have an organization's updates run on the workers that serve all; waits until its own are not needed any more",
				ArgsUsage: "NAME", Flags: flags, Action: devAction(s, runOrganizationShare),
			},
		},
	}
}

func runOrganizationLs(ctx context.Context, d *devCall) error {
	store, err := d.keyStore(ctx, false)
	if err != nil {
		return err
	}
	dedicated, err := store.ListDedicated(ctx)
	if err != nil {
		return err
	}
	d.say("%-30s %s", "ORGANIZATION", "HAS WORKERS OF ITS OWN SINCE")
	for _, o := range dedicated {
		d.say("%-30s %s", o.Organization, day(o.Since))
	}
	return nil
}

func runOrganizationShare(ctx context.Context, d *devCall) error {
	name := d.flags.Args().First()
	if err := deployments.ValidateName("organization", name); err != nil {
		return err
	}
	in, err := d.keyInfrastructure()
	if err != nil {
		return err
	}
	connection, err := worker.Connect(ctx, in.config())
	if err != nil {
		return err
	}
	defer connection.Close()
	err = connection.Share(ctx, name, func(workflow string) {
		d.say("Updates of %s begin on the workers that serve all from now on. Its own are needed until %s has ended; a stack's ends a minute after its last update.", name, workflow)
	})
	if err != nil {
		return err
	}
	d.say("The workers of %s can be stopped.", name)
	return nil
}
