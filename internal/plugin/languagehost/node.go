package languagehost

import (
	"context"
	_ "embed" // the preload
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/internal/project/npmworkspace"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// node runs programs in JavaScript and TypeScript, by node or by bun, with the runner that comes with @pulumi/pulumi.
type node struct {
	executable string // node or bun
	tools      tools
	engine     string
	scripts    bool // see Options
}

// InstallEnv are the variables that keep npm, pnpm, bun, both kinds of Yarn, pip, uv and Poetry from running scripts of
// packages unless they are allowed, and have Poetry make the virtual environment in the project.
func InstallEnv(scripts bool) []string {
	env := []string{"POETRY_VIRTUALENVS_CREATE=true", "POETRY_VIRTUALENVS_IN_PROJECT=true"}
	if scripts {
		return env
	}
	env = append(env, "npm_config_ignore_scripts=true", "YARN_IGNORE_SCRIPTS=true", "YARN_ENABLE_SCRIPTS=false")
	return append(env, pythonInstallEnv...)
}

// preload is run by node before the program.
//
//go:embed inspect.mjs
var preload []byte

// sdkModule is where a module of the Pulumi SDK is for a program in dir: in the nearest node_modules that has it.
func (t tools) sdkModule(dir, module string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		path := filepath.Join(at, "node_modules", "@pulumi", "pulumi", "cmd", module, "index.js")
		if _, err := t.box.Stat(path); err == nil {
			return path, nil
		}
		if at == filepath.Dir(at) {
			return "", errors.New("the package @pulumi/pulumi is not installed for the program: list it in a " +
				"package.json in the program's " +
				"directory or the project's (npm install @pulumi/pulumi), or add the directory of that file to " +
				"deploy.include in Pulumi.yaml")
		}
	}
}

// NeedsInstall tells whether a program in dir cannot run before its dependencies are installed.
func NeedsInstall(runtime, dir string, box *sandbox.Box) bool {
	if !npmworkspace.Runtime(runtime) {
		return false // go fetches modules as it builds
	}
	_, err := tools{box: box}.sdkModule(dir, "run")
	return err != nil
}

// DynamicProvider is the command of the provider whose resources are implemented in the Node program in dir: node with
// a script. Its further argument is the address of the engine.
func DynamicProvider(dir string, in process.Environment) (path, script string, err error) {
	t := tools{env: in.Env, box: in.Box}
	if path, err = t.look("node", "dynamic providers"); err != nil {
		return "", "", err
	}
	script, err = t.sdkModule(dir, "dynamic-provider")
	return path, script, err
}

// title is what runs the programs, in messages.
func (n node) title() string {
	if n.executable == "bun" {
		return "bun"
	}
	return "Node.js"
}

func (n node) program(_ context.Context, req *pulumirpc.RunRequest, _ output) (process.Command, error) {
	info := req.GetInfo()
	path, err := n.tools.look(n.executable, "programs in "+n.title())
	if err != nil {
		return process.Command{}, err
	}
	runner, err := n.tools.sdkModule(info.GetProgramDirectory(), "run")
	if err != nil {
		return process.Command{}, err
	}
	nodeArgs, _ := option[string](info, "nodeargs")
	args := append(strings.Fields(nodeArgs),
		"--import", "data:text/javascript;base64,"+base64.StdEncoding.EncodeToString(preload), runner,
		"--monitor", req.GetMonitorAddress(), "--engine", n.engine,
		"--organization", req.GetOrganization(), "--project", req.GetProject(), "--stack", req.GetStack(),
		"--root-directory", info.GetRootDirectory(), "--pwd", info.GetProgramDirectory(),
		"--parallel", strconv.Itoa(int(req.GetParallel())))
	if req.GetDryRun() {
		args = append(args, "--dry-run")
	}
	entry := info.GetEntryPoint()
	if entry == "" {
		entry = "."
	}
	env := configEnv(req)
	if typescript, set := option[bool](info, "typescript"); typescript || !set {
		env = append(env, "PULUMI_NODEJS_TYPESCRIPT=true")
	}
	if tsconfig, set := option[string](info, "tsconfig"); set {
		env = append(env, "PULUMI_NODEJS_TSCONFIG_PATH="+tsconfig)
	}
	return process.Command{
		Path: path, Args: append(append(args, entry), req.GetArgs()...), Env: env, Dir: info.GetProgramDirectory(),
	}, nil
}

// plugin runs a policy pack or another plugin with a runner that comes with @pulumi/pulumi.
func (n node) plugin(_ context.Context, req *pulumirpc.RunPluginRequest, _ output) (process.Command, error) {
	info, module := req.GetInfo(), "run-plugin"
	args := append([]string{filepath.Join(info.GetProgramDirectory(), info.GetEntryPoint())}, req.GetArgs()...)
	if req.GetKind() == string(apitype.AnalyzerPlugin) {
		module, args = "run-policy-pack", append(slices.Clone(req.GetArgs()), info.GetEntryPoint())
	}
	path, err := n.tools.look(n.executable, "plugins in "+n.title())
	if err != nil {
		return process.Command{}, err
	}
	runner, err := n.tools.sdkModule(info.GetProgramDirectory(), module)
	if err != nil {
		return process.Command{}, fmt.Errorf("the package @pulumi/pulumi, with cmd/%s, is not installed for the plugin "+
			"in %s: list it in the plugin's package.json", module, filepath.Base(info.GetProgramDirectory()))
	}
	nodeArgs, _ := option[string](info, "nodeargs")
	return process.Command{
		Path: path, Args: append(append(strings.Fields(nodeArgs), runner), args...), Dir: req.GetPwd(),
	}, nil
}

