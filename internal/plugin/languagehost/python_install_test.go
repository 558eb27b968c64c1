//go:build unix

package languagehost

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sandbox/process"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/structpb"
)

// workspaceLock is the lock file of a uv workspace: the program's package, one beside it, and one of a registry.
const workspaceLock = `
version = 1
[[package]]
name = "infra"
source = { virtual = "infra" }
[[package]]
name = "shared"
source = { editable = "shared" }
[[package]]
name = "pulumi"
source = { registry = "https://registry.example/simple" }
`

func TestThePackageManagerOfAPythonProgramIsTheOneWhoseLockFileIsThere(t *testing.T) {
	for _, c := range []struct {
		options map[string]any
		files   map[string]string
		scripts bool
		want    string // the last command
		env     string // one of its variables
		says    string // or the error
	}{
		{options: map[string]any{"virtualenv": "venv"}, files: map[string]string{"requirements.txt": ""},
			want: "ROOT/venv/bin/python -I -m pip install --disable-pip-version-check --no-input --quiet " +
				"--only-binary :all: -r requirements.txt",
			env: "PIP_ONLY_BINARY=:all:"},
		{options: map[string]any{"virtualenv": "venv"}, files: map[string]string{"requirements.txt": ""}, scripts: true,
			want: "ROOT/venv/bin/python -I -m pip install --disable-pip-version-check --no-input --quiet -r requirements.txt",
			env:  "VIRTUAL_ENV=ROOT/venv"},
		{options: map[string]any{"virtualenv": "venv"}, want: "TOOLS/python3 -I -m venv --clear ROOT/venv"},
		{files: map[string]string{"requirements.txt": "pulumi"}}, // into the Python on the PATH nothing is installed
		{files: map[string]string{"uv.lock": workspaceLock, "infra/pyproject.toml": ""},
			want: "TOOLS/uv sync --no-progress --locked --no-build --no-binary-package infra --no-binary-package shared",
			env:  "UV_PROJECT_ENVIRONMENT=ROOT/.venv"},
		{options: map[string]any{"virtualenv": "other"}, files: map[string]string{"uv.lock": workspaceLock}, scripts: true,
			want: "TOOLS/uv sync --no-progress --locked", env: "UV_PROJECT_ENVIRONMENT=ROOT/other"},
		{options: map[string]any{"toolchain": "uv"}, files: map[string]string{"infra/pyproject.toml": ""},
			want: "TOOLS/uv sync --no-progress --no-build", env: "UV_PROJECT_ENVIRONMENT=ROOT/infra/.venv"},
		{files: map[string]string{"poetry.lock": "", "pyproject.toml": ""},
			want: "TOOLS/poetry install --no-interaction --no-ansi", env: "POETRY_VIRTUALENVS_IN_PROJECT=true"},
		{files: map[string]string{"poetry.lock": "", "uv.lock": workspaceLock}, scripts: true,
			want: "TOOLS/uv sync --no-progress --locked", env: "UV_PYTHON_DOWNLOADS=never"},
		{options: map[string]any{"toolchain": "uv"}, files: map[string]string{"requirements.txt": ""},
			says: "needs a pyproject.toml"},
		{options: map[string]any{"toolchain": "conda"}, says: "use pip, uv or poetry"},
		{options: map[string]any{"virtualenv": "infra"}, says: "the program is in it"},
		{files: map[string]string{"uv.lock": "["}, says: "uv.lock: "},
	} {
		root, tools := t.TempDir(), t.TempDir()
		p := fakePython(t, tools, "Poetry (version 2.1.4)")
		p.scripts = c.scripts
		install(t, root, c.files)
		options, err := structpb.NewStruct(c.options)
		must(t, err)
		commands, err := p.installation(t.Context(), &pulumirpc.ProgramInfo{
			RootDirectory: root, ProgramDirectory: filepath.Join(root, "infra"), Options: options,
		}, "")
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v with %v: %v", c.options, c.files, err)
		}
		got, env := "", []string(nil)
		if len(commands) > 0 {
			last := commands[len(commands)-1]
			got, env = strings.Join(append([]string{last.Path}, last.Args...), " "), last.Env
		}
		real := strings.NewReplacer("ROOT", root, "TOOLS", tools)
		if got != real.Replace(c.want) || c.env != "" && !slices.Contains(env, real.Replace(c.env)) {
			t.Errorf("%v with %v:\n%s\n%v", c.options, c.files, got, env)
		}
	}
}

func TestAPoetryThatCannotBeKeptFromRunningScriptsIsRefused(t *testing.T) {
	root := t.TempDir()
	install(t, root, map[string]string{"poetry.lock": "", "pyproject.toml": ""})
	for version, fits := range map[string]bool{
		"Poetry (version 1.8.5)": false, "Poetry (version 2.0.0)": true, "?": false,
	} {
		p := fakePython(t, t.TempDir(), version)
		info := &pulumirpc.ProgramInfo{RootDirectory: root, ProgramDirectory: root}
		if _, err := p.installation(t.Context(), info, ""); (err == nil) != fits {
			t.Errorf("%s: %v", version, err)
		}
		p.scripts = true
		if _, err := p.installation(t.Context(), info, ""); err != nil {
			t.Errorf("%s, and scripts may run: %v", version, err)
		}
	}
}

func TestAMissingPackageManagerOfPythonIsNamed(t *testing.T) {
	for tool, file := range map[string]string{"uv": "uv.lock", "poetry": "poetry.lock", "python3": "requirements.txt"} {
		root := t.TempDir()
		install(t, root, map[string]string{file: ""})
		info := &pulumirpc.ProgramInfo{RootDirectory: root, ProgramDirectory: root}
		if tool == "python3" {
			info.Options, _ = structpb.NewStruct(map[string]any{"virtualenv": "venv"})
		}
		p := python{tools: tools{env: []string{"PATH=" + t.TempDir()}}}
		_, err := p.installation(t.Context(), info, "")
		if err == nil || !strings.HasPrefix(err.Error(), tool+" was not found on PATH; install it") {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

// fakePython has tools that only say the version of Poetry.
func fakePython(t *testing.T, dir, says string) python {
	t.Helper()
	for _, name := range []string{"python3", "uv", "poetry"} {
		script := "#!/bin/sh\necho '" + says + "'\n"
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700)) //nolint:gosec // it is run
	}
	return python{tools: tools{env: withoutVenv([]string{"PATH=" + dir, "VIRTUAL_ENV=/active", "CONDA_PREFIX=/conda"})}}
}

func TestAnActiveEnvironmentIsNotInstalledInto(t *testing.T) {
	p := fakePython(t, t.TempDir(), "")
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if value, ok := process.Variable(p.tools.env, name); ok {
			t.Errorf("%s is %q", name, value)
		}
	}
}

func install(t *testing.T, root string, files map[string]string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(root, "infra"), 0o700))
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
