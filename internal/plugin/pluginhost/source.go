package pluginhost

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/project/pythonproject"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/encoding"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/structpb"
)

// isSource reports whether a path that find returned is that of a plugin that is source code.
func isSource(path string) bool { return filepath.Base(path) == plugins.SourceFile }

// sourceTimeout bounds the time from the start of a plugin that is source code to its first answer: its language host
// may have to compile it.
const sourceTimeout = 10 * time.Minute

// sourceEndpoint starts a provider that is source code, with the language host that its PulumiPlugin.yaml names, after
// its dependencies were installed.
func (h *Host) sourceEndpoint(pkg Package, file string, output func(diag.Severity, string)) (*endpoint, error) {
	language, err := h.sourceLanguage(file)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(file)
	install := func(ctx context.Context) error { return language.InstallDependencies(ctx, dir) }
	if h.opts.Install == nil {
		err = install(h.ctx)
	} else {
		err = h.opts.Install(h.ctx, dir,
			workspace.NewProjectRuntimeInfo(language.runtime, language.info.GetOptions().AsMap()), install)
	}
	if err != nil {
		language.end.stop(0)
		return nil, fmt.Errorf("provider %s: %w", pkg.Name, err)
	}
	ctx, cancel := context.WithTimeout(h.ctx, sourceTimeout)
	defer cancel()
	return runPlugin(ctx, pluginRun{
		name: "provider " + pkg.Name, language: language.end, box: h.opts.Box, intake: h.opts.Intake, output: output,
		request: &pulumirpc.RunPluginRequest{
			Program: dir, //nolint:staticcheck // older hosts
			Pwd:     h.program.dir, Args: []string{h.address}, Env: h.providerEnv(pkg), Info: language.info,
			Kind: string(apitype.ResourcePlugin), Name: pkg.Name, LoaderTarget: h.address,
		},
	})
}

// pluginProject reads a PulumiPlugin.yaml.
func (h *Host) pluginProject(file string) (project workspace.PluginProject, err error) {
	text, err := h.opts.Box.ReadFile(file)
	if err == nil {
		err = encoding.YAML.Unmarshal(text, &project)
	}
	if err == nil {
		err = project.Validate()
	}
	if err == nil {
		h.addVirtualEnvironment(filepath.Dir(file), &project.Runtime)
		err = requireVersion(project.RequiredPulumiVersion)
	}
	return project, err
}

// addVirtualEnvironment lets pip install the packages of a Python plugin or policy pack into venv in its directory, as
// for the stock CLI, unless its options name another place. One without requirements.txt uses the packages of the
// machine, and so does one outside of the bundle, where nothing is installed, unless it comes with a venv.
func (h *Host) addVirtualEnvironment(dir string, runtime *workspace.ProjectRuntimeInfo) {
	options := runtime.Options()
	toolchain, _ := options["toolchain"].(string)
	if runtime.Name() != pythonproject.Runtime || options["virtualenv"] != nil ||
		toolchain != "" && toolchain != pythonproject.Pip {
		return
	}
	needs := filepath.Join(dir, pythonproject.Requirements)
	if below, err := filepath.Rel(h.opts.Bundle, dir); err != nil || !filepath.IsLocal(below) {
		needs = filepath.Join(dir, pluginVenv, "pyvenv.cfg")
	}
	if _, err := h.opts.Box.Stat(needs); err == nil {
		runtime.SetOption("virtualenv", pluginVenv)
	}
}

// pluginVenv is the directory of the virtual environment of a Python plugin.
const pluginVenv = "venv"

// sourceLanguage starts the language host that a PulumiPlugin.yaml names.
func (h *Host) sourceLanguage(file string) (*Language, error) {
	project, err := h.pluginProject(file)
	var options *structpb.Struct
	if err == nil {
		options, err = structpb.NewStruct(project.Runtime.Options())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	runtime, dir := project.Runtime.Name(), filepath.Dir(file)
	end, err := h.languageEndpoint(h.ctx, runtime)
	if err != nil {
		return nil, err
	}
	return &Language{
		host: h, runtime: runtime, end: end, client: pulumirpc.NewLanguageRuntimeClient(end.conn),
		info: &pulumirpc.ProgramInfo{RootDirectory: dir, ProgramDirectory: dir, EntryPoint: ".", Options: options},
	}, nil
}
