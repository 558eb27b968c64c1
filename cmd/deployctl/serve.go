package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"runtime/debug"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/internal/grpcapi"
	"github.com/deployctl/deployctl/internal/settings"
	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"
)

func serveCommand(s *command.Surroundings) *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "serve the API, on a Temporal cluster and an S3 bucket",
		Flags: append([]cli.Flag{settingsFlag, checkFlag}, command.SettingFlags(settings.ForServe, settings.ForService)...),
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
			return serve(ctx, s, loaded)
		},
	}
}

// memoryLimit is what the collector of garbage tries to stay below, unless GOMEMLIMIT says otherwise: twice what large files leave
// behind would be too much, see the budget of grpcapi.
const memoryLimit = 320 << 20

func serve(ctx context.Context, s *command.Surroundings, loaded settings.Settings) error {
	if s.Variable("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	log := slog.New(slog.NewTextHandler(s.Err, nil))
	secure, err := certificate(loaded, log)
	if err != nil {
		return err
	}
	in, err := infrastructureOf(loaded, log)
	if err != nil {
		return err
	}
	defer in.metrics.close()
	listener, err := grpcapi.Listen(loaded.Get(settings.Listen), secure)
	if err != nil {
		return err
	}
	health, err := openHealth(loaded)
	if err != nil {
		return err
	}
	room, err := openRoom(ctx, in)
	if err != nil {
		_ = listener.Close() // nobody was served
		return err
	}
	defer room.close()
	kept, err := auditKept(loaded)
	if err != nil {
		return err
	}
	authority, err := startingAuthority(loaded, room, log)
	if err != nil {
		return err
	}
	log.Info("serving", "address", listener.Addr().String(), "temporal", in.temporal.address, "bucket", in.s3.bucket)
	config := in.metrics.calls(grpcapi.Config{
		Service: room.service, Authority: authority, Auditor: room.audit, TLS: secure, Log: log, Health: room.vitals.grpc,
	})
	return together(ctx,
		func(ctx context.Context) error { return grpcapi.Serve(ctx, listener, config) },
		func(ctx context.Context) error { return collectAudit(ctx, room.store, kept, log) },
		room.vitals.watch,
		func(ctx context.Context) error { return room.vitals.serveHealth(ctx, health) },
		func(ctx context.Context) error { return in.metrics.serve(ctx, room.vitals) })
}

// startingAuthority also knows the token of the settings, with which the first admin's token is created.
func startingAuthority(loaded settings.Settings, room *room, log *slog.Logger) (grpcapi.Authority, error) {
	token, err := loaded.Secret(settings.Token)
	if err != nil || token == "" {
		return room.authority, err
	}
	return grpcapi.BootstrapToken(token, room.authority, log), nil
}

// certificate reads the service's certificate; nil when there is none.
func certificate(loaded settings.Settings, log *slog.Logger) (*tls.Config, error) {
	cert, key := loaded.Get(settings.TLSCert), loaded.Get(settings.TLSKey)
	if cert == "" && key == "" {
		return nil, nil
	}
	return grpcapi.Certificate(cert, key, log)
}

// together runs parts until all have ended; the first that ends, well or not, ends the others.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error {
			defer cancel()
			return part(ctx)
		})
	}
	return group.Wait()
}
