package main

import (
	"log/slog"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/internal/settings"
	"github.com/urfave/cli/v2"
)

func workerCommand(s *command.Surroundings) *cli.Command {
	return &cli.Command{
		Name: "worker", Usage: "carry out updates, on a Temporal cluster and an S3 bucket",
		Flags: append([]cli.Flag{settingsFlag, checkFlag}, command.SettingFlags(settings.ForService)...),
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
			in, err := infrastructureOf(loaded, slog.New(slog.NewTextHandler(s.Err, nil)))
			if err != nil {
				return err
			}
			defer in.metrics.close()
			if in.sandbox, err = openSandbox(loaded, append(secretFiles(loaded), cloudFiles()...), in.log); err != nil {
				return err
			}
			room, err := openRoom(ctx, in)
			if err != nil {
				return err
			}
			defer room.close()
			return together(ctx, room.work, in.metrics.serve)
		},
	}
}
