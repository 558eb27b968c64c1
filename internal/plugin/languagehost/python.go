package languagehost

import (
	"context"
	_ "embed" // the scripts
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/internal/project/pythonproject"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// python runs programs in Python with the package pulumi that is installed for them.
type python struct {
	tools   tools
	engine  string
	scripts bool // see Options
}

var (
	//go:embed run.py
	runScript string
	//go:embed packages.py
	packagesScript string
)

// withoutVenv is the environment without the virtual environment that whoever started the service has activated: uv and
// Poetry would install into it. Its Python stays the first on the PATH.
func withoutVenv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "VIRTUAL_ENV=") || strings.HasPrefix(v, "CONDA_PREFIX=")
	})
}

// binaries is the directory of a virtual environment with its executables.
func binaries(venv string) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(venv, "Scripts")
	}
	return filepath.Join(venv, "bin")
}

// Interpreter is the Python of a virtual environment.
func Interpreter(venv string) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(binaries(venv), "python.exe")
	}
	return filepath.Join(binaries(venv), "python")
}

// project is where the packages of a program come from.
func (p python) project(info *pulumirpc.ProgramInfo) (pythonproject.Project, error) {
	return pythonproject.Find(pythonproject.Program{
		Root: info.GetRootDirectory(), Dir: info.GetProgramDirectory(), Options: info.GetOptions().AsMap(),
	}, p.tools.box.ReadFile)
}

// command runs a program's Python, that of its virtual environment if it has one.
func (p python) command(info *pulumirpc.ProgramInfo, args ...string) (process.Command, error) {
	project, err := p.project(info)
	if err != nil {
		return process.Command{}, err
	}
	c := process.Command{Args: append([]string{"-u"}, args...), Dir: info.GetProgramDirectory()}
	if project.Venv == "" {
		c.Path, err = p.look()
		return c, err
	}
	c.Path, c.Env = Interpreter(project.Venv), p.activated(project.Venv)
	if _, err := p.tools.box.Stat(c.Path); err != nil {
		return c, fmt.Errorf("the virtual environment %s has no Python (%s): if it is outside the project, make it on every "+
			"machine where programs run", project.Venv, c.Path)
	}
	return c, nil
}

// activated are the variables that make tools use a virtual environment.
func (p python) activated(venv string) []string {
	path, _ := process.Variable(p.tools.env, "PATH")
	return []string{"VIRTUAL_ENV=" + venv, "PYTHONHOME=", "PATH=" + binaries(venv) + string(os.PathListSeparator) + path}
}

// look finds the Python that is used without a virtual environment, and makes them.
func (p python) look() (string, error) {
	names := []string{"python3", "python"}
	if runtime.GOOS == "windows" { // where python3 may be a link to the store
		slices.Reverse(names)
	}
	if name, _ := process.Variable(p.tools.env, "PULUMI_PYTHON_CMD"); filepath.IsAbs(name) {
		return name, nil
	} else if name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := process.Look(p.tools.box, p.tools.env, name); err == nil {
			return path, nil
		}
	}
	return p.tools.look(names[0], "programs in Python")
}

func (p python) program(ctx context.Context, req *pulumirpc.RunRequest, out output) (process.Command, error) {
	info := req.GetInfo()
	if err := p.checkTypes(ctx, info, out); err != nil {
		return process.Command{}, err
	}
	args := []string{
		"-c", runScript, "--monitor", req.GetMonitorAddress(), "--engine", p.engine,
		"--organization", req.GetOrganization(), "--project", req.GetProject(), "--stack", req.GetStack(),
		"--root-directory", info.GetRootDirectory(), "--parallel", strconv.Itoa(int(req.GetParallel())),
	}
	if req.GetDryRun() {
		args = append(args, "--dry-run")
	}
	entry := filepath.Join(info.GetProgramDirectory(), info.GetEntryPoint())
	c, err := p.command(info, append(append(args, entry), req.GetArgs()...)...)
	c.Env = append(c.Env, configEnv(req)...)
	return c, err
}

