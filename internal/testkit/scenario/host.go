package scenario

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Version is the host's.
const Version = "0.1.0"

// Host is the language host; one process may run programs one after the other or at once.
type Host struct {
	rpc.UnimplementedLanguageRuntimeServer
	engine string // address
}

// NewHost makes a host whose programs log to the engine at an address.
func NewHost(engine string) *Host { return &Host{engine: engine} }

// Handshake takes the engine's address, for an engine that has attached to a running host.
func (h *Host) Handshake(_ context.Context, req *rpc.LanguageHandshakeRequest) (*rpc.LanguageHandshakeResponse, error) {
	if req.GetEngineAddress() != "" {
		h.engine = req.GetEngineAddress()
	}
	return &rpc.LanguageHandshakeResponse{}, nil
}

// GetPluginInfo gives the version.
func (h *Host) GetPluginInfo(context.Context, *emptypb.Empty) (*rpc.PluginInfo, error) {
	return &rpc.PluginInfo{Version: Version}, nil
}

// GetRequiredPackages gives the packages that the script names.
func (h *Host) GetRequiredPackages(
	_ context.Context, req *rpc.GetRequiredPackagesRequest,
) (*rpc.GetRequiredPackagesResponse, error) {
	s, err := load(file(req.GetInfo()))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	res := &rpc.GetRequiredPackagesResponse{}
	for _, p := range s.Packages {
		needed := &rpc.PackageDependency{Name: p.Name, Kind: "resource", Version: p.Version, Server: p.Server}
		if w := p.Parameter; w != nil {
			needed.Parameterization = &rpc.PackageParameterization{Name: w.Name, Version: w.Version, Value: []byte(w.Value)}
		}
		res.Packages = append(res.Packages, needed)
	}
	return res, nil
}

// GetRequiredPlugins is GetRequiredPackages for older engines.
func (h *Host) GetRequiredPlugins(
	_ context.Context, req *rpc.GetRequiredPluginsRequest,
) (*rpc.GetRequiredPluginsResponse, error) {
	s, err := load(file(req.GetInfo()))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	res := &rpc.GetRequiredPluginsResponse{}
	for _, p := range s.Packages {
		res.Plugins = append(res.Plugins, &rpc.PluginDependency{Name: p.Name, Kind: "resource", Version: p.Version,
			Server: p.Server})
	}
	return res, nil
}

// Run plays the script. That the program failed is an answer, not an error.
func (h *Host) Run(ctx context.Context, req *rpc.RunRequest) (*rpc.RunResponse, error) {
	monitor, err := dial(req.GetMonitorAddress())
	if err != nil {
		return nil, err
	}
	defer func() { _ = monitor.Close() }()
	engine, err := dial(h.engine)
	if err != nil {
		return nil, err
	}
	defer func() { _ = engine.Close() }()
	// What exit leaves behind ends with the program.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &player{
		ctx: ctx, monitor: rpc.NewResourceMonitorClient(monitor), engine: rpc.NewEngineClient(engine),
		run: req, dir: filepath.Dir(file(req.GetInfo())), things: map[string]*made{},
	}
	return outcome(p.perform(file(req.GetInfo()))), nil
}

// perform is a program from its beginning to its end.
func (p *player) perform(path string) error {
	s, err := load(path)
	if err != nil {
		return err
	}
	if err := p.begin(s.Root); err != nil {
		return err
	}
	err = p.play(s.Steps)
	var early *ended
	if errors.As(err, &early) {
		return err
	}
	if err != nil {
		p.started.Wait()
		return err
	}
	return p.end(s.Outputs)
}

// outcome puts the way in which a program ended into the protocol's words. When the monitor has gone away, the engine
// knows why.
func outcome(err error) *rpc.RunResponse {
	var early *ended
	switch {
	case err == nil:
		return &rpc.RunResponse{}
	case errors.As(err, &early) && early.bail:
		return &rpc.RunResponse{Bail: true}
	case gone(err):
		return &rpc.RunResponse{Bail: true}
	}
	return &rpc.RunResponse{Error: err.Error()}
}

func gone(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if s, is := status.FromError(err); is && (s.Code() == codes.Unavailable || s.Code() == codes.Canceled) {
			return true
		}
	}
	return false
}

// InstallDependencies has nothing to install.
func (h *Host) InstallDependencies(
	*rpc.InstallDependenciesRequest, grpc.ServerStreamingServer[rpc.InstallDependenciesResponse],
) error {
	return nil
}

// RuntimeOptionsPrompts has nothing to ask.
func (h *Host) RuntimeOptionsPrompts(context.Context, *rpc.RuntimeOptionsRequest) (*rpc.RuntimeOptionsResponse, error) {
	return &rpc.RuntimeOptionsResponse{}, nil
}

// About tells the version.
func (h *Host) About(context.Context, *rpc.AboutRequest) (*rpc.AboutResponse, error) {
	return &rpc.AboutResponse{Version: Version}, nil
}

// GetProgramDependencies has none to tell: a script's packages are plugins.
func (h *Host) GetProgramDependencies(
	context.Context, *rpc.GetProgramDependenciesRequest,
) (*rpc.GetProgramDependenciesResponse, error) {
	return &rpc.GetProgramDependenciesResponse{}, nil
}

// Cancel is nothing: a program ends when the engine closes its Run.
func (h *Host) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// file is the script of a program: scenario.yaml in its directory, or what the runtime option "file" says.
func file(info *rpc.ProgramInfo) string {
	name := "scenario.yaml"
	if option := info.GetOptions().GetFields()["file"].GetStringValue(); option != "" {
		name = option
	}
	return filepath.Join(info.GetProgramDirectory(), name)
}

func dial(address string) (*grpc.ClientConn, error) {
	if address == "" {
		return nil, fmt.Errorf("no address to dial")
	}
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pluginprotocol.MaxMessage),
			grpc.MaxCallSendMsgSize(pluginprotocol.MaxMessage)))
}
