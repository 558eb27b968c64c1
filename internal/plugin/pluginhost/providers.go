package pluginhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver"
	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/languagehost"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The packages whose resources are implemented by functions of a program, in Node and in Python.
const (
	NodeDynamicProvider   = "pulumi-nodejs"
	PythonDynamicProvider = "pulumi-python"
)

// IsDynamic reports whether the resources of a package are implemented by functions of a program.
func IsDynamic(pkg string) bool { return pkg == NodeDynamicProvider || pkg == PythonDynamicProvider }

// errClosed is the error of a Host after Close.
var errClosed = errors.New("the update's plugins have been stopped")

type providerKey struct{ pkg, instance string }

// providerSlot is a provider that is starting (ready is open), runs, has failed to start, or has died.
type providerSlot struct {
	ready    chan struct{}
	provider *Provider
	err      error
}

// usable reports whether a slot's provider is starting or can be called.
func (s *providerSlot) usable() bool {
	select {
	case <-s.ready:
		return s.err == nil && s.provider.Alive() && !s.provider.unusable()
	default:
		return true
	}
}

// Provider returns the provider of a package that belongs to an instance, starting it if it does not run. An instance
// is one provider resource (any string that names its URN and id): each has its own process, because a process is
// configured once. If the process has died or could not be configured, the next call starts another, which is not
// configured yet.
func (h *Host) Provider(ctx context.Context, pkg Package, instance string) (*Provider, error) {
	slot, err := h.claim(pkg, instance)
	if err != nil {
		return nil, err
	}
	return slot.wait(ctx)
}

// anyProvider returns any provider of a package. If there is none, it starts one that belongs to no instance.
func (h *Host) anyProvider(ctx context.Context, pkg Package) (*Provider, error) {
	slot, err := h.share(pkg)
	if err != nil {
		return nil, err
	}
	return slot.wait(ctx)
}

// Prepare starts a provider of a package that is needed soon, unless one runs. Its error is returned by the call that
// needs the provider.
func (h *Host) Prepare(pkg Package) { _, _ = h.share(pkg) }

// claim returns the slot of an instance: its own, or a slot that belongs to no instance yet, or a new one.
func (h *Host) claim(pkg Package, instance string) (*providerSlot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key, nobody := providerKey{pkg.key(), instance}, providerKey{pkg: pkg.key()}
	if slot, ok := h.providers[key]; ok && slot.usable() {
		return slot, nil
	}
	if slot, ok := h.providers[nobody]; ok && slot.usable() {
		delete(h.providers, nobody)
		h.providers[key] = slot
		return slot, nil
	}
	return h.fill(key, pkg)
}

// share returns any slot of the package, or a new one that belongs to no instance.
func (h *Host) share(pkg Package) (*providerSlot, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	nobody := providerKey{pkg: pkg.key()}
	for key, slot := range h.providers {
		if key.pkg == nobody.pkg && slot.usable() {
			return slot, nil
		}
	}
	return h.fill(nobody, pkg)
}

// What the providers of a Host are at most: a program decides how many it names, and how often one of them ends.
const (
	// mostProviders run or start at a time. Each is a process, with memory and descriptors of the worker.
	mostProviders = 256
	// mostStarted is how many are started until the end of the Host, those in place of others that have died included.
	mostStarted = 4 * mostProviders
	// mostStarting start at a time; others wait.
	mostStarting = 8
)

// room takes room for one more provider, in the place of one that is not usable, or of none. The caller holds the lock.
func (h *Host) room(pkg Package, instead *providerSlot) error {
	switch {
	case h.closed:
		return errClosed
	case h.alive >= h.mostAlive:
		return fmt.Errorf("provider %s is not started: %d providers of this update run already, and more are not "+
			"possible. Each provider resource has one, and each version and parameter of a package: use fewer of them, or "+
			"divide the stack", pkg.Name, h.mostAlive)
	case h.started >= h.mostStarted:
		reason := errors.New("the log says how they ended")
		if instead != nil && instead.err != nil {
			reason = instead.err
		}
		return fmt.Errorf("provider %s is not started: this update has started providers %d times already, because they "+
			"end again and again: %w", pkg.Name, h.mostStarted, reason)
	}
	h.alive++
	h.started++
	return nil
}

// gone gives the room of a provider back.
func (h *Host) gone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alive--
}

