package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/deployctl/deployctl/internal/plugin/languagehost"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Language runs a program of one runtime: with a pulumi-language-RUNTIME process or, for nodejs, bun, go and python
// without such a plugin, with the host of package languagehost in this process.
type Language struct {
	host    *Host
	runtime string
	end     *endpoint
	client  pulumirpc.LanguageRuntimeClient
	info    *pulumirpc.ProgramInfo
}

// Language starts the host of a runtime. The output of the host and of the program goes to Options.Log line by line, as
// Info and Infoerr. Each call starts another host, which ends with Run or with the Host.
func (h *Host) Language(ctx context.Context, runtime string) (*Language, error) {
	if _, err := structpb.NewStruct(h.program.options); err != nil {
		return nil, fmt.Errorf("options of runtime %s in Pulumi.yaml: %w", runtime, err)
	}
	end, err := h.languageEndpoint(ctx, runtime)
	if err != nil {
		return nil, err
	}
	l := &Language{
		host: h, runtime: runtime, end: end, client: pulumirpc.NewLanguageRuntimeClient(end.conn),
		info: h.programInfo(),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		go end.stop(0)
		return nil, errClosed
	}
	h.languages = append(h.languages, l)
	return l, l.handshake(ctx)
}

// programInfo describes the project's program to language hosts, without options that they could not be sent.
func (h *Host) programInfo() *pulumirpc.ProgramInfo {
	options, _ := structpb.NewStruct(h.program.options) // nil if Language refuses them
	return &pulumirpc.ProgramInfo{
		RootDirectory: h.program.root, ProgramDirectory: h.program.dir, EntryPoint: h.program.entry, Options: options,
	}
}

func (h *Host) languageEndpoint(ctx context.Context, runtime string) (*endpoint, error) {
	output := func(severity diag.Severity, line string) {
		h.opts.Log(Message{Severity: severity, Text: line, Source: runtime})
	}
	request := plugins.Request{Plugin: plugins.Plugin{Kind: apitype.LanguagePlugin, Name: runtime}}
	path, err := h.finder.find(request)
	if runtime == "" || isMissing(err) {
		builtin, ok := languagehost.New(runtime, languagehost.Options{
			Engine: h.address, Env: h.env, Box: h.opts.Box, Spares: h.spares, InstallScripts: h.InstallScripts(),
			Stdout: func(line string) { output(diag.Info, line) },
			Stderr: func(line string) { output(diag.Infoerr, line) },
		})
		if ok {
			register := func(s *grpc.Server) { pulumirpc.RegisterLanguageRuntimeServer(s, builtin) }
			// its stop waits until its program has ended
			return embed("language host "+runtime, register, grpc.WaitForHandlers(true))
		}
		path, err = h.locate(ctx, request)
	}
	if err != nil {
		return nil, err
	}
	return launch(ctx, launchSpec{
		name: "language host " + runtime, path: path, args: []string{h.address},
		dir: h.program.dir, env: h.env.with(languagehost.InstallEnv(h.InstallScripts())...), box: h.opts.Box,
		intake: h.opts.Intake, spares: h.spares, stdin: true, // ours ends with it, and gives it to no program
		output: output, shown: true,
	})
}

// InstallScripts reports whether packages may run scripts while they are installed: deploy.installScripts in
// Pulumi.yaml.
func (h *Host) InstallScripts() bool {
	if h.opts.Project == nil {
		return false
	}
	deploy, _ := h.opts.Project.AdditionalKeys["deploy"].(map[string]any)
	allowed, _ := deploy["installScripts"].(bool)
	return allowed
}

func (l *Language) handshake(ctx context.Context) error {
	_, err := l.client.Handshake(ctx, &pulumirpc.LanguageHandshakeRequest{
		EngineAddress: l.host.address, RootDirectory: &l.info.RootDirectory, ProgramDirectory: &l.info.ProgramDirectory,
	})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return l.explain("language host "+l.runtime+": handshake", err)
	}
	return nil
}

