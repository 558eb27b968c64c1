package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/edge/pulumiapi"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sys/doors"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// commands returns, as console.Env.More, the commands that need parts of the service itself.
func commands(servers parts.Servers) func(*console.Env) []*cli.Command {
	return func(s *console.Env) []*cli.Command {
		return []*cli.Command{
			devCommand(s, servers), serveCommand(s), workerCommand(s), keyCommand(s), organizationCommand(s),
		}
	}
}

var (
	homeFlag = &cli.StringFlag{Name: settings.Home.Flag(), Usage: "`DIR` of the embedded service's data; not " +
		"set: ${XDG_STATE_HOME}/deployctl"}
	metricsFlag  = &cli.StringFlag{Name: settings.Metrics.Flag(), Usage: "serve Prometheus metrics on `HOST:PORT`"}
	settingsFlag = &cli.StringFlag{Name: "settings", Usage: "read settings from `FILE`; not set: DEPLOYCTL_SETTINGS, " +
		"or ${XDG_CONFIG_HOME}/deployctl/config.yaml"}
)

var (
	watchedStackFlag = &cli.StringFlag{Name: "stack", Aliases: []string{"s"}, Usage: "with --watch: the `STACK`; not set: " +
		"DEPLOYCTL_STACK, or the selected stack"}
	watchYesFlag = &cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "with --watch: do not ask for confirmation"}
)

func devCommand(s *console.Env, servers parts.Servers) *cli.Command {
	return &cli.Command{
		Name: "dev", Usage: "run the service on this machine: Temporal, its Web UI, an S3 server, the API and a worker",
		Flags: []cli.Flag{homeFlag, settingsFlag, metricsFlag, &cli.BoolFlag{Name: "background",
			Usage: "start it, wait until it answers, and leave it running"},
			&cli.BoolFlag{Name: "watch", Usage: "the same, and then update the stack of this directory now, and whenever a " +
				"file of the program changes, as deployctl watch does"}, watchedStackFlag, watchYesFlag},
		Action: func(c *cli.Context) error {
			if c.Bool("watch") {
				return watchOnEmbedded(c, s)
			}
			return serverAction(s, servers, runDev)(c)
		},
		Subcommands: []*cli.Command{
			devStopCommand(s), devStatusCommand(s), devLogsCommand(s), devResetCommand(s),
			{Name: "s3", Hidden: true, Usage: "run the S3 server alone", Flags: []cli.Flag{homeFlag, settingsFlag},
				Action: serverAction(s, servers, runDevS3)},
			{Name: "temporal", Hidden: true, Usage: "run Temporal alone", Flags: []cli.Flag{homeFlag, settingsFlag},
				Action: serverAction(s, servers, runDevTemporal)},
		},
	}
}

// watchOnEmbedded runs deployctl watch on the embedded service, which that command starts if it does not run.
func watchOnEmbedded(c *cli.Context, s *console.Env) error {
	loaded, err := console.LoadSettings(s, c)
	if err != nil {
		return err
	}
	if server := loaded.Get(settings.Server); server != "" {
		return deployments.Errorf(deployments.CodeInvalid, "dev --watch watches on the embedded service, and the server is "+
			"%s (set by %s): use deployctl watch", server, loaded.Source(settings.Server))
	}
	if c.IsSet(metricsFlag.Name) {
		return deployments.Errorf(deployments.CodeInvalid, "--%s takes effect at the start of the service: start it with "+
			"deployctl dev --background --%[1]s, and then watch", metricsFlag.Name)
	}
	watch := c.App.Command("watch")
	args := []string{watch.Name, "--yes=" + strconv.FormatBool(c.Bool(watchYesFlag.Name))}
	for _, flag := range []string{homeFlag.Name, settingsFlag.Name, watchedStackFlag.Name} {
		if c.IsSet(flag) {
			args = append(args, "--"+flag, c.String(flag))
		}
	}
	return watch.Run(c.Lineage()[1], args...) // in the place of this command
}

// devCall is one call of a command of dev.
type devCall struct {
	*console.Env
	flags    *cli.Context
	settings settings.Settings
	home     string
	servers  parts.Servers // of serverAction
}

func (d *devCall) say(format string, args ...any) { _, _ = fmt.Fprintf(d.Out, format+"\n", args...) }

