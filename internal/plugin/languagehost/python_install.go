package languagehost

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/deployctl/deployctl/internal/project/pythonproject"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// pythonInstallEnv keeps pip, uv and Poetry from building packages of others, which runs scripts of these.
var pythonInstallEnv = []string{"PIP_ONLY_BINARY=:all:", "UV_NO_BUILD=1", "POETRY_INSTALLER_ONLY_BINARY=:all:"}

// binaryPoetry is the first major version of Poetry that can be kept from building packages.
const binaryPoetry = 2

// installation creates the virtual environment and installs packages into it. Without one there is nothing to do: the
// packages of the Python on the PATH are the business of whoever made the machine.
func (p python) installation(
	ctx context.Context, info *pulumirpc.ProgramInfo, _ string,
) ([]process.Command, error) {
	project, err := p.project(info)
	if err != nil || project.Venv == "" {
		return nil, err
	}
	if inside, err := filepath.Rel(project.Venv, info.GetProgramDirectory()); err == nil && filepath.IsLocal(inside) {
		return nil, fmt.Errorf("the virtual environment of Pulumi.yaml is %s, and the program is in it: name another "+
			"directory, such as venv", project.Venv)
	}
	switch project.Manager {
	case pythonproject.UV:
		return p.syncUV(info, project)
	case pythonproject.Poetry:
		return p.installPoetry(ctx, info)
	}
	return p.installPip(project)
}

// installPip starts from an empty virtual environment: what an interrupted installation left may be incomplete. Python
// is isolated (-I), so that it imports no file of the program in the place of a standard module.
func (p python) installPip(project pythonproject.Project) ([]process.Command, error) {
	path, err := p.look()
	if err != nil {
		return nil, err
	}
	commands := []process.Command{{
		Path: path, Args: []string{"-I", "-m", "venv", "--clear", project.Venv}, Dir: project.Dir,
	}}
	if _, err := p.tools.box.Stat(filepath.Join(project.Dir, pythonproject.Requirements)); err != nil {
		return commands, nil
	}
	args := []string{"-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet"}
	if !p.scripts {
		args = append(args, "--only-binary", ":all:")
	}
	return append(commands, process.Command{
		Path: Interpreter(project.Venv), Args: append(args, "-r", pythonproject.Requirements), Dir: project.Dir,
		Env: append(InstallEnv(p.scripts), p.activated(project.Venv)...),
	}), nil
}

// syncUV installs exactly what the lock file lists. Packages that are directories of the project are built; others only
// if scripts may run. The Python itself is never downloaded.
func (p python) syncUV(info *pulumirpc.ProgramInfo, project pythonproject.Project) ([]process.Command, error) {
	path, err := p.tools.look(pythonproject.UV, "programs in Python whose packages uv installs")
	if err != nil {
		return nil, err
	}
	args := []string{"sync", "--no-progress"}
	if project.Locked {
		args = append(args, "--locked")
	}
	if !p.scripts {
		args = append(args, "--no-build")
	}
	if !p.scripts && project.Locked {
		local, err := project.Local(p.tools.box.ReadFile)
		if err != nil {
			return nil, err
		}
		for _, name := range local {
			args = append(args, "--no-binary-package", name) // the exception from --no-build
		}
	}
	return []process.Command{{
		Path: path, Args: args, Dir: info.GetProgramDirectory(),
		Env: []string{"UV_PROJECT_ENVIRONMENT=" + project.Venv, "UV_PYTHON_DOWNLOADS=never"},
	}}, nil
}

// installPoetry has Poetry make the virtual environment beside its pyproject.toml.
func (p python) installPoetry(ctx context.Context, info *pulumirpc.ProgramInfo) ([]process.Command, error) {
	path, err := p.tools.look(pythonproject.Poetry, "programs in Python whose packages Poetry installs")
	if err != nil {
		return nil, err
	}
	if !p.scripts {
		if err := p.wantBinaryPoetry(ctx, path); err != nil {
			return nil, err
		}
	}
	return []process.Command{{
		Path: path, Args: []string{"install", "--no-interaction", "--no-ansi"}, Dir: info.GetProgramDirectory(),
		Env: InstallEnv(p.scripts),
	}}, nil
}

var poetryMajor = regexp.MustCompile(`version (\d+)\.`)

// wantBinaryPoetry refuses a Poetry that would run scripts of packages whatever it is told.
func (p python) wantBinaryPoetry(ctx context.Context, path string) error {
	said, err := p.tools.read(ctx, process.Command{Path: path, Args: []string{"--version", "--no-ansi"}})
	if err != nil {
		return err
	}
	found := poetryMajor.FindStringSubmatch(said)
	if found == nil {
		return fmt.Errorf("poetry --version says %q, which names no version", said)
	}
	if major, err := strconv.Atoi(found[1]); err == nil && major >= binaryPoetry {
		return nil
	}
	return fmt.Errorf("%s runs scripts of packages as it installs them and cannot be kept from it: install Poetry %d or "+
		"later, or let packages run scripts with deploy: {installScripts: true} in Pulumi.yaml", said, binaryPoetry)
}
