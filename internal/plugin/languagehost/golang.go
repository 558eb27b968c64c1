package languagehost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/gofrs/flock"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// golang runs programs in Go: it builds them and runs the binary.
type golang struct {
	tools  tools
	engine string
}

// keepBinaries is how long a program's binary is kept after its last run. Building an unchanged program onto its binary
// skips the linking, which takes most of the time.
const keepBinaries = 7 * 24 * time.Hour

// lockRetry is how often a wanted lock is tried again: no system tells when one becomes free without blocking a thread.
const lockRetry = 50 * time.Millisecond

func (g golang) program(ctx context.Context, req *pulumirpc.RunRequest, out output) (process.Command, error) {
	info := req.GetInfo()
	binary, prebuilt := option[string](info, "binary")
	if prebuilt && !filepath.IsAbs(binary) {
		binary = filepath.Join(info.GetRootDirectory(), binary)
	}
	if !prebuilt {
		var err error
		if binary, err = g.build(ctx, info, out); err != nil {
			return process.Command{}, err
		}
	}
	env := append(configEnv(req),
		"PULUMI_ORGANIZATION="+req.GetOrganization(), "PULUMI_PROJECT="+req.GetProject(),
		"PULUMI_STACK="+req.GetStack(),
		"PULUMI_ROOT_DIRECTORY="+info.GetRootDirectory(),
		"PULUMI_DRY_RUN="+strconv.FormatBool(req.GetDryRun()), "PULUMI_PARALLEL="+strconv.Itoa(int(req.GetParallel())),
		"PULUMI_MONITOR="+req.GetMonitorAddress(), "PULUMI_ENGINE="+g.engine)
	return process.Command{Path: binary, Args: req.GetArgs(), Env: env, Dir: info.GetProgramDirectory()}, nil
}

// plugin builds the plugin, unless an option names its binary.
func (g golang) plugin(ctx context.Context, req *pulumirpc.RunPluginRequest, out output) (process.Command, error) {
	info := req.GetInfo()
	binary, prebuilt := option[string](info, "binary")
	switch {
	case !prebuilt:
		var err error
		if binary, err = g.build(ctx, info, out); err != nil {
			return process.Command{}, err
		}
	case !filepath.IsAbs(binary):
		binary = filepath.Join(info.GetProgramDirectory(), binary)
	}
	return process.Command{Path: binary, Args: req.GetArgs(), Dir: req.GetPwd()}, nil
}

// build builds the program in its directory and returns the path of the binary. Builds of one program wait for each
// other: only the first writes the binary, so none is changed while it is run.
func (g golang) build(ctx context.Context, info *pulumirpc.ProgramInfo, out output) (string, error) {
	path, err := g.tools.look("go", "programs in Go")
	if err != nil {
		return "", err
	}
	dir, entry := info.GetProgramDirectory(), info.GetEntryPoint()
	if entry == "" {
		entry = "."
	}
	lock, err := g.lock(ctx, dir, entry)
	if err != nil {
		return "", fmt.Errorf("waiting for another build of the program: %w", err)
	}
	defer func() { _ = lock.Close() }() // which frees it
	home, err := g.binaryHome(dir, entry)
	if err != nil {
		return "", err
	}
	binary, ok := option[string](info, "buildTarget")
	switch {
	case !ok:
		binary = filepath.Join(home, "program.exe")
	case !filepath.IsAbs(binary):
		binary = filepath.Join(info.GetRootDirectory(), binary)
	}
	var away unreachable
	exit, err := g.tools.run(ctx, process.Command{
		Path: path, Args: []string{"build", "-o", binary, entry}, Dir: dir,
		Stdout: out.stdout, Stderr: away.watch(downloads(out.stderr)),
	})
	switch hint := away.hint(); {
	case err != nil || exit == (process.Exit{}):
	case hint != "":
		err = fmt.Errorf("go build failed (%s)%s", exit, hint)
	default:
		err = fmt.Errorf("the program does not compile: go build failed (%s)", exit)
	}
	return binary, err
}

// downloads passes on what Go writes, but of the lines for each module that it downloads only that it does.
func downloads(line func(string)) func(string) {
	said := false
	return func(text string) {
		if !strings.HasPrefix(text, "go: downloading ") {
			line(text)
		} else if !said {
			said = true
			line("go: downloading modules")
		}
	}
}

// lock waits until nobody else builds a program. Some programs share a lock, so that the number of files is bounded.
func (g golang) lock(ctx context.Context, dir, entry string) (*flock.Flock, error) {
	locks, err := g.tools.box.Locks()
	if err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(locks, binaryName(dir, entry)[:2]), flock.SetPermissions(0o600))
	_, err = lock.TryLockContext(ctx, lockRetry)
	return lock, err
}