// installation uses the package manager that the options name, or whose lock file is there, or npm.
func (n node) installation(
	_ context.Context, info *pulumirpc.ProgramInfo, given string,
) ([]process.Command, error) {
	dir := n.manifestDir(info)
	if rel, err := filepath.Rel(given, info.GetProgramDirectory()); dir == "" || given != info.GetProgramDirectory() &&
		err == nil && filepath.IsLocal(rel) {
		dir = npmworkspace.Package(given, given, n.tools.box.ReadFile)
	}
	if dir == "" {
		return nil, nil
	}
	has := func(files ...string) bool {
		return slices.ContainsFunc(files, func(file string) bool {
			_, err := n.tools.box.Stat(filepath.Join(dir, file))
			return err == nil
		})
	}
	manager, _ := option[string](info, "packagemanager")
	manager, args, err := n.installer(manager, has)
	if err != nil {
		return nil, err
	}
	path, err := n.tools.look(manager, "the packages of programs in "+n.title())
	return []process.Command{{Path: path, Args: args, Dir: dir, Env: InstallEnv(n.scripts)}}, err
}

// bunLocks are the lock files of bun: text, and before bun 1.2 binary.
var bunLocks = []string{"bun.lock", "bun.lockb"}

// installer returns the package manager and its arguments; has reports whether there is one of some files.
func (n node) installer(named string, has func(...string) bool) (manager string, args []string, err error) {
	manager, args = named, []string{"install"}
	npmLocked := has("package-lock.json", "npm-shrinkwrap.json")
	if manager == "" {
		switch {
		case has("pnpm-lock.yaml"):
			manager = "pnpm"
		case has("yarn.lock"):
			manager = "yarn"
		case n.executable == "bun", has(bunLocks...) && !npmLocked:
			manager = "bun"
		default:
			manager = "npm"
		}
	}
	locked, ignores := false, true
	switch manager {
	case "pnpm":
		locked = has("pnpm-lock.yaml")
	case "yarn": // which ignores scripts by a variable
		locked, ignores = has("yarn.lock"), false
	case "bun":
		locked = has(bunLocks...)
	case "npm":
		if npmLocked {
			args = []string{"ci"}
		}
		args = append(args, "--loglevel=error", "--no-audit", "--no-fund", "--no-update-notifier")
	default:
		return "", nil, fmt.Errorf("unknown packagemanager %q in Pulumi.yaml: use npm, pnpm, yarn or bun", manager)
	}
	if locked {
		args = append(args, "--frozen-lockfile")
	}
	if ignores && !n.scripts {
		args = append(args, "--ignore-scripts")
	}
	return manager, args, nil
}

// manifestDir is the nearest directory with a package.json, from the program up to the project's root, or empty.
func (n node) manifestDir(info *pulumirpc.ProgramInfo) string {
	for dir := info.GetProgramDirectory(); ; dir = filepath.Dir(dir) {
		if _, err := n.tools.box.Stat(filepath.Join(dir, "package.json")); err == nil {
			return dir
		}
		if dir == info.GetRootDirectory() || dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// manifest is as much of a package.json as matters here.
type manifest struct {
	Name            string
	Version         string
	Dependencies    map[string]string
	DevDependencies map[string]string
	Pulumi          *pluginManifest
}

func (n node) readManifest(dir string) (m manifest, err error) {
	text, err := n.tools.box.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%s: %w", filepath.Join(dir, "package.json"), err)
	}
	return m, nil
}

// required looks through the installed packages, those of packages included, for ones that say they have a provider.
func (n node) required(ctx context.Context, info *pulumirpc.ProgramInfo) ([]*pulumirpc.PackageDependency, error) {
	found := dependencySet{}
	search := moduleSearch{node: n, ctx: ctx, visited: map[string]bool{}, visit: func(m manifest) error {
		if m.Pulumi == nil {
			return nil
		}
		return found.add(m.Pulumi, m.Name[strings.LastIndex(m.Name, "/")+1:], m.Version)
	}}
	for dir := info.GetProgramDirectory(); ; dir = filepath.Dir(dir) {
		if err := search.in(filepath.Join(dir, "node_modules")); err != nil {
			return nil, err
		}
		if dir == info.GetRootDirectory() || dir == filepath.Dir(dir) {
			return found.sorted(), nil
		}
	}
}

func (n node) dependencies(
	ctx context.Context, info *pulumirpc.ProgramInfo, transitive bool,
) ([]*pulumirpc.DependencyInfo, error) {
	dir := n.manifestDir(info)
	own, err := n.readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var deps []*pulumirpc.DependencyInfo
	search := moduleSearch{node: n, ctx: ctx, visited: map[string]bool{}, visit: func(m manifest) error {
		_, direct := own.Dependencies[m.Name]
		_, dev := own.DevDependencies[m.Name]
		if m.Name != "" && (transitive || direct || dev) {
			deps = append(deps, &pulumirpc.DependencyInfo{Name: m.Name, Version: m.Version})
		}
		return nil
	}}
	if err := search.in(filepath.Join(dir, "node_modules")); err != nil {
		return nil, err
	}
	slices.SortFunc(deps, func(a, b *pulumirpc.DependencyInfo) int { return strings.Compare(a.GetName(), b.GetName()) })
	return deps, nil
}

func (n node) about() (string, []string, error) {
	path, err := n.tools.look(n.executable, "programs in "+n.title())
	return path, []string{"--version"}, err
}
