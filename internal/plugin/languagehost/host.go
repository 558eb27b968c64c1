// Package languagehost serves the LanguageRuntime protocol for programs in Node.js, Go and Python: it installs what
// they import, says which packages they need, and runs them. It is used in process by package pluginhost, and as a
// plugin process by anything that speaks the protocol (Main).
package languagehost

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/deployctl/deployctl/internal/project/pythonproject"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// version is what the host reports as its own.
const version = "3.274.1"

// exitLogged is the exit code by which programs say that they failed and have told the user why.
const exitLogged = 32

// Options say how programs are run.
type Options struct {
	Engine         string            // address of the Engine service, given to programs
	Env            []string          // the whole environment of programs and tools, as KEY=value
	Stdout, Stderr func(line string) // receive what programs write
	Box            *sandbox.Box      // what programs and tools are started in; nil for none
	Spares         *process.Spares   // processes of the box that are used first; nil for none
	InstallScripts bool              // packages may run scripts while they are installed
}

// language is what the hosts of different languages do differently. Commands run in the returned directory, with the
// host's environment before that of the command.
type language interface {
	// program prepares a program and returns the command that runs it. Tools it runs for that report to out.
	program(ctx context.Context, req *pulumirpc.RunRequest, out output) (process.Command, error)
	// plugin prepares a plugin that is run from its source and returns the command that runs it.
	plugin(ctx context.Context, req *pulumirpc.RunPluginRequest, out output) (process.Command, error)
	// installation are the commands that install dependencies, one after another, in dir if that is the program's
	// directory or one above it; none if there is nothing to install.
	installation(ctx context.Context, info *pulumirpc.ProgramInfo, dir string) ([]process.Command, error)
	// required are the packages with providers that the program imports.
	required(ctx context.Context, info *pulumirpc.ProgramInfo) ([]*pulumirpc.PackageDependency, error)
	// dependencies are the libraries that the program imports, direct ones only unless transitive.
	dependencies(ctx context.Context, info *pulumirpc.ProgramInfo, transitive bool) ([]*pulumirpc.DependencyInfo, error)
	// about is the tool that runs programs, and the arguments that make it print its version.
	about() (path string, args []string, err error)
}

// output receives lines that tools and programs write.
type output struct{ stdout, stderr func(line string) }

// New makes the host of a runtime, if there is one: "nodejs", "bun", "go" or "python", or "" for a project without a
// runtime.
func New(runtime string, opts Options) (pulumirpc.LanguageRuntimeServer, bool) {
	t := tools{env: opts.Env, box: opts.Box, spares: opts.Spares}
	n := node{executable: "node", tools: t, engine: opts.Engine, scripts: opts.InstallScripts}
	switch runtime {
	case "nodejs":
		return &server{opts: opts, tools: t, lang: n}, true
	case "bun":
		n.executable = "bun"
		return &server{opts: opts, tools: t, lang: n}, true
	case "go":
		return &server{opts: opts, tools: t, lang: golang{tools: t, engine: opts.Engine}}, true
	case pythonproject.Runtime:
		t.env = withoutVenv(t.env)
		return &server{opts: opts, tools: t,
			lang: python{tools: t, engine: opts.Engine, scripts: opts.InstallScripts}}, true
	case "":
		return none{say: opts.Stdout}, true
	}
	return nil, false
}

// server is the protocol, the same for every language.
type server struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	opts  Options
	tools tools
	lang  language
}

func (s *server) Handshake(
	context.Context, *pulumirpc.LanguageHandshakeRequest,
) (*pulumirpc.LanguageHandshakeResponse, error) {
	return &pulumirpc.LanguageHandshakeResponse{}, nil
}

func (s *server) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: version}, nil
}

// Run runs the program to its end. A program that a signal ended is an Aborted error: unlike one that failed, it may be
// run again. When the call ends early, the program's process group is killed.
func (s *server) Run(ctx context.Context, req *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	if req.GetInfo() == nil {
		req.Info = &pulumirpc.ProgramInfo{
			RootDirectory: req.GetPwd(), ProgramDirectory: req.GetPwd(),
			EntryPoint: req.GetProgram(), //nolint:staticcheck // older engines
		}
	}
	cmd, err := s.lang.program(ctx, req, output{s.opts.Stdout, s.opts.Stderr})
	if err != nil {
		return &pulumirpc.RunResponse{Error: err.Error()}, nil
	}
	cmd.Stdout, cmd.Stderr = s.opts.Stdout, s.opts.Stderr
	exit, err := s.tools.run(ctx, cmd)
	switch {
	case ctx.Err() != nil:
		return nil, status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return &pulumirpc.RunResponse{Error: err.Error()}, nil
	}
	return runResponse(exit)
}

// runResponse tells how a program ended.
func runResponse(exit process.Exit) (*pulumirpc.RunResponse, error) {
	switch {
	case exit.Signal != "":
		return nil, status.Errorf(codes.Aborted, "the program was killed (%s)", exit)
	case exit.Code == exitLogged:
		return &pulumirpc.RunResponse{Bail: true}, nil
	case exit.Code != 0:
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program exited with code %d", exit.Code)}, nil
	}
	return &pulumirpc.RunResponse{}, nil
}