// binaryName is the name of the directory that a program's binary is kept in.
func binaryName(dir, entry string) string {
	sum := sha256.Sum256([]byte(dir + "\x00" + entry))
	return hex.EncodeToString(sum[:12])
}

// binaryHome makes the directory that a program's binary is kept in, and returns its path. The binaries of programs
// that have not been run for long are removed.
func (g golang) binaryHome(dir, entry string) (string, error) {
	cache, err := g.tools.box.Cache()
	if err != nil {
		return "", err
	}
	defer func() { _ = cache.Close() }()
	programs := filepath.Join(cache.Path, "deployctl", "programs")
	home := filepath.Join(programs, binaryName(dir, entry))
	err = g.tools.box.Do(func() error {
		if err := cache.MkdirAll(home, 0o700); err != nil {
			return err
		}
		now := time.Now()
		_ = cache.Chtimes(home, now, now) // at worst it is built anew
		kept, _ := cache.Entries(programs)
		for _, k := range kept {
			at, err := cache.Lstat(filepath.Join(programs, k.Name()))
			if err == nil && now.Sub(at.ModTime()) > keepBinaries {
				_ = cache.RemoveAll(filepath.Join(programs, k.Name()))
			}
		}
		return nil
	})
	return filepath.Join(cache.Name(), home), err
}

func (g golang) installation(
	_ context.Context, info *pulumirpc.ProgramInfo, _ string,
) ([]process.Command, error) {
	path, err := g.tools.look("go", "programs in Go")
	return []process.Command{{Path: path, Args: []string{"mod", "download"}, Dir: info.GetProgramDirectory()}}, err
}

// module is as much of the output of go list -m -json as matters here.
type module struct {
	Path, Version, Dir string
	Main, Indirect     bool
}

func (g golang) modules(ctx context.Context, info *pulumirpc.ProgramInfo) ([]module, error) {
	path, err := g.tools.look("go", "programs in Go")
	if err != nil {
		return nil, err
	}
	text, err := g.tools.read(ctx, process.Command{
		Path: path, Args: []string{"list", "-m", "-json", "all"}, Dir: info.GetProgramDirectory(),
	})
	if err != nil {
		return nil, err
	}
	var all []module
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var m module
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the output of go list: %w", err)
		}
		all = append(all, m)
	}
}

// required looks in the program's modules for the files that say they have a provider.
func (g golang) required(ctx context.Context, info *pulumirpc.ProgramInfo) ([]*pulumirpc.PackageDependency, error) {
	modules, err := g.modules(ctx, info)
	if err != nil {
		return nil, err
	}
	found := dependencySet{}
	for _, m := range modules {
		if m.Dir == "" || m.Main {
			continue
		}
		for _, dir := range g.manifestDirs(m.Dir) {
			var p pluginManifest
			text, err := g.tools.box.ReadFile(filepath.Join(dir, "pulumi-plugin.json"))
			if err != nil || json.Unmarshal(text, &p) != nil {
				continue
			}
			if err := errors.Join(found.add(&p, filepath.Base(dir), m.Version), ctx.Err()); err != nil {
				return nil, err
			}
		}
	}
	return found.sorted(), nil
}

// manifestDirs are the directories in which a module may say that it has a provider: its own, go in it, and those in
// these.
func (g golang) manifestDirs(module string) []string {
	var dirs []string
	for _, dir := range []string{module, filepath.Join(module, "go")} {
		dirs = append(dirs, dir)
		entries, _ := g.tools.box.ReadDir(dir, mostEntries) // one with more is no module's
		for _, e := range entries {
			if !e.Type().IsRegular() {
				dirs = append(dirs, filepath.Join(dir, e.Name()))
			}
		}
	}
	return dirs
}

func (g golang) dependencies(
	ctx context.Context, info *pulumirpc.ProgramInfo, transitive bool,
) ([]*pulumirpc.DependencyInfo, error) {
	modules, err := g.modules(ctx, info)
	var deps []*pulumirpc.DependencyInfo
	for _, m := range modules {
		if !m.Main && (transitive || !m.Indirect) {
			deps = append(deps, &pulumirpc.DependencyInfo{Name: m.Path, Version: m.Version})
		}
	}
	return deps, err
}

func (g golang) about() (string, []string, error) {
	path, err := g.tools.look("go", "programs in Go")
	return path, []string{"version"}, err
}
