package app

import (
	"context"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/worker"
	"github.com/urfave/cli/v2"
)

// organizationCommand manages which organizations have their own workers. Like keyCommand, it accesses the bucket
// directly.
func organizationCommand(s *console.Env) *cli.Command {
	flags := []cli.Flag{settingsFlag, homeFlag}
	return &cli.Command{
		Name: "organization", Usage: "manage which organizations have their own workers",
		Subcommands: []*cli.Command{
			{Name: "ls", Usage: "list the organizations that have their own workers", Flags: flags,
				Action: devAction(s, runOrganizationLs)},
			{
				Name: "share", Usage: "move an organization back to the shared workers; waits until its own workers " +
					"are no longer needed",
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
	dedicated, err := store.Organizations.ListDedicated(ctx)
	if err != nil {
		return err
	}
	d.say("%-30s %s", "ORGANIZATION", "OWN WORKERS SINCE")
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
		d.say("New updates of %s run on the shared workers. Its own workers are needed until workflow %s has ended; "+
			"a stack's workflow ends a minute after its last update.", name, workflow)
	})
	if err != nil {
		return err
	}
	d.say("You can stop the workers of %s.", name)
	return nil
}
