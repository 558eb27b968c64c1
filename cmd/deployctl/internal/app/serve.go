package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/collector"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/edge/pulumiapi"
	"github.com/deployctl/deployctl/internal/sys/heap"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/statestore"
	"github.com/urfave/cli/v2"
	"golang.org/x/sync/errgroup"
)

func serveCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "serve", Usage: "serve the API, with your own Temporal cluster and S3 bucket",
		Flags: append([]cli.Flag{settingsFlag, checkFlag}, console.SettingFlags(settings.ForServe,
			settings.ForService, settings.ForEach)...),
		Action: func(c *cli.Context) error {
			loaded, err := console.LoadSettings(s, c)
			if err != nil {
				return err
			}
			ctx, cancel := untilInterrupted(c.Context, s)
			defer cancel()
			return serve(ctx, newStart(s, loaded), c.Bool(checkFlag.Name))
		},
	}
}

// What the collector leaves a process in any case before it begins; see heapLimit.
const (
	leastOfServe    = 320 << 20
	leastOfWorker   = 256 << 20
	leastOfEmbedded = 512 << 20
)

// heapLimit has the collector double at most so much, and only of what is in use beside pools of memory, unless
// GOMEMLIMIT is set: without a limit, the garbage of large files would double the memory of the process.
func heapLimit(s *console.Env, least, most int64) *heap.Limit {
	collector.Begin()
	if s.Variable("GOMEMLIMIT") != "" {
		return nil
	}
	return heap.Begin(least, most)
}

// serve serves the API until ctx ends; with check it returns before it begins to serve.
func serve(ctx context.Context, o *start, check bool) error {
	defer o.close()
	heapLimit(o.Env, leastOfServe, 0) // its callers decide about all that it has
	api := o.openAPI()
	pulumi := o.openPulumi(api.secure)
	lease, err := leaseOf(o.settings)
	o.setting(err)
	o.in.lease = lease
	o.openPages(pulumi != nil)
	o.in.issuers = outbound.Hosts(o.settings.Get(settings.TrustPrivateHosts))
	kept, err := auditKept(o.settings)
	o.setting(err)
	o.openTracing("deployctl-serve")
	token, err := o.settings.Secret(settings.BootstrapToken)
	o.setting(err)
	o.setUp = true
	o.stand(ctx, check)
	authority := o.authority(ctx, token)
	o.tryLogin(ctx)
	if begins, err := o.begins(check); !begins {
		return err
	}
	in, node, log := o.in, o.node, o.in.log
	in.metrics.certificate(api.secure)
	in.metrics.schedules(node.stock.CountSchedules)
	if api.secure != nil {
		// so that the log shows why clients cannot connect
		node.readiness.alsoNeeds(func() error { return expired(api.secure) })
	}
	log.Info("serving", "address", api.Addr().String(), "temporal", in.temporal.address, "bucket", in.s3.bucket)
	memory, calls := grpcapi.NewMemory(), grpcapi.NewCalls()
	config := in.metrics.calls(grpcapi.Config{Memory: memory, Calls: calls,
		Service: node.service, Authority: authority, Auditor: node.audit, TLS: api.secure, Log: log,
		Tracing: in.tracing,
		Health:  node.readiness.grpc,
		Away:    node.stock.Away,
	})
	return together(ctx,
		func(ctx context.Context) error { return grpcapi.Serve(ctx, api, config) },
		func(ctx context.Context) error {
			return node.servePulumi(ctx, pulumi, pulumiapi.Config{Memory: memory, Calls: calls, Authority: authority,
				TLS: api.secure,
				Log: log, Counted: in.metrics.pulumi(), Tracing: in.tracing})
		},
		func(ctx context.Context) error { return collectAudit(ctx, node.store, kept, log) },
		func(ctx context.Context) error { return in.metrics.followQuotas(ctx, node.stock, log) },
		node.readiness.watch,
		func(ctx context.Context) error { return node.readiness.serveHealth(ctx, o.health) },
		func(ctx context.Context) error { return in.metrics.serve(ctx, node.readiness) })
}

// apiListener listens for calls; secure is nil on loopback without a certificate.
type apiListener struct {
	net.Listener
	secure *tls.Config
}

