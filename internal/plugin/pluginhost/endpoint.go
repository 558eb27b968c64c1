package pluginhost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/sys/doors"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"
)

// endpoint is a running plugin: a connection to a process, or to a server in this process.
type endpoint struct {
	name   string
	conn   *grpc.ClientConn
	proc   *process.Process // nil if the server is in this process
	died   chan struct{}    // closed once it can no longer answer
	tail   *tail
	intake *intake.Intake // of its answers
	// program tells its executable from others and from later builds; empty if that is not known.
	program string

	stopping atomic.Bool // stop was called
	shutdown func(grace time.Duration)
}

// stop asks the plugin to end, kills it after the grace period, and returns when it has ended.
func (e *endpoint) stop(grace time.Duration) {
	e.stopping.Store(true)
	e.shutdown(grace)
}

// launchSpec describes how to start a plugin.
type launchSpec struct {
	name   string // for messages
	path   string
	as     string // what the process is called; empty: path
	args   []string
	dir    string
	env    []string
	box    *sandbox.Box
	intake *intake.Intake
	spares *process.Spares
	stdin  bool                        // see process.Command
	output func(diag.Severity, string) // Info for stdout, Infoerr for stderr
	shown  bool                        // users see the output as it is written
}

// maxStarts is how often a plugin is started until nobody else is connected to it.
const maxStarts = 10

// launch starts a plugin, reads its port from its first line of output, and connects. A plugin to which another process
// was connected first is killed, and started again at another port: whoever else is on the machine costs no update.
func launch(ctx context.Context, spec launchSpec) (*endpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for starts := 1; ; starts++ {
		e, err := start(ctx, spec)
		var stranger *doors.StrangerError
		if starts == maxStarts || !errors.As(err, &stranger) {
			return e, err
		}
		spec.output(diag.Infoerr, fmt.Sprintf("%s is started again: %v", spec.name, stranger))
	}
}

func start(ctx context.Context, spec launchSpec) (*endpoint, error) {
	e := &endpoint{name: spec.name, died: make(chan struct{}), tail: &tail{shown: spec.shown}, intake: spec.intake,
		program: build(spec.box, spec.path)}
	first := make(chan string, 1)
	listening := sync.Once{}
	proc, err := process.Start(process.Command{
		Path: spec.path, Name: spec.as, Args: spec.args, Dir: spec.dir, Env: spec.env, Box: spec.box, Spares: spec.spares,
		Stdin: spec.stdin,
		Stdout: func(line string) {
			said := false
			listening.Do(func() { first <- line; said = true })
			if !said {
				e.tail.add(line)
				spec.output(diag.Info, line)
			}
		},
		Stderr: func(line string) { e.tail.add(line); spec.output(diag.Infoerr, line) },
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.name, err)
	}
	e.proc = proc
	e.shutdown = proc.Stop
	go func() { <-proc.Ended(); close(e.died) }()

	if err := e.connect(ctx, first, spec.box); err != nil {
		proc.Kill()
		return nil, fmt.Errorf("starting %s (%s): %w%s", spec.name, cmp.Or(spec.as, filepath.Base(spec.path)), err,
			e.tail.text())
	}
	go func() {
		<-e.died
		_ = e.conn.Close() // prevents a reconnect: another process may have the port by then
	}()
	return e, nil
}

// build tells an executable from others and from later builds of it; empty if it cannot be found.
func build(box *sandbox.Box, path string) string {
	info, err := box.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(path, " ", info.Size(), " ", info.ModTime().UnixNano())
}

