package app

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/edge/pulumiapi"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

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
		if o.in.issuer != "" {
			o.warn("issuer", errNoIssuerListens)
		}
		return nil
	}
	listener, err := grpcapi.Listen(address, secure)
	o.add("Pulumi Service API", address, err)
	o.closes(listener)
	return listener
}

var errNoIssuerListens = errors.New("clouds find the keys of this issuer at the address of the Pulumi Service API, " +
	"and this serve has none: set pulumi-listen, unless another serve has it")

// servePulumi serves the Pulumi Service API, with the console if there is to be one, until ctx ends; with a nil
// listener it only waits.
func (n *node) servePulumi(ctx context.Context, listener net.Listener, c pulumiapi.Config) error {
	if listener == nil {
		<-ctx.Done()
		return nil
	}
	c.Service, c.Auditor, c.Issuer = n.stock, n.audit, n.store.Access.Issuer
	if err := n.addConsole(ctx, &c); err != nil {
		_ = listener.Close() // nobody was served
		return err
	}
	return pulumiapi.Serve(ctx, listener, c)
}