// RequiredPackages returns the packages that the program needs, as far as its language host can determine them without
// running it. What extensions say of their base packages comes first: of two versions of a package, the program's own
// is the last.
func (l *Language) RequiredPackages(ctx context.Context) ([]Package, error) {
	resp, err := l.client.GetRequiredPackages(ctx, &pulumirpc.GetRequiredPackagesRequest{Info: l.info})
	if status.Code(err) == codes.Unimplemented {
		return l.requiredPlugins(ctx)
	}
	if err == nil {
		err = fewPackages(len(resp.GetPackages()), resp)
	}
	if err != nil {
		return nil, l.explain("listing the program's packages", err)
	}
	var packages, bases []Package
	for _, p := range resp.GetPackages() {
		if p.GetKind() != string(apitype.ResourcePlugin) {
			continue
		}
		pkg := Package{Name: p.GetName(), Version: strings.TrimPrefix(p.GetVersion(), "v"), DownloadURL: p.GetServer(),
			Checksums: p.GetChecksums()}
		if q := p.GetParameterization(); q != nil {
			pkg.Parameter = &Parameter{Name: q.GetName(), Version: q.GetVersion(), Value: q.GetValue()}
		}
		if p.GetExtension() != nil {
			bases = append(bases, pkg)
			continue
		}
		packages = append(packages, pkg)
	}
	return append(bases, packages...), nil
}

// What a language host may say at most that a program needs: all of it is kept.
const (
	mostPackages    = 1000
	maxPackageBytes = 64 << 20
)

// fewPackages is an error if a language host names too many packages in an answer.
func fewPackages(number int, answer proto.Message) error {
	if number <= mostPackages && proto.Size(answer) <= maxPackageBytes {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted, "the program needs %d packages, of %d MiB: at most %d, of %d MiB, are "+
		"taken", number, proto.Size(answer)>>20, mostPackages, maxPackageBytes>>20)
}

// requiredPlugins is RequiredPackages for older language hosts. A host that implements neither call needs no packages.
func (l *Language) requiredPlugins(ctx context.Context) ([]Package, error) {
	request := &pulumirpc.GetRequiredPluginsRequest{
		Project: "deprecated", Pwd: l.info.ProgramDirectory, Info: l.info, //nolint:staticcheck // older hosts
		Program: l.info.EntryPoint, //nolint:staticcheck // older hosts
	}
	resp, err := l.client.GetRequiredPlugins(ctx, request) //nolint:staticcheck // older hosts
	if status.Code(err) == codes.Unimplemented {
		return nil, nil
	}
	if err == nil {
		err = fewPackages(len(resp.GetPlugins()), resp)
	}
	if err != nil {
		return nil, l.explain("listing the program's packages", err)
	}
	var packages []Package
	for _, p := range resp.GetPlugins() {
		if p.GetKind() == string(apitype.ResourcePlugin) {
			version := strings.TrimPrefix(p.GetVersion(), "v")
			packages = append(packages, Package{Name: p.GetName(), Version: version, DownloadURL: p.GetServer(),
				Checksums: p.GetChecksums()})
		}
	}
	return packages, nil
}

// NeedsInstall reports whether the program's directory shows that it cannot run before InstallDependencies.
func (l *Language) NeedsInstall() bool {
	return languagehost.NeedsInstall(l.runtime, l.info.ProgramDirectory, l.host.opts.Box)
}

// InstallDependencies installs the packages that the program imports, with the tools of its language; their output is
// logged. For nodejs they are installed in dir, unless the language host chooses another directory.
func (l *Language) InstallDependencies(ctx context.Context, dir string) error {
	stream, err := l.client.InstallDependencies(ctx, &pulumirpc.InstallDependenciesRequest{
		Directory: dir, Info: l.info, //nolint:staticcheck // older hosts
	})
	for err == nil {
		var part *pulumirpc.InstallDependenciesResponse
		if part, err = stream.Recv(); err == nil {
			l.log(diag.Info, part.GetStdout())
			l.log(diag.Infoerr, part.GetStderr())
		}
	}
	if errors.Is(err, io.EOF) || status.Code(err) == codes.Unimplemented {
		return nil
	}
	return l.explain("installing dependencies", err)
}

