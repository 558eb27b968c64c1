//go:build unix

package languagehost_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/project/pythonproject/pythontest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// sdk is what the host calls of Pulumi's package for Python, without its protocol.
var sdk = map[string][]byte{
	"pulumi/__init__.py": []byte("class RunError(Exception): pass\nfrom . import log, runtime\n"),
	"pulumi/log.py":      []byte("def error(text): print('error: ' + text, flush=True)\n"),
	"pulumi/runtime.py": []byte(`
import json, os
class Settings:
    def __init__(self, monitor, project, stack, dry_run, parallel):
        self.text = project + " " + stack + " " + str(dry_run) + " " + str(parallel) + " " + str(bool(monitor))
def configure(settings): print("settings " + settings.text)
def get_config_env(): return json.loads(os.environ["PULUMI_CONFIG"])
def set_config(key, value): print("config " + key + " " + value)
async def run_in_stack(run): run()
`),
}

// thing is a package with a provider.
var thing = map[string][]byte{
	"pulumi_thing/__init__.py":        []byte("text = 'of the thing'\n"),
	"pulumi_thing/pulumi-plugin.json": []byte(`{"resource": true, "name": "thing", "version": "v2.0.0"}`),
}

// pythonProgram is a program with packages in a directory, which are all there are.
func pythonProgram(t *testing.T, options map[string]any, files map[string]string, env ...string) *program {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not on PATH")
	}
	return pythonProgramIn(t, t.TempDir(), options, files, env...)
}

func pythonProgramIn(
	t *testing.T, dir string, options map[string]any, files map[string]string, env ...string,
) *program {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "wheels"), 0o700),
		pythontest.Wheel(filepath.Join(dir, "wheels"), "pulumi", "1.0.0", sdk),
		pythontest.Wheel(filepath.Join(dir, "wheels"), "pulumi_thing", "2.0.0", thing))
	env = append([]string{"PIP_CONFIG_FILE=" + os.DevNull, "PIP_NO_INDEX=1", "PIP_FIND_LINKS=wheels"}, env...)
	return newProgramOf(t, workspace.NewProjectRuntimeInfo("python", options), dir, env...)
}

// source is a distribution that is built where it is installed.
func source(t *testing.T, dir, name, backend string) {
	t.Helper()
	var text bytes.Buffer
	packed := gzip.NewWriter(&text)
	w := tar.NewWriter(packed)
	for file, content := range map[string]string{
		"PKG-INFO": "Metadata-Version: 1.0\nName: " + name + "\nVersion: 1.0\n", "pyproject.toml": buildable,
		"backend.py": backend,
	} {
		must(t, w.WriteHeader(&tar.Header{Name: name + "-1.0/" + file, Mode: 0o600, Size: int64(len(content))}))
		_, err := w.Write([]byte(content))
		must(t, err)
	}
	must(t, w.Close(), packed.Close(), os.WriteFile(filepath.Join(dir, name+"-1.0.tar.gz"), text.Bytes(), 0o600))
}

const buildable = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"

// backendOf builds a package with nothing but the standard library, and leaves a mark.
func backendOf(name, mark string) string {
	return strings.NewReplacer("NAME", name, "MARK", mark).Replace(`
import zipfile
open("MARK", "w").close()
def build_wheel(directory, config_settings=None, metadata_directory=None):
    info = "NAME-1.0.dist-info/"
    with zipfile.ZipFile(directory + "/NAME-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("NAME.py", "text = 'of NAME'")
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: NAME\nVersion: 1.0\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(info + "RECORD", "")
    return "NAME-1.0-py3-none-any.whl"
`)
}

// TestPackagesOfAPythonProgramAreInstalledIntoItsVirtualEnvironment begins with what an interrupted installation left.
// Scripts may not run, and yet a package of the project itself is built.
func TestPackagesOfAPythonProgramAreInstalledIntoItsVirtualEnvironment(t *testing.T) {
	t.Parallel()
	p := pythonProgram(t, map[string]any{"virtualenv": "venv"}, map[string]string{
		"requirements.txt": "pulumi\npulumi-thing==2.0.0\n./ours\n", "helper.py": "text = 'of the helper'\n",
		"venv/bin/python": "not a Python", "venv/lib/half": "",
		"ours/pyproject.toml": buildable, "ours/backend.py": backendOf("ours", os.DevNull),
		"logging.py": "raise Exception('a file of the program in the place of a standard module')\n",
		"__main__.py": "import sys, helper, pulumi_thing, ours\nprint('python', sys.prefix)\n" +
			"print(helper.text, pulumi_thing.text, ours.text)\n",
	})
	must(t, p.lang.InstallDependencies(t.Context(), p.dir))
	packages, err := p.lang.RequiredPackages(t.Context())
	if err != nil || len(packages) != 1 || packages[0].Name != "thing" || packages[0].Version != "2.0.0" {
		t.Errorf("%+v %v", packages, err)
	}
	if err := p.run(t.Context()); err != nil {
		t.Fatalf("%v %v", err, p.said.messages)
	}
	for _, text := range []string{
		"settings test dev False 8 True", "config test:size 3", "python " + filepath.Join(p.dir, "venv"),
		"of the helper of the thing of ours",
	} {
		if _, ok := p.said.find(text); !ok {
			t.Errorf("nothing says %q: %v", text, p.said.messages)
		}
	}
}