// devAction returns a command's action, whose context ends with the first interrupt.
func devAction(s *console.Env, run func(context.Context, *devCall) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		loaded, err := console.LoadSettings(s, c)
		if err != nil {
			return err
		}
		ctx, cancel := untilInterrupted(c.Context, s)
		defer cancel()
		return run(ctx, &devCall{s, c, loaded, loaded.Get(settings.Home), nil})
	}
}

// serverAction is devAction for commands that run servers in this process, which a program without them leaves to the
// one that has them.
func serverAction(s *console.Env, servers parts.Servers, run func(context.Context, *devCall) error) cli.ActionFunc {
	return devAction(s, func(ctx context.Context, d *devCall) error {
		if servers == nil && !d.flags.Bool("background") {
			return becomeEmbedded(ctx)
		}
		d.servers = servers
		return run(ctx, d)
	})
}

// untilInterrupted returns a context that ends with the first interrupt. A Ctrl-C after that one ends the process at
// once.
func untilInterrupted(ctx context.Context, s *console.Env) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-s.Interrupts:
			signal.Reset(os.Interrupt)
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// ignoredFlags rejects flags that a running service cannot apply.
func (d *devCall) ignoredFlags() error {
	status, err := devserver.ReadStatus(d.home)
	if err != nil || status.State != devserver.Running || !d.flags.IsSet(metricsFlag.Name) {
		return err
	}
	return deployments.Errorf(deployments.CodeConflict,
		"the embedded service is already running, and --%s takes effect only at its start; stop it first with "+
			"deployctl dev stop", metricsFlag.Name)
}

// runDev runs the embedded service. Everything runs in this process except the S3 server, which is its child.
func runDev(ctx context.Context, d *devCall) error {
	if d.flags.Bool("background") {
		if err := d.ignoredFlags(); err != nil {
			return err
		}
		status, err := findEmbedded(ctx, d.settings, console.Notifier{Say: func(text string) { d.say("%s", text) }})
		if err == nil {
			d.sayStatus(status)
		}
		return err
	}
	codec := &uiCodec{}
	server, err := devserver.Start(ctx, devserver.Options{
		Home:      d.home,
		Servers:   d.servers,
		S3Command: func(home string) []string { return []string{selfPath(), "dev", "s3", "--home", home} },
		Codec:     codec.handler,
		NewLog:    func(to io.Writer) (*slog.Logger, error) { return newLog(to, d.settings) },
	})
	if err != nil {
		return devError(ctx, err)
	}
	err = serveEmbedded(ctx, d, server, codec)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	return errors.Join(err, server.Close(closing))
}

// closePatience bounds the time in which the servers end.
const closePatience = 20 * time.Second

// serveEmbedded runs the API and a worker until ctx ends or one of them fails, and returns once both have ended.
func serveEmbedded(ctx context.Context, d *devCall, server *devserver.Server, codec *uiCodec) error {
	token, tokenFile, err := localToken(server.Status.Home)
	if err != nil {
		return err
	}
	in, err := d.infrastructure(server)
	if err != nil {
		return err
	}
	defer in.metrics.close()
	defer closeTracing(in.tracing, exportRest)
	in.heap = heapLimit(d.Env, leastOfEmbedded, math.MaxInt64)
	kept, err := auditKept(d.settings)
	if err != nil {
		return err
	}
	node, err := openNode(ctx, in)
	if err != nil {
		return err
	}
	defer node.close()
	codec.follow(node.store.Keys.Ring())
	listener, err := grpcapi.Listen(server.Status.APIAddress, server.TLS)
	if err != nil {
		return err
	}
	listeners, err := d.openStock(server)
	if err == nil {
		err = renewStockToken(ctx, node.store, &server.Status)
	}
	if err != nil {
		return err
	}
	in.metrics.schedules(node.stock.CountSchedules)
	in.metrics.disk(in.dir)
	authority := grpcapi.OneToken(token, node.authority)
	memory, calls := grpcapi.NewMemory(), grpcapi.NewCalls()
	in.heap.Count(memory.Taken)
	stock := pulumiapi.Config{Memory: memory, Calls: calls,
		Authority: stockAuthority{authority, server.Status.PulumiTokenFile},
		Log:       server.Log, Since: time.Now(), Callback: callback, Counted: in.metrics.pulumi(), Tracing: in.tracing}
	return together(ctx,
		func(ctx context.Context) error { return node.servePulumi(ctx, listeners.api, stock) },
		func(ctx context.Context) error { return node.servePulumi(ctx, listeners.console, stock) },
		func(ctx context.Context) error {
			return grpcapi.Serve(ctx, doors.SameUser(listener), in.metrics.calls(grpcapi.Config{Memory: memory, Calls: calls,
				Service: node.service, Authority: authority, Auditor: node.audit, TLS: server.TLS,
				Log: server.Log, Health: node.readiness.grpc,
				Away: node.stock.Away, Tracing: in.tracing,
			}))
		},
		node.work,
		func(ctx context.Context) error { return collectAudit(ctx, node.store, kept, server.Log) },
		node.readiness.watch,
		func(ctx context.Context) error {
			defer watchDisk(server.Status.Home, func(text string) { server.Log.Error(text) })()
			<-ctx.Done()
			return nil
		},
		func(ctx context.Context) error { return in.metrics.serve(ctx, node.readiness) },
		func(ctx context.Context) error { return d.announce(ctx, server, tokenFile) })
}

