//go:build unix

package session

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// pip installs a script as the Python of programs: it makes virtual environments whose Python does nothing.
func (h *house) pip() (log string) {
	h.t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		h.t.Skip(err)
	}
	tools, log := h.t.TempDir(), filepath.Join(h.world, "installed")
	script := `#!/bin/sh
mkdir -p "$5/bin" && touch "$5/pyvenv.cfg"
printf '#!/bin/sh\necho installed >> LOG\n' > "$5/bin/python"
chmod +x "$5/bin/python"
`
	script = strings.ReplaceAll(script, "LOG", log)
	path := filepath.Join(tools, "python3")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		h.t.Fatal(err)
	}
	h.env = append(h.env, "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	return log
}

var pythonProject = map[string]string{
	"Pulumi.yaml":      "name: test\nruntime: {name: python, options: {virtualenv: venv}}\n",
	"requirements.txt": "pulumi==3.0.0\n",
}

func TestBundlesOfAStackShareTheirVirtualEnvironment(t *testing.T) {
	h := newHouse(t)
	log := h.pip()
	installed := func(files map[string]string, program string) (place string) {
		t.Helper()
		b := h.shelve(files, program)
		if err := b.session.installDependencies(t.Context()); err != nil {
			t.Fatal(err, h.log())
		}
		release(h)
		return b.place
	}
	first := installed(pythonProject, "first")
	second := installed(pythonProject, "second")
	if to, err := os.Readlink(filepath.Join(second, "venv")); err != nil || to != filepath.Join(first, "venv") {
		t.Errorf("the second bundle has %q, %v", to, err)
	}
	other := maps.Clone(pythonProject)
	other["requirements.txt"] = "./lib\n"
	if to, err := os.Readlink(filepath.Join(installed(other, "third"), "venv")); err == nil {
		t.Errorf("another list of packages leads to %q", to)
	}
	if text, err := os.ReadFile(log); err != nil || strings.Count(string(text), "installed") != 2 {
		t.Errorf("%s %v", text, err)
	}
	if err := os.RemoveAll(filepath.Join(first, "venv", "bin")); err != nil {
		t.Fatal(err)
	}
	fourth := installed(pythonProject, "fourth")
	if _, err := os.Stat(filepath.Join(fourth, "venv", "bin", "python")); err != nil {
		t.Errorf("a broken environment is linked: %v", err)
	}
}

func TestAVirtualEnvironmentIsMadeInTheProjectOrNotAtAll(t *testing.T) {
	for name, c := range map[string]struct {
		options, says string
		made          bool
	}{
		"a directory":              {"{virtualenv: env}", "", true},
		"the Python on the PATH":   {"{}", "", false},
		"an environment elsewhere": {"{virtualenv: /opt/venvs/shop}", "", false},
		"outside":                  {"{virtualenv: ../env}", "leads out of what an update takes along", false},
		"files of the project":     {"{virtualenv: lib}", "names a directory with files of the project", false},
		"an unknown toolchain":     {"{toolchain: conda}", "use pip, uv or poetry", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			log := h.pip()
			h.claim(deployments.UpdateRequest{Bundle: h.upload(map[string]string{
				"Pulumi.yaml":      "name: test\nruntime: {name: python, options: " + c.options + "}\n",
				"requirements.txt": "pulumi\n", "lib/ours.py": "",
			})})
			s, err := h.sessions.Hosted(t.Context(), h.update, 0)
			if err != nil {
				t.Fatal(err)
			}
			err = s.installDependencies(t.Context())
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if err != nil && deployments.CodeOf(err) != deployments.CodeInvalid {
				t.Errorf("its code is %v", deployments.CodeOf(err))
			}
			if _, err := os.Stat(log); (err == nil) != c.made {
				t.Errorf("installed: %v", err == nil)
			}
		})
	}
}