func TestPythonPackagesOfOthersAreBuiltOnlyIfTheStackAllowsIt(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		p := pythonProgram(t, map[string]any{"virtualenv": "venv"}, map[string]string{"requirements.txt": "wild"})
		mark := filepath.Join(p.dir, "mark")
		source(t, filepath.Join(p.dir, "wheels"), "wild", backendOf("wild", mark))
		p.project.AdditionalKeys = map[string]any{"deploy": map[string]any{"installScripts": allowed}}
		lang, err := p.host.Language(t.Context(), "python")
		must(t, err)
		err = lang.InstallDependencies(t.Context(), p.dir)
		if _, missing := os.Stat(mark); (missing == nil) != allowed || (err == nil) != allowed {
			t.Errorf("allowed %v: it was built: %v; %v", allowed, missing == nil, err)
		}
		if !allowed && !strings.Contains(err.Error(), "deploy: {installScripts: true}") {
			t.Errorf("%v", err)
		}
	}
}

// ready is a program whose packages are in a directory on the path of Python, and whose Python is that of an active
// environment.
func ready(t *testing.T, files map[string]string) *program {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sdk {
		files["packages/"+name] = string(text)
	}
	active := filepath.Join(dir, "active")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", active).CombinedOutput(); err != nil {
		t.Skipf("python3 cannot make virtual environments: %v %s", err, out)
	}
	return pythonProgramIn(t, dir, nil, files, "PATH="+filepath.Join(active, "bin")+":"+os.Getenv("PATH"),
		"PYTHONPATH="+filepath.Join(dir, "packages"), "VIRTUAL_ENV="+active)
}

func TestThePythonOnThePathIsUsedWithItsPackagesAndNothingIsInstalled(t *testing.T) {
	t.Parallel()
	p := ready(t, map[string]string{
		"requirements.txt": "no-such-package", "__main__.py": "import sys\nprint('prefix', sys.prefix)\n",
	})
	must(t, p.lang.InstallDependencies(t.Context(), p.dir))
	if err := p.run(t.Context()); err != nil {
		t.Fatalf("%v %v", err, p.said.messages)
	}
	p.said.await(t, "prefix "+filepath.Join(p.dir, "active"))
}

func TestAPythonProgramThatFailsShowsItsOwnFrames(t *testing.T) {
	t.Parallel()
	p := ready(t, map[string]string{
		"__main__.py": "import helper\nhelper.fail()\n", "helper.py": "def fail(): raise ValueError('too small')\n",
	})
	var failed *pluginhost.ProgramError
	if err := p.run(t.Context()); !errors.As(err, &failed) || !failed.Logged {
		t.Fatalf("%v", err)
	}
	for text, said := range map[string]bool{
		"ValueError: too small": true, "__main__.py": true, "helper.py": true, "runpy": false,
	} {
		if _, ok := p.said.find(text); ok != said {
			t.Errorf("%q is said: %v; %v", text, ok, p.said.messages)
		}
	}
}

func TestAPythonProgramWithoutPulumiOrMainSaysWhatToDo(t *testing.T) {
	t.Parallel()
	p := ready(t, map[string]string{})
	if err := p.run(t.Context()); err == nil {
		t.Error("it runs without a program")
	}
	p.said.await(t, "There is no __main__.py")
	must(t, os.RemoveAll(filepath.Join(p.dir, "packages")))
	p = pythonProgramIn(t, p.dir, map[string]any{"virtualenv": "active"}, map[string]string{"__main__.py": ""})
	if err := p.run(t.Context()); err == nil {
		t.Error("it runs without the package pulumi")
	}
	p.said.await(t, "list it in requirements.txt")
	p = pythonProgram(t, map[string]any{"virtualenv": "venv"}, map[string]string{"__main__.py": ""})
	if err := p.run(t.Context()); err == nil || !strings.Contains(err.Error(), "has no Python") {
		t.Errorf("without its environment: %v", err)
	}
}