// fill starts a provider in a new slot, which replaces an unusable one. The caller holds the lock.
func (h *Host) fill(key providerKey, pkg Package) (*providerSlot, error) {
	old, ok := h.providers[key]
	if err := h.room(pkg, old); err != nil {
		return nil, err
	}
	if ok && old.provider != nil {
		go old.provider.replaced(h.ctx)
	}
	slot := &providerSlot{ready: make(chan struct{})}
	h.providers[key] = slot
	go func() {
		defer close(slot.ready)
		defer panics.Into(&slot.err, "starting provider "+pkg.Name)
		defer func() {
			if slot.provider == nil {
				h.gone()
			}
		}()
		select {
		case h.starting <- struct{}{}:
			defer func() { <-h.starting }()
		case <-h.ctx.Done():
			slot.err = errClosed
			return
		}
		if slot.provider, slot.err = h.startProvider(pkg); slot.provider != nil {
			died := slot.provider.end.died
			go func() { <-died; h.gone() }()
		}
	}()
	return slot, nil
}

func (s *providerSlot) wait(ctx context.Context) (*Provider, error) {
	select {
	case <-s.ready:
		return s.provider, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *Host) startProvider(pkg Package) (*Provider, error) {
	defer h.opts.Phase("starting provider " + pkg.Name)()
	e, dir, err := h.providerEndpoint(pkg)
	if err != nil {
		return nil, err
	}
	p, err := h.openProvider(e, dir, pkg.Parameter)
	if err != nil {
		e.stop(0)
		return nil, fmt.Errorf("provider %s: %w%s", pkg.Name, err, e.tail.text())
	}
	go p.reportUnexpectedExit(h.ctx, h.opts.Log)
	return p, nil
}

// providerEndpoint starts the plugin of a package and returns the directory of its executable; for a package of which
// this binary is the plugin, the program's directory.
func (h *Host) providerEndpoint(pkg Package) (*endpoint, string, error) {
	if serve, ok := h.opts.Builtin[pkg.Name]; ok {
		e, err := embed("provider "+pkg.Name, func(s *grpc.Server) {
			pulumirpc.RegisterResourceProviderServer(s, serve())
		})
		return e, h.program.dir, err
	}
	spec, request := h.providerSpec(pkg), h.Request(pkg)
	if env, ok := h.opts.Included[pkg.Name]; ok {
		var err error
		if spec.path, err = process.Self(); err != nil {
			return nil, "", err
		}
		spec.as, spec.env = request.File(), append(spec.env, env...)
		e, err := launch(h.ctx, spec)
		return e, h.program.dir, err
	}
	var err error
	dynamic := IsDynamic(pkg.Name)
	spec.path, err = h.finder.find(request)
	switch {
	case pkg.Name == NodeDynamicProvider && isMissing(err):
		var script string
		spec.path, script, err = languagehost.DynamicProvider(h.program.dir,
			process.Environment{Env: h.env, Box: h.opts.Box})
		spec.args = []string{script, h.address}
	case pkg.Name == PythonDynamicProvider && isMissing(err):
		var c process.Command
		c, err = languagehost.PythonDynamicProvider(h.programInfo(), process.Environment{Env: h.env, Box: h.opts.Box})
		spec.path, spec.args, spec.env = c.Path, append(c.Args, h.address), append(spec.env, c.Env...)
	case !dynamic && isMissing(err):
		spec.path, err = h.locate(h.ctx, request)
	}
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Dir(spec.path)
	if isSource(spec.path) {
		e, err := h.sourceEndpoint(pkg, spec.path, spec.output)
		return e, dir, err
	}
	e, err := launch(h.ctx, spec)
	if err == nil && dynamic {
		e.program = "" // it is the program's
	}
	return e, dir, err
}

// providerSpec describes the process of a provider, but for what it executes.
func (h *Host) providerSpec(pkg Package) launchSpec {
	spec := launchSpec{name: "provider " + pkg.Name, args: []string{h.address}, dir: h.program.dir,
		env: h.providerEnv(pkg), box: h.opts.Box, intake: h.opts.Intake, spares: h.spares}
	spec.shown = IsDynamic(pkg.Name)
	spec.output = func(severity diag.Severity, line string) {
		if !IsDynamic(pkg.Name) {
			severity = diag.Debug // the output of a dynamic provider is the program's; others print only details
		}
		h.opts.Log(Message{Severity: severity, Text: line, Source: spec.name})
	}
	return spec
}

// providerEnv returns the environment of a provider. Only dynamic providers, which run the user's own code, receive the
// configuration.
func (h *Host) providerEnv(pkg Package) []string {
	var own []string
	for k, v := range h.program.options {
		own = append(own, fmt.Sprintf("PULUMI_RUNTIME_%s=%v", strings.ToUpper(k), v))
	}
	if h.opts.Project != nil {
		project := h.opts.Project.Name.String()
		own = append(own, "PULUMI_PROJECT="+project, "PULUMI_NODEJS_PROJECT="+project)
	}
	if IsDynamic(pkg.Name) {
		if config, err := json.Marshal(h.opts.Config); err == nil && len(h.opts.Config) > 0 {
			own = append(own, "PULUMI_CONFIG="+string(config))
		}
	}
	for _, from := range slices.Sorted(maps.Keys(pkg.Env)) {
		if value, ok := h.env.lookup(from); ok {
			own = append(own, pkg.Env[from]+"="+value)
		}
	}
	return h.env.with(own...)
}

// openProvider makes the handshake with a started plugin, and sends its parameter.
func (h *Host) openProvider(e *endpoint, dir string, parameter *Parameter) (*Provider, error) {
	host := sdkHost{address: h.address, log: h.opts.Log}
	pctx, err := plugin.NewContextWithHost(h.ctx, sink(h.opts.Log), sink(h.opts.Log), host, h.program.dir,
		h.program.root, nil)
	if err != nil {
		return nil, err
	}
	w := &wire{ResourceProviderClient: pulumirpc.NewResourceProviderClient(e.conn), sent: map[string]int{},
		holds: map[string]*intake.Hold{}, notReady: map[string]time.Duration{}}
	p := &Provider{
		Provider: guarded{plugin.NewProviderWithClient(pctx, w, false)},
		end:      e, wire: w, configured: make(chan struct{}),
	}

	ctx, cancel := context.WithTimeout(h.ctx, startTimeout)
	defer cancel()
	_, err = p.Handshake(ctx, plugin.ProviderHandshakeRequest{
		EngineAddress: h.address, RootDirectory: &dir, ProgramDirectory: &dir,
		ConfigureWithUrn: true, InvokeWithPreview: true, AcceptsByteString: true, SupportsRefreshBeforeUpdate: true,
		SupportsViews: true,
		MapperTarget:  &h.address, LoaderTarget: &h.address,
	})
	if err != nil && status.Code(err) != codes.Unimplemented { // without a handshake, Configure negotiates
		return nil, fmt.Errorf("handshake: %w", err)
	}
	if parameter != nil {
		_, err = p.parameterize(ctx, *parameter)
		return p, err
	}
	return p, nil
}

// parameterize sends a parameter to the provider, and returns the name of the package that it makes.
func (p *Provider) parameterize(ctx context.Context, parameter Parameter) (string, error) {
	version, err := semver.ParseTolerant(parameter.Version)
	if err != nil {
		return "", fmt.Errorf("parameter: %w", err)
	}
	resp, err := p.Parameterize(ctx, plugin.ParameterizeRequest{Parameters: &plugin.ParameterizeValue{
		Name: parameter.Name, Version: version, Value: parameter.Value,
	}})
	return resp.Name, err
}

// reportUnexpectedExit reports the death of a process that was not asked to end, with its last output.
func (p *Provider) reportUnexpectedExit(host context.Context, log func(Message)) {
	<-p.end.died
	if p.end.proc == nil || host.Err() != nil || p.end.stopping.Load() {
		return
	}
	<-p.end.proc.Done()
	log(Message{
		Severity: diag.Error, Source: p.end.name,
		Text: fmt.Sprintf("%s ended unexpectedly (%s)%s", p.end.name, p.end.proc.Exit(), p.end.tail.text()),
	})
}

// sdkHost is the part of a plugin.Host that the SDK needs for calls to a plugin that it has not started itself.
type sdkHost struct {
	plugin.Host
	address string
	log     func(Message)
}

func (h sdkHost) ServerAddr() string                                 { return h.address }
func (sdkHost) Loader(*plugin.Context) (*plugin.GrpcServer, error)   { return nil, nil }
func (sdkHost) Mapper(*plugin.Context) (*plugin.GrpcServer, error)   { return nil, nil }
func (sdkHost) Resolver(*plugin.Context) (*plugin.GrpcServer, error) { return nil, nil }
func (sdkHost) ReleaseContext(*plugin.Context) error                 { return nil }