// RunPlugin runs a plugin to its end, and streams what it writes. When the call ends early, the plugin's process group
// is killed.
func (s *server) RunPlugin(
	req *pulumirpc.RunPluginRequest, stream grpc.ServerStreamingServer[pulumirpc.RunPluginResponse],
) error {
	var sending sync.Mutex // stdout and stderr are read by two goroutines
	send := func(part *pulumirpc.RunPluginResponse) {
		sending.Lock()
		defer sending.Unlock()
		_ = stream.Send(part) // nobody listens any more: the call's context tells
	}
	stdout := func(line string) {
		send(&pulumirpc.RunPluginResponse{Output: &pulumirpc.RunPluginResponse_Stdout{Stdout: []byte(line + "\n")}})
	}
	stderr := func(line string) {
		send(&pulumirpc.RunPluginResponse{Output: &pulumirpc.RunPluginResponse_Stderr{Stderr: []byte(line + "\n")}})
	}
	// What tools write before the plugin runs is not the line with its port.
	cmd, err := s.lang.plugin(stream.Context(), req, output{stderr, stderr})
	if err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Env = append(append([]string(nil), req.GetEnv()...), cmd.Env...)
	exit, err := s.tools.run(stream.Context(), cmd)
	switch {
	case stream.Context().Err() != nil:
		return status.FromContextError(stream.Context().Err()).Err()
	case err != nil:
		return status.Error(codes.FailedPrecondition, err.Error())
	case exit.Signal != "":
		return status.Errorf(codes.Aborted, "the plugin was killed (%s)", exit)
	}
	send(&pulumirpc.RunPluginResponse{Output: &pulumirpc.RunPluginResponse_Exitcode{Exitcode: int32(exit.Code)}})
	return nil
}

// InstallDependencies runs the language's package manager and streams what it writes.
func (s *server) InstallDependencies(
	req *pulumirpc.InstallDependenciesRequest,
	stream grpc.ServerStreamingServer[pulumirpc.InstallDependenciesResponse],
) error {
	info := req.GetInfo()
	if info == nil {
		dir := req.GetDirectory() //nolint:staticcheck // older engines
		info = &pulumirpc.ProgramInfo{RootDirectory: dir, ProgramDirectory: dir}
	}
	commands, err := s.lang.installation(stream.Context(), info, req.GetDirectory()) //nolint:staticcheck // see pluginhost
	if err != nil {
		return err
	}
	var sending sync.Mutex // stdout and stderr are read by two goroutines
	over := false
	send := func(part *pulumirpc.InstallDependenciesResponse) {
		sending.Lock()
		defer sending.Unlock()
		if !over {
			_ = stream.Send(part) // nobody listens any more: the call's context tells
		}
	}
	defer func() {
		sending.Lock()
		defer sending.Unlock()
		over = true
	}()
	for _, cmd := range commands {
		var away unreachable
		cmd.Stdout = away.watch(func(line string) {
			send(&pulumirpc.InstallDependenciesResponse{Stdout: []byte(line + "\n")})
		})
		cmd.Stderr = away.watch(func(line string) {
			send(&pulumirpc.InstallDependenciesResponse{Stderr: []byte(line + "\n")})
		})
		stop := explainsSlowness(installer(cmd), cmd.Stdout)
		exit, err := s.tools.run(stream.Context(), cmd)
		stop()
		switch {
		case err != nil:
			return err
		case exit != (process.Exit{}):
			return fmt.Errorf("%s failed (%s)%s", installer(cmd), exit, cmp.Or(away.hint(), s.scriptsHint()))
		}
	}
	return nil
}

// installer names what a command of an installation runs.
func installer(c process.Command) string {
	if at := slices.Index(c.Args, "-m"); at >= 0 && at+1 < len(c.Args) {
		return c.Args[at+1] // a module of Python
	}
	return filepath.Base(c.Path)
}

// scriptsHint follows the error of an installation.
func (s *server) scriptsHint() string {
	if s.opts.InstallScripts {
		return ""
	}
	return "; packages may run no scripts and are not built from source, unless Pulumi.yaml has " +
		"deploy: {installScripts: true}"
}

func (s *server) GetRequiredPackages(
	ctx context.Context, req *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	packages, err := s.lang.required(ctx, req.GetInfo())
	return &pulumirpc.GetRequiredPackagesResponse{Packages: packages}, err
}

// GetRequiredPlugins is what older engines call.
func (s *server) GetRequiredPlugins(
	ctx context.Context, req *pulumirpc.GetRequiredPluginsRequest,
) (*pulumirpc.GetRequiredPluginsResponse, error) {
	packages, err := s.lang.required(ctx, req.GetInfo())
	var plugins []*pulumirpc.PluginDependency
	for _, p := range packages {
		plugins = append(plugins, &pulumirpc.PluginDependency{
			Name: p.GetName(), Kind: p.GetKind(), Version: p.GetVersion(), Server: p.GetServer(),
		})
	}
	return &pulumirpc.GetRequiredPluginsResponse{Plugins: plugins}, err
}

func (s *server) GetProgramDependencies(
	ctx context.Context, req *pulumirpc.GetProgramDependenciesRequest,
) (*pulumirpc.GetProgramDependenciesResponse, error) {
	deps, err := s.lang.dependencies(ctx, req.GetInfo(), req.GetTransitiveDependencies())
	return &pulumirpc.GetProgramDependenciesResponse{Dependencies: deps}, err
}

func (s *server) RuntimeOptionsPrompts(
	context.Context, *pulumirpc.RuntimeOptionsRequest,
) (*pulumirpc.RuntimeOptionsResponse, error) {
	return &pulumirpc.RuntimeOptionsResponse{}, nil
}

func (s *server) About(ctx context.Context, _ *pulumirpc.AboutRequest) (*pulumirpc.AboutResponse, error) {
	path, args, err := s.lang.about()
	if err != nil {
		return nil, err
	}
	said, err := s.tools.read(ctx, process.Command{Path: path, Args: args})
	if err != nil {
		return nil, err
	}
	return &pulumirpc.AboutResponse{Executable: path, Version: said}, nil
}

// Cancel has nothing to add: cancelling a call of Run ends its program.
func (s *server) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}
