package app

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/grpcapi"
	"github.com/deployctl/deployctl/internal/pulumiapi"
	"github.com/deployctl/deployctl/internal/settings"
)

// pulumiUsual is where the embedded service serves the Pulumi Service API if nobody else has the port: the stock CLI
// prints links to the console, and logs in with a browser, only for this address.
const pulumiUsual = "localhost:8080"

// pulumiConsole is where the stock CLI looks for the console of that address.
const pulumiConsole = "localhost:3000"

// leaseOf reads how long an update of the stock CLI may go without renewing its lease.
func leaseOf(s settings.Settings) (time.Duration, error) {
	text := s.Get(settings.PulumiLease)
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > deployments.LeaseDuration {
		return 0, deployments.Errorf(deployments.CodeInvalid,
			"%s must be a duration from 1s to %s, such as 5m, not %q (set by %s)", settings.PulumiLease,
			deployments.LeaseDuration, text, s.Source(settings.PulumiLease))
	}
	return d, nil
}

// openPulumi opens the address of the Pulumi Service API, if it is to be served.
func (o *start) openPulumi(secure *tls.Config) net.Listener {
	address := o.settings.Get(settings.PulumiListen)
	if address == "" {
		return nil
	}
	listener, err := grpcapi.Listen(address, secure)
	o.add("Pulumi Service API", address, err)
	o.closes(listener)
	return listener
}

// openPulumi opens the address of the Pulumi Service API of the embedded service, and writes it to its status. Once the
// service had an address of its own, it keeps that: CLIs have logged in there.
func (d *devCall) openPulumi(server *devserver.Server) (net.Listener, error) {
	addresses := []string{pulumiUsual, server.PulumiAddress}
	if server.Status.PulumiAddress == server.PulumiAddress {
		slices.Reverse(addresses)
	}
	if wanted := d.settings.Get(settings.PulumiListen); wanted != "" {
		addresses = []string{wanted}
	}
	var listener net.Listener
	var err error
	for _, address := range addresses {
		if listener, err = grpcapi.Listen(address, nil); err == nil {
			server.Status.PulumiAddress = address
			return listener, nil
		}
	}
	return nil, err
}

// openConsole opens the address of the console, if the Pulumi Service API is where its CLI looks for one and nobody
// else has the port, and writes it to the status of the service; else it returns nil.
func (d *devCall) openConsole(server *devserver.Server) net.Listener {
	if server.Status.PulumiAddress != pulumiUsual {
		return nil
	}
	listener, err := grpcapi.Listen(pulumiConsole, nil)
	if err != nil {
		return nil
	}
	server.Status.ConsoleAddress = pulumiConsole
	return listener
}

// servePulumi serves the Pulumi Service API until ctx ends; with a nil listener it only waits.
func (n *node) servePulumi(ctx context.Context, listener net.Listener, c pulumiapi.Config) error {
	if listener == nil {
		<-ctx.Done()
		return nil
	}
	c.Service, c.Auditor = n.stock, n.audit
	return pulumiapi.Serve(ctx, listener, c)
}