// connect waits for the line with the port, and then for the connection.
func (e *endpoint) connect(ctx context.Context, first <-chan string, box *sandbox.Box) error {
	var line string
	select {
	case line = <-first:
	case <-e.proc.Done():
		err := fmt.Errorf("it ended before it said where it listens (%s)", e.proc.Exit())
		if e.proc.Exit().Signal != "" {
			return &LostError{err.Error()}
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("it did not say where it listens: %w", context.Cause(ctx))
	}
	return e.connectPort(ctx, line, box)
}

// connectPort connects to the port that a plugin's first line of output names.
func (e *endpoint) connectPort(ctx context.Context, line string, box *sandbox.Box) error {
	port, err := strconv.ParseUint(strings.TrimSpace(line), 10, 16)
	if err != nil || port == 0 {
		return fmt.Errorf("its first line of output must be the port that it listens on, and is %q", line)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	door := &door{box: box, port: uint16(port), intake: e.intake, avoid: cancel}
	if err := e.dial(ctx, "passthrough:///plugin", grpc.WithContextDialer(door.dial),
		grpc.WithIdleTimeout(0)); err != nil {
		return err
	}
	if door.closed() {
		go e.keepConnected()
	}
	return nil
}

// door dials a plugin. Once it is sealed, the plugin accepts no further connection, so a broken one cannot be replaced.
type door struct {
	box   *sandbox.Box
	port  uint16
	avoid context.CancelCauseFunc // ends the attempt to connect, because the port must not be used

	intake *intake.Intake

	mu     sync.Mutex
	sealed bool
}

func (d *door) dial(ctx context.Context, _ string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sealed {
		return nil, errors.New("the connection to it broke, and there is only one")
	}
	conn, sealed, err := doors.Dial(ctx, d.box, d.port)
	d.sealed = sealed
	if errors.As(err, new(*doors.StrangerError)) {
		d.sealed = true
		d.avoid(err)
	}
	if err != nil {
		return nil, err
	}
	return d.intake.Connect(conn), nil
}

func (d *door) closed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sealed
}

// callPause is the interval of keepConnected. It is shorter than the idle timeout of any server.
const callPause = time.Minute

// keepConnected calls the plugin regularly, so that it does not close the only connection as idle.
func (e *endpoint) keepConnected() {
	tick := time.NewTicker(callPause)
	defer tick.Stop()
	client := pulumirpc.NewResourceProviderClient(e.conn)
	for {
		select {
		case <-e.died:
			return
		case <-tick.C:
			ctx, cancel := context.WithTimeout(context.Background(), callPause)
			_, _ = client.GetPluginInfo(ctx, &emptypb.Empty{}) // any answer keeps the connection open
			cancel()
		}
	}
}

// dial connects and waits until the plugin accepts calls.
func (e *endpoint) dial(ctx context.Context, target string, opts ...grpc.DialOption) error {
	conn, err := grpc.NewClient(target, append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pluginprotocol.MaxMessage),
			grpc.MaxCallSendMsgSize(pluginprotocol.MaxMessage), intake.ClientCodec()),
		grpc.WithStatsHandler(callWatcher{}), grpc.WithStatsHandler(&intake.Watcher{}),
		grpc.WithChainUnaryInterceptor(markDelivery, checkAnswer),
		grpc.WithChainStreamInterceptor(markStream),
	)...)
	if err != nil {
		return err
	}
	e.conn = conn

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-e.died:
			cancel(fmt.Errorf("it ended while it was being connected to"))
		case <-ctx.Done():
		}
	}()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.Idle {
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			_ = conn.Close()
			return fmt.Errorf("connecting to it: %w", context.Cause(ctx))
		}
	}
	return nil
}

// embed runs a server in this process as if it were a plugin; register adds its services. It listens on no network
// address.
func embed(name string, register func(*grpc.Server), opts ...grpc.ServerOption) (*endpoint, error) {
	listener := bufconn.Listen(1 << 20)
	opts = append(opts, panics.ServerOptions(nil)...)
	server := grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(pluginprotocol.MaxMessage),
		grpc.MaxSendMsgSize(pluginprotocol.MaxMessage))...)
	register(server)
	go func() { _ = server.Serve(listener) }() // ends by Stop

	e := &endpoint{name: name, died: make(chan struct{}), tail: &tail{}, program: "this process"}
	stop := sync.OnceFunc(func() {
		server.Stop()
		_ = e.conn.Close()
		close(e.died)
	})
	e.shutdown = func(time.Duration) { stop() }
	dialer := grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return listener.DialContext(ctx)
	})
	if err := e.dial(context.Background(), "passthrough:///embedded", dialer); err != nil {
		server.Stop()
		return nil, err
	}
	return e, nil
}

func (e *endpoint) alive() bool {
	select {
	case <-e.died:
		return false
	default:
		return true
	}
}

// deathTime bounds the wait for the end of a process whose connection has broken.
const deathTime = 5 * time.Second

// awaitDeath waits, after the connection broke, until the end of the process is known. The usual reason of a broken
// connection is the end of the process, which is noticed a little later.
func (e *endpoint) awaitDeath() {
	timer := time.NewTimer(deathTime)
	defer timer.Stop()
	select {
	case <-e.died:
	case <-timer.C:
	}
}

// exit returns how the process ended, in brackets after a space; "" if it still runs or there is no process.
func (e *endpoint) exit() string {
	if e.proc == nil || e.alive() {
		return ""
	}
	return " (" + e.proc.Exit().String() + ")"
}

// tail keeps the last lines that a plugin wrote, for the message about its unexpected end.
type tail struct {
	shown bool // the user has seen the lines

	mu    sync.Mutex
	lines []string
}

const tailLines = 20

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	if len(t.lines) > tailLines {
		t.lines = t.lines[len(t.lines)-tailLines:]
	}
}

// text returns the lines, indented below a message, or where they are; "" if there are none.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 {
		return ""
	}
	if t.shown {
		return "; what it wrote is above"
	}
	return "; it wrote:\n    " + strings.Join(t.lines, "\n    ")
}