// openAPI opens the address of the API with its certificate.
func (o *start) openAPI() apiListener {
	address := o.settings.Get(settings.Listen)
	secure, err := certificate(o.settings, o.in.log)
	if err != nil {
		o.add("certificate", "", err)
		return apiListener{}
	}
	if secure != nil {
		o.certificateEnds(secure)
	}
	listener, err := grpcapi.Listen(address, secure)
	o.add("API", address, err)
	o.closes(listener)
	return apiListener{listener, secure}
}

// soon is how long before a certificate's expiry a warning is logged.
const soon = 7 * 24 * time.Hour

// certificateEnds adds a finding about the certificate's expiry.
func (o *start) certificateEnds(secure *tls.Config) {
	switch ends, err := grpcapi.CertificateEnds(secure); {
	case err != nil:
		o.add("certificate", "", err)
	case time.Until(ends) < soon:
		o.warn("certificate", fmt.Errorf("it expires on %s: renew it", ends.Format(time.RFC3339)))
	default:
		o.add("certificate", "until "+ends.Format(time.RFC3339), nil)
	}
}

// expired returns an error if the certificate in use has expired.
func expired(secure *tls.Config) error {
	if ends, err := grpcapi.CertificateEnds(secure); err == nil && time.Now().After(ends) {
		return fmt.Errorf("the certificate (tls-cert) expired on %s: replace it", ends.Format(time.RFC3339))
	}
	return nil
}

// authority returns the authority of the service's tokens and of serve's own token, with which the first admin's token
// is created. The setting token belongs to clients, and may be set for one in the same shell. For compatibility with
// older releases it counts as serve's own token while no admin of all organizations has one.
func (o *start) authority(ctx context.Context, token string) grpcapi.Authority {
	if o.node == nil {
		return nil
	}
	if token != "" {
		o.add("first token", "serve has its own ("+string(settings.BootstrapToken)+")", nil)
		return grpcapi.BootstrapToken(token, o.node.authority, o.in.log)
	}
	admin, err := o.node.authority.HasAdmin(ctx)
	switch {
	case err != nil:
		o.warn("first token", err)
		return o.node.authority
	case admin:
		o.add("first token", "an admin of all organizations has one", nil)
		return o.node.authority
	}
	if token, err = o.settings.Secret(settings.Token); err == nil && token != "" {
		o.warn("first token", errClientsToken)
		return grpcapi.BootstrapToken(token, o.node.authority, o.in.log)
	}
	o.warn("first token", errNoToken)
	return o.node.authority
}

var (
	errClientsToken = errors.New("no admin of all organizations has a token, so the token in token or token-file, " +
		"which is meant for clients, may do " +
		"everything: give serve its own with bootstrap-token-file")
	errNoToken = errors.New("no admin of all organizations has a token, and serve has none of its own: create one " +
		"(`openssl rand -hex 32 > FILE`), start serve with --bootstrap-token-file FILE, and create the admin's token " +
		"with `DEPLOYCTL_TOKEN_FILE=FILE deployctl token create NAME --role admin --organization '*' --server HOST:PORT`")
)

// certificate reads the service's certificate; nil if there is none.
func certificate(loaded settings.Settings, log *slog.Logger) (*tls.Config, error) {
	cert, key := loaded.Get(settings.TLSCert), loaded.Get(settings.TLSKey)
	if cert == "" && key == "" {
		return nil, nil
	}
	return grpcapi.Certificate(cert, key, log)
}

// together runs parts until all have ended; the first that ends, with or without an error, ends the others. A call that
// was cut off because ctx ended is no error.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error {
			defer cancel()
			return part(ctx)
		})
	}
	err := group.Wait()
	if asked.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// auditEvery is how often old entries of the audit log are removed.
const auditEvery = 6 * time.Hour

// expiredKept is how long given and derived tokens are listed after they have expired.
const expiredKept = 24 * time.Hour

// collectAudit removes old entries of the audit log until ctx ends. Any number of processes may do it.
func collectAudit(ctx context.Context, store *statestore.Store, kept time.Duration, log *slog.Logger) error {
	for {
		if err := store.Access.CollectAudit(ctx, time.Now().Add(-kept)); err != nil && ctx.Err() == nil {
			log.Warn("old entries of the audit log were not removed", "error", err)
		}
		if err := store.Access.CollectTokens(ctx, time.Now().Add(-expiredKept)); err != nil && ctx.Err() == nil {
			log.Warn("expired tokens were not removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(auditEvery):
		}
	}
}
