package app

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// connect connects to the service that the settings name. If they name none, it connects to the embedded service and
// starts it if necessary.
func (t *commandTrace) connect(
	ctx context.Context, s settings.Settings, n console.Notifier,
) (console.Connection, error) {
	span, err := t.begin(s, n.Command)
	if err != nil {
		return console.Connection{}, err
	}
	if address := s.Get(settings.Server); address != "" {
		token, err := s.Secret(settings.Token)
		if err != nil {
			return console.Connection{}, err
		}
		return dial(ctx, client.Options{Address: address, Token: token, CAFile: authorityOf(s, address),
			Unreachable: n.Unreachable, Waiting: n.Waiting, FirstPatience: firstPatience, Span: span}, false)
	}
	return connectEmbedded(ctx, s, n, span)
}

// authorityOf returns the file with the certificates that must have signed that of the service at an address: that of
// the settings, or if that address is the embedded service's, its own certificate.
func authorityOf(s settings.Settings, address string) string {
	file := s.Get(settings.CACert)
	if file == "" {
		if status, err := devserver.ReadStatus(s.Get(settings.Home)); err == nil && status.APIAddress == address {
			return status.Certificate
		}
	}
	return file
}

// connectEmbedded connects to the embedded service. If it dies meanwhile, it is restarted once.
func connectEmbedded(
	ctx context.Context, s settings.Settings, n console.Notifier, span *tracing.Span,
) (console.Connection, error) {
	for attempt := 1; ; attempt++ {
		status, err := findEmbedded(ctx, s, n)
		if err != nil {
			return console.Connection{}, err
		}
		token, err := os.ReadFile(status.TokenFile)
		if err != nil {
			return console.Connection{}, deployments.Errorf(deployments.CodeUnavailable,
				"cannot read the embedded service's token: %w", err)
		}
		connection, err := dial(ctx, client.Options{
			Address: status.APIAddress, Token: strings.TrimSpace(string(token)), CAFile: status.Certificate,
			Unreachable: n.Unreachable, Waiting: n.Waiting, FirstPatience: firstPatience,
			Span:   span,
			Missed: (&restarter{home: status.Home, settings: s, say: n.Say}).look,
		}, true)
		if err == nil {
			stop := watchDisk(status.Home, n.Say)
			hangUp := connection.Close
			connection.Close = func() error { stop(); return hangUp() }
		}
		if err == nil || attempt == 2 || deployments.CodeOf(err) != deployments.CodeUnavailable {
			return connection, err
		}
	}
}

// firstPatience is how long to retry a service that has never answered, because its address may be wrong. A service
// that has answered before is retried without a limit.
const firstPatience = 4 * time.Second

func dial(ctx context.Context, o client.Options, embedded bool) (console.Connection, error) {
	c, err := client.Dial(o)
	if err != nil {
		return console.Connection{}, err
	}
	if err := c.Healthy(ctx); err != nil {
		_ = c.Close() // nothing is in flight
		return console.Connection{}, err
	}
	return console.Connection{Service: c, Embedded: embedded, Close: c.Close}, nil
}

const (
	startPatience = 2 * time.Minute
	startPoll     = 50 * time.Millisecond
)

// findEmbedded returns the status of the embedded service once it answers, and starts it if it is not running. If two
// commands start it at once, one process gets the home's lock and the other ends; both commands wait for the process
// that runs.
func findEmbedded(ctx context.Context, s settings.Settings, n console.Notifier) (devserver.Status, error) {
	home := s.Get(settings.Home)
	status, err := devserver.ReadStatus(home)
	if err != nil {
		return status, err
	}
	switch status.State {
	case devserver.Running:
		return status, nil
	}
	if n.Found {
		return status, deployments.Errorf(deployments.CodeUnavailable,
			"the embedded service is not running; start it with deployctl dev --background")
	}
	switch status.State {
	case devserver.Stopped:
		if err := devserver.DiskFull(home); err != nil {
			return status, err
		}
		if _, err := embeddedProgram(); err != nil {
			return status, err
		}
		n.Say("Starting the embedded service in the background; deployctl dev stop stops it, and nothing is lost.")
	case devserver.Stopping:
		n.Say("The embedded service is stopping; it is started again once it has stopped.")
	}
	var child *background
	patience, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		if status.State == devserver.Stopped && child.ended() {
			if child != nil {
				return status, child.failure()
			}
			if child, err = startBackground(status.Home, s); err != nil {
				return status, err
			}
		}
		select {
		case <-patience.Done():
			if ctx.Err() != nil {
				return status, ctx.Err()
			}
			return status, deployments.Errorf(deployments.CodeUnavailable,
				"the embedded service did not start within %s; deployctl dev logs shows why", startPatience)
		case <-time.After(startPoll):
		}
		if status, err = devserver.ReadStatus(home); err != nil {
			return status, err
		}
		if status.State == devserver.Running {
			return status, nil
		}
	}
}