func (l *Language) log(severity diag.Severity, text []byte) {
	if trimmed := strings.TrimRight(string(text), "\r\n"); trimmed != "" {
		l.host.opts.Log(Message{Severity: severity, Text: trimmed, Source: l.runtime})
	}
}

// RunRequest names the stack for which to run the program, and the address of the resource monitor.
type RunRequest struct {
	Organization, Project, Stack string

	Args           []string
	SecretKeys     []string // keys of Options.Config whose values are secret
	DryRun         bool
	Parallel       int
	MonitorAddress string
}

// ProgramError is the error of a program that ran and failed: it threw an exception, or its exit code was not 0.
type ProgramError struct {
	Message string // may be empty if Logged
	Logged  bool   // the program has already logged the reason
}

func (e *ProgramError) Error() string {
	if e.Message == "" {
		return "the program failed"
	}
	return e.Message
}

// LostError is the error of a program that did not end by itself: its process or its language host was killed, so
// another run may succeed. It is also the error of a plugin that was killed before it listened.
type LostError struct{ Reason string }

func (e *LostError) Error() string { return "the program was lost: " + e.Reason }

// Run runs the program to its end: nil if it succeeded, *ProgramError if it failed, *LostError if it was killed. When
// the context ends, the program is killed and the context's cause returned. All output of the program has been logged
// when Run returns. For this, Run stops the language host, so a Language runs only one program.
func (l *Language) Run(ctx context.Context, req RunRequest) error {
	result := l.run(ctx, req)
	grace := stopGrace
	if ctx.Err() != nil {
		result, grace = context.Cause(ctx), 0
	}
	l.end.stop(grace)
	return result
}

func (l *Language) run(ctx context.Context, req RunRequest) error {
	resp, err := l.client.Run(ctx, &pulumirpc.RunRequest{
		Organization: req.Organization, Project: req.Project, Stack: req.Stack,
		Pwd: l.info.ProgramDirectory, Info: l.info,
		Program: l.info.EntryPoint, //nolint:staticcheck // older hosts
		Args:    req.Args, Config: maps.Clone(l.host.opts.Config), ConfigSecretKeys: req.SecretKeys,
		DryRun: req.DryRun, Parallel: int32(min(req.Parallel, 1<<30)), //nolint:gosec // bounded
		MonitorAddress: req.MonitorAddress, LoaderTarget: l.host.address, MapperTarget: l.host.address,
	})
	switch status.Code(err) {
	case codes.OK:
	case codes.Aborted, codes.Unavailable, codes.Canceled:
		return &LostError{l.reason(err)}
	default:
		return &ProgramError{Message: status.Convert(err).Message()}
	}
	switch message := resp.GetError(); {
	case strings.HasSuffix(message, "exit code: -1"): // how Pulumi's language hosts report a signal
		return &LostError{message}
	case message != "" || resp.GetBail():
		return &ProgramError{Message: message, Logged: resp.GetBail()}
	}
	return nil
}

// explain returns an error of the language host with the call that failed; a *LostError if the host was killed.
func (l *Language) explain(doing string, err error) error {
	reason := l.reason(err)
	if !l.end.alive() && l.end.proc != nil && l.end.proc.Exit().Signal != "" {
		return &LostError{doing + ": " + reason}
	}
	return fmt.Errorf("%s: %s", doing, reason)
}

// reason returns the message of the language host's error or, if the host has ended, how it ended.
func (l *Language) reason(err error) string {
	if status.Code(err) == codes.Unavailable {
		l.end.awaitDeath()
	}
	if l.end.alive() {
		return status.Convert(err).Message()
	}
	return l.end.name + " ended" + l.end.exit()
}

// Close stops the language host, and its program if it still runs.
func (l *Language) Close() { l.end.stop(stopGrace) }
