// Package pluginhost finds, starts, configures and stops the plugins of one update: the language host of its program,
// the providers of its packages, and its policy packs.
//
// A Host belongs to one update and owns every process it starts: Cancel, handshake and parameterisation are per
// process, so processes are never shared. They run in the program's directory with only the environment of the update,
// each in a process group of its own, and none survives Close.
package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/sys/doors"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	codegenrpc "github.com/pulumi/pulumi/sdk/v3/proto/go/codegen"
	"google.golang.org/grpc"
)

const (
	// startTimeout bounds the time from the start of a plugin to its first answer, with room for slow disks and cold
	// caches.
	startTimeout = 2 * time.Minute
	// stopGrace is how long a plugin may take to end after it was asked to.
	stopGrace = 5 * time.Second
	// claimedVersion is the version of the Pulumi CLI whose behaviour programs may rely on.
	claimedVersion = "3.274.1"
)

// Options describe the update whose plugins a Host runs.
type Options struct {
	RootDir    string             // the directory of Pulumi.yaml
	Bundle     string             // the directory of all that the update takes along; empty: RootDir
	Project    *workspace.Project // the program, its runtime and its "plugins"; nil without a program
	PulumiHome string             // where plugins are installed; empty: PULUMI_HOME or HOME of Env
	Env        []string           // the whole environment of plugins and program, as KEY=value
	Config     map[string]string  // the stack's configuration in plain text, by "namespace:key"
	Log        func(Message)      // receives all messages of plugins and program, from many goroutines
	// Phase is called at the start of something that may take long; the function that it returns, at its end. May be nil.
	Phase func(text string) (end func())
	// Box is the sandbox in which every process of the update is started; nil: none.
	Box *sandbox.Box
	// Intake bounds the memory of messages that plugins and program send; nil: nothing does.
	Intake *intake.Intake
	// Fetch returns the directory of a plugin that is not installed, after it was downloaded; nil: nothing is downloaded.
	Fetch func(context.Context, plugins.Request) (dir string, err error)
	// Install installs what a plugin that is source code imports: it calls install, unless nothing is missing in the
	// plugin's directory. nil: install is called each time.
	Install func(
		ctx context.Context, dir string, runtime workspace.ProjectRuntimeInfo, install func(context.Context) error,
	) error
	// Spares is the number of processes that are certainly needed. They are started in advance; see process.Spares.
	Spares int
	// Reserve are processes from which these are taken, as long as there are any; may be nil.
	Reserve *process.Spares
	// Builtin are the packages that the engine itself provides, served in this process; each call creates one provider.
	Builtin map[string]func() pulumirpc.ResourceProviderServer
	// Included are the packages whose plugin is this binary under the plugin's name, with what the environment of its
	// process ends with, as KEY=value.
	Included map[string][]string
}

// Host runs the plugins of one update. Its methods may be called from any goroutine. Close it.
type Host struct {
	opts    Options
	env     environment
	program program
	finder  finder
	engine  *engineServer
	views   *viewServer
	server  *grpc.Server
	address string
	spares  *process.Spares

	connections int           // that a port may have at a time
	starting    chan struct{} // has an element for each provider that is starting
	mostAlive   int           // providers
	mostStarted int           // providers

	ctx    context.Context // of every call to a plugin; ends with the Host
	cancel context.CancelFunc

	mu        sync.Mutex
	closed    bool
	providers map[providerKey]*providerSlot
	alive     int // providers that start or run
	started   int // providers, so far
	languages []*Language
	analyzers []*endpoint
	schemas   schemaCache
	refusal   sync.Once // of the message about a refused connection
}

// New returns a Host. It serves, on one loopback address, the services that plugins and programs call: Engine, Loader,
// Mapper and ResourceStatus. It starts no plugin yet.
func New(opts Options) (*Host, error) {
	root, err := filepath.Abs(opts.RootDir)
	if err != nil {
		return nil, err
	}
	opts.RootDir = root
	if opts.Bundle == "" {
		opts.Bundle = root
	}
	if opts.Log == nil {
		opts.Log = func(Message) {}
	}
	if opts.Box == nil {
		opts.Box = sandbox.Open()
	}
	if opts.Phase == nil {
		opts.Phase = func(string) func() { return func() {} }
	}
	if opts.Project != nil {
		if err := requireVersion(opts.Project.RequiredPulumiVersion); err != nil {
			return nil, fmt.Errorf("requiredPulumiVersion in Pulumi.yaml: %w", err)
		}
	}
	prog, err := findProgram(root, opts.Project, opts.Box)
	if err != nil {
		return nil, err
	}

	h := &Host{
		opts: opts, env: environment(opts.Env), program: prog,
		providers: map[providerKey]*providerSlot{},
		schemas:   schemaCache{intake: opts.Intake, known: map[string][]byte{}}, connections: mostConnections,
		starting: make(chan struct{}, mostStarting), mostAlive: mostProviders, mostStarted: mostStarted,
	}
	h.finder = finder{env: h.env, home: h.pulumiHome(), root: root, project: opts.Project, box: opts.Box}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	if err := h.serve(); err != nil {
		h.cancel()
		return nil, fmt.Errorf("serving plugins: %w", err)
	}
	h.spares = process.NewSpares(opts.Box, opts.Spares, opts.Reserve)
	return h, nil
}