// checkTypes runs the type checker that the options name.
func (p python) checkTypes(ctx context.Context, info *pulumirpc.ProgramInfo, out output) error {
	checker, _ := option[string](info, "typechecker")
	switch checker {
	case "", "none":
		return nil
	case "mypy", "pyright":
	default:
		return fmt.Errorf("unknown typechecker %q in Pulumi.yaml: use mypy or pyright", checker)
	}
	c, err := p.command(info, "-m", checker, info.GetProgramDirectory())
	if err != nil {
		return err
	}
	c.Stdout, c.Stderr = out.stdout, out.stderr
	exit, err := p.tools.run(ctx, c)
	if err == nil && exit != (process.Exit{}) {
		err = fmt.Errorf("%s failed (%s): correct what it says; it must be among the program's packages, or take "+
			"typechecker out of Pulumi.yaml", checker, exit)
	}
	return err
}

// plugin runs a policy pack with what comes with the package pulumi, a package as it says itself, and a directory by
// its __main__.py.
func (p python) plugin(_ context.Context, req *pulumirpc.RunPluginRequest, _ output) (process.Command, error) {
	info := req.GetInfo()
	dir := info.GetProgramDirectory()
	args := append([]string{dir}, req.GetArgs()...)
	if req.GetKind() == string(apitype.AnalyzerPlugin) {
		args = append(append([]string{"-m", "pulumi.policy"}, req.GetArgs()...), dir)
	} else if name := pythonproject.Package(dir, p.tools.box.ReadFile); name != "" {
		args = append([]string{"-m", "pulumi.run.plugin", name}, req.GetArgs()...)
	}
	c, err := p.command(info, args...)
	c.Dir = req.GetPwd()
	return c, err
}

// PythonDynamicProvider is the command of the provider whose resources are implemented in the Python program of a
// project. Its further argument is the address of the engine.
func PythonDynamicProvider(info *pulumirpc.ProgramInfo, in process.Environment) (process.Command, error) {
	p := python{tools: tools{env: withoutVenv(in.Env), box: in.Box}}
	return p.command(info, "-m", "pulumi.dynamic")
}

// distribution is a package as packages.py prints it.
type distribution struct {
	Name, Version string
	Direct        bool
	Plugin        *pluginManifest
}

func (p python) distributions(ctx context.Context, info *pulumirpc.ProgramInfo) ([]distribution, error) {
	c, err := p.command(info, "-c", packagesScript)
	if err != nil {
		return nil, err
	}
	text, err := p.tools.read(ctx, c)
	if err != nil {
		return nil, err
	}
	var all []distribution
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("reading the list of Python packages: %w", err)
	}
	return all, nil
}

func (p python) required(
	ctx context.Context, info *pulumirpc.ProgramInfo,
) ([]*pulumirpc.PackageDependency, error) {
	all, err := p.distributions(ctx, info)
	found := dependencySet{}
	for _, d := range all {
		if err == nil && d.Plugin != nil {
			err = found.add(d.Plugin, strings.TrimPrefix(d.Name, "pulumi-"), d.Version)
		}
	}
	return found.sorted(), err
}

func (p python) dependencies(
	ctx context.Context, info *pulumirpc.ProgramInfo, transitive bool,
) ([]*pulumirpc.DependencyInfo, error) {
	all, err := p.distributions(ctx, info)
	var deps []*pulumirpc.DependencyInfo
	for _, d := range all {
		if transitive || d.Direct {
			deps = append(deps, &pulumirpc.DependencyInfo{Name: d.Name, Version: d.Version})
		}
	}
	slices.SortFunc(deps, func(a, b *pulumirpc.DependencyInfo) int { return strings.Compare(a.GetName(), b.GetName()) })
	return deps, err
}

func (p python) about() (string, []string, error) {
	path, err := p.look()
	return path, []string{"--version"}, err
}