// announce says that the service runs, and when ctx ends, that it is about to end.
func (d *devCall) announce(ctx context.Context, server *devserver.Server, tokenFile string) error {
	if err := server.Announce(tokenFile); err != nil {
		return err
	}
	status := server.Status
	status.State, status.TokenFile = devserver.Running, tokenFile
	d.sayStatus(status)
	<-ctx.Done()
	d.say("Stopping: running steps may finish, for up to 30 seconds; press Ctrl-C to stop at once.")
	return server.AnnounceEnd()
}

// infrastructure returns the embedded servers, with the sandbox, the retention and the metrics of the settings.
func (d *devCall) infrastructure(server *devserver.Server) (in infrastructure, err error) {
	if in, err = embeddedInfrastructure(server, filepath.Join(server.Status.Home, "work")); err != nil {
		return in, err
	}
	hide := slices.Concat(secretFiles(d.settings), stockTokens(), []string{server.Status.Home})
	if in.sandbox, err = openSandbox(d.settings, sandbox.Options{Hide: hide, OneUser: true}, server.Log); err != nil {
		return in, err
	}
	if in.retention, err = retentionOf(d.settings); err != nil {
		return in, err
	}
	if in.plugins, err = pluginsOf(d.settings); err != nil {
		return in, err
	}
	in.sources = sourcesOf(d.settings)
	in.sources.Private = true // as below
	if in.plugins != nil {
		in.plugins.Private = true // the programs of its one user reach this machine anyway
	}
	in.webhooks.Private = true
	if in.lease, err = leaseOf(d.settings); err != nil {
		return in, err
	}
	if in.pages, err = pagesOf(d.settings, server.Status.UIURL+"/namespaces/"+server.Status.Namespace); err != nil {
		return in, err
	}
	in.pages.tellWhere(server.Status.Home)
	if in.issuer, err = issuerOf(d.settings); err != nil {
		return in, err
	}
	if in.tracing, err = tracingOf(d.settings, "deployctl-dev", server.Status.Instance, server.Log); err != nil {
		return in, err
	}
	if in.metrics, err = openExporter(d.settings, server.Log); err == nil {
		in.metrics.spans(in.tracing)
	}
	return in, err
}

// devError adds an error code to the errors of a service that cannot start. An interrupt during the start is no error.
func devError(ctx context.Context, err error) error {
	var running *devserver.RunningError
	var taken *devserver.PortTakenError
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return nil // interrupted while starting
	case errors.As(err, &running):
		return deployments.Errorf(deployments.CodeConflict, "%w", err)
	case errors.As(err, &taken):
		return deployments.Errorf(deployments.CodeUnavailable, "%w", err)
	}
	return err
}

func runDevS3(ctx context.Context, d *devCall) error {
	return devserver.ServeS3(ctx, d.home, d.servers)
}

func runDevTemporal(ctx context.Context, d *devCall) error {
	server, err := devserver.StartTemporal(ctx, d.home, d.servers)
	if err != nil {
		return devError(ctx, err)
	}
	<-ctx.Done()
	return server.Close(context.WithoutCancel(ctx))
}
