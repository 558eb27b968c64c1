package main

import (
	"context"
	"log/slog"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/settings"
	"github.com/urfave/cli/v2"
)

func workerCommand(s *command.Surroundings) *cli.Command {
	return &cli.Command{
		Name: "worker", Usage: "carry out updates, on a Temporal cluster and an S3 bucket",
		Flags: append([]cli.Flag{settingsFlag, checkFlag, organizationsFlag}, command.SettingFlags(settings.ForService)...),
		Action: func(c *cli.Context) error {
			loaded, err := command.LoadSettings(s, c)
			if err != nil {
				return err
			}
			ctx, cancel := untilInterrupted(c.Context, s)
			defer cancel()
			if c.Bool(checkFlag.Name) {
				return check(ctx, s, loaded)
			}
			return work(ctx, s, loaded, c.StringSlice(organizationsFlag.Name))
		},
	}
}

// organizationsFlag is no setting: a worker that lost it with its configuration would run everybody's programs.
var organizationsFlag = &cli.StringSliceFlag{
	Name: "organization", Usage: "`NAME` of an organization whose updates run on this worker and others of its own alone; can be given several times",
}

// work carries updates out until ctx ends.
func work(ctx context.Context, s *command.Surroundings, loaded settings.Settings, organizations []string) error {
	for _, organization := range organizations {
		if err := deployments.ValidateName("organization", organization); err != nil {
			return err
		}
	}
	in, err := infrastructureOf(loaded, slog.New(slog.NewTextHandler(s.Err, nil)))
	if err != nil {
		return err
	}
	in.organizations = organizations
	defer in.metrics.close()
	if in.sandbox, err = openSandbox(loaded, sandbox.Options{Hide: append(secretFiles(loaded), cloudFiles()...)}, in.log); err != nil {
		return err
	}
	health, err := openHealth(loaded)
	if err != nil {
		return err
	}
	room, err := openRoom(ctx, in)
	if err != nil {
		return err
	}
	defer room.close()
	return together(ctx,
		room.work,
		room.vitals.watch,
		func(ctx context.Context) error { return room.vitals.serveHealth(ctx, health) },
		func(ctx context.Context) error { return in.metrics.serve(ctx, room.vitals) })
}