func (h *Host) serve() error {
	listener, err := h.Listen()
	if err != nil {
		return err
	}
	h.address = listener.Addr().String()
	h.engine = &engineServer{log: h.opts.Log}
	h.views = &viewServer{intake: h.opts.Intake, open: map[string]*Views{}}
	h.server = grpc.NewServer(ServerOptions(nil)...)
	pulumirpc.RegisterEngineServer(h.server, h.engine)
	pulumirpc.RegisterResourceStatusServer(h.server, h.views)
	codegenrpc.RegisterLoaderServer(h.server, &loaderServer{schema: h.schema})
	codegenrpc.RegisterMapperServer(h.server, mapperServer{})
	go func() { _ = h.server.Serve(listener) }() // ends by Stop
	return nil
}

// Listen listens on a loopback address; only processes of the update can connect.
func (h *Host) Listen() (net.Listener, error) {
	listener, err := doors.Listen(h.opts.Box, func(net.Addr) { h.refusal.Do(h.tellRefusal) })
	if err != nil {
		return nil, err
	}
	return h.opts.Intake.Listen(newBounded(listener, h.connections, h.opts.Log)), nil
}

func (h *Host) tellRefusal() {
	h.opts.Log(Message{Severity: diag.Warning, Text: "A process that is none of this update's has connected to a " +
		"port of its engine, and was refused."})
}

// Address returns the address of the Engine, Loader, Mapper and ResourceStatus services, as host:port.
func (h *Host) Address() string { return h.address }

// Start starts a process of the update that is no plugin, in the program's directory. Whoever starts it stops it.
func (h *Host) Start(c process.Command) (*process.Process, error) {
	c.Dir, c.Env, c.Box, c.Spares = h.program.dir, h.env.with(), h.opts.Box, h.spares
	return process.Start(c)
}

// ProgramDir returns the directory in which the program and all plugins run.
func (h *Host) ProgramDir() string { return h.program.dir }

// RootResource returns the URN of the stack, once the program has set it; else "".
func (h *Host) RootResource() string { return h.engine.root() }

// Cancel asks every provider to abort its calls (the Cancel RPC). It returns when all have answered; the calls in
// flight end on their own, with an answer or an error.
func (h *Host) Cancel(ctx context.Context) error {
	var asking sync.WaitGroup
	running := h.running()
	errs := make([]error, len(running))
	for i, p := range running {
		asking.Go(func() { errs[i] = p.SignalCancellation(ctx) })
	}
	asking.Wait()
	return errors.Join(errs...)
}

// Close asks the program and every plugin to end, and returns when all their processes have ended. Processes that still
// run after stopGrace, or at the context's deadline, are killed.
func (h *Host) Close(ctx context.Context) {
	h.mu.Lock()
	h.closed = true
	languages, analyzers := h.languages, h.analyzers
	h.mu.Unlock()

	grace := stopGrace
	if deadline, ok := ctx.Deadline(); ok {
		grace = min(grace, max(0, time.Until(deadline)))
	}
	var stopping sync.WaitGroup
	for _, l := range languages {
		stopping.Go(func() { l.end.stop(grace) })
	}
	for _, a := range analyzers {
		stopping.Go(func() { a.stop(grace) })
	}
	for _, slot := range h.slots() {
		stopping.Go(func() {
			<-slot.ready
			if slot.provider != nil {
				slot.provider.end.stop(grace)
			}
		})
	}
	h.cancel() // also ends providers that are still starting
	stopping.Go(h.spares.Close)
	stopping.Wait()
	h.server.Stop()
	h.schemas.drop()
	h.views.drop()
}

func (h *Host) slots() []*providerSlot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.providers))
}

// running returns the providers that have started and are alive.
func (h *Host) running() []*Provider {
	var running []*Provider
	for _, slot := range h.slots() {
		select {
		case <-slot.ready:
			if slot.provider != nil && slot.provider.Alive() {
				running = append(running, slot.provider)
			}
		default:
		}
	}
	return running
}

func (h *Host) pulumiHome() string {
	if h.opts.PulumiHome != "" {
		return h.opts.PulumiHome
	}
	if dir := h.env.get("PULUMI_HOME"); dir != "" {
		return dir
	}
	if dir := h.opts.Box.PulumiHome(); dir != "" {
		return dir
	}
	home := h.env.get("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	return filepath.Join(home, ".pulumi")
}
