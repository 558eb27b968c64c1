package pluginhost

import (
	"context"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

// Package identifies a package and the source of its provider.
type Package struct {
	Name        string
	Version     string // empty: the newest that is installed
	DownloadURL string
	Checksums   map[string][]byte // accepted SHA-256 digests of the plugin's archive, by platform
	Parameter   *Parameter        // lets the provider serve another package
	// Env copies variables of the environment to other names: the process has the value of KEY in the variable Env[KEY].
	Env map[string]string
}

// request asks for the package's plugin.
func (p Package) request() plugins.Request {
	r := plugins.Request{
		Plugin: plugins.Plugin{Kind: apitype.ResourcePlugin, Name: p.Name, Version: p.Version}, URL: p.DownloadURL,
		Sums: map[string]string{},
	}
	for platform, sum := range p.Checksums {
		r.Sums[platform] = hex.EncodeToString(sum)
	}
	return r
}

// Parameter is the value of a parameterised package.
type Parameter struct {
	Name    string
	Version string
	Value   []byte
}

// Provider is a running provider plugin. Calls are those of plugin.Provider, with these differences:
//   - Configure returns when the provider has answered; further calls of it return the first one's result;
//   - the meaning of an error is decided by Classify alone;
//   - a call does not end with its context: it runs until the provider answers or its process ends, so that no outcome
//     is lost because the caller stopped waiting. SignalCancellation asks for an early end, Close forces it.
type Provider struct {
	plugin.Provider
	end  *endpoint
	wire *wire

	configuring sync.Once
	configured  chan struct{}
	configErr   error
	extensions  extensions
	cancelled   atomic.Bool
}

// Died returns a channel that is closed once the provider can no longer answer.
func (p *Provider) Died() <-chan struct{} { return p.end.died }

// Alive reports whether the provider can still answer.
func (p *Provider) Alive() bool { return p.end.alive() }

// Program tells the provider's executable from others and from later builds of it; empty if that is not known, as of
// one that runs code of the program.
func (p *Provider) Program() string { return p.end.program }

// Pid returns the id of the provider's process, or 0 if it has none of its own.
func (p *Provider) Pid() int {
	if p.end.proc == nil {
		return 0
	}
	return p.end.proc.Pid()
}

// Close asks the provider to end, and kills it after stopGrace.
func (p *Provider) Close() error {
	p.end.stop(stopGrace)
	return nil
}

// SignalCancellation asks the provider to end the calls that run. A plugin may answer none after that, so the next call
// is of another process.
func (p *Provider) SignalCancellation(ctx context.Context) error {
	p.cancelled.Store(true)
	return p.Provider.SignalCancellation(ctx)
}

// unusable reports whether the process answers no more calls: Configure has failed, and cannot be repeated, or it was
// cancelled.
func (p *Provider) unusable() bool {
	select {
	case <-p.configured:
		return p.configErr != nil || p.cancelled.Load()
	default:
		return p.cancelled.Load()
	}
}

// lastCalls is how long calls of a cancelled provider may take to end while another process has its place.
const lastCalls = 10 * time.Second

// replaced ends a provider in whose place there is another one, when its last calls have had the time to end, or with
// its host.
func (p *Provider) replaced(host context.Context) {
	if p.cancelled.Load() {
		select {
		case <-p.Died():
		case <-host.Done():
		case <-time.After(lastCalls):
		}
	}
	p.end.stop(stopGrace)
}

// Configure configures the provider once, and waits for its answer. In a preview with unknown inputs the provider is
// not called at all, and treated as unconfigured by all further calls, as the SDK documents.
func (p *Provider) Configure(ctx context.Context, req plugin.ConfigureRequest) (plugin.ConfigureResponse, error) {
	p.configuring.Do(func() {
		go func() {
			defer close(p.configured)
			defer panics.Into(&p.configErr, "configuring a provider")
			p.configErr = p.configure(ctx, req)
		}()
	})
	select {
	case <-p.configured:
		return plugin.ConfigureResponse{}, p.configErr
	case <-ctx.Done():
		return plugin.ConfigureResponse{}, context.Cause(ctx)
	}
}

func (p *Provider) configure(ctx context.Context, req plugin.ConfigureRequest) error {
	if req.Type == nil {
		return errors.New("configuring a provider: its type is missing")
	}
	answered := p.wire.awaitConfigure()
	if _, err := p.Provider.Configure(context.WithoutCancel(ctx), req); err != nil || req.Inputs.ContainsUnknowns() {
		return err
	}
	if <-answered == nil {
		return nil
	}
	// The SDK returns the explained error only from the next call that needs the configuration: this Read, which is never
	// sent.
	_, err := p.Read(ctx, plugin.ReadRequest{URN: "urn:pulumi:none::none::none::none", ID: "none"})
	return err
}

// wire is the client below the SDK. It records what the SDK does not report: when Configure was answered, and which
// changing calls were made.
type wire struct {
	pulumirpc.ResourceProviderClient

	mu    sync.Mutex
	sent  map[string]int          // changing calls by URN
	holds map[string]*intake.Hold // of calls that are made, by URN: the SDK does not pass their contexts on
	// by URN: what a changing call has made is not ready, and is to be looked at after that
	notReady   map[string]time.Duration
	configured chan error
}

func (w *wire) awaitConfigure() <-chan error {
	w.configured = make(chan error, 1)
	return w.configured
}

func (w *wire) Configure(
	ctx context.Context, in *pulumirpc.ConfigureRequest, opts ...grpc.CallOption,
) (resp *pulumirpc.ConfigureResponse, err error) {
	defer func() { w.configured <- err }()
	defer panics.Into(&err, "configuring a provider") // nobody else recovers on this goroutine, which is the SDK's
	return w.ResourceProviderClient.Configure(ctx, in, opts...)
}
