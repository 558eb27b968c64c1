//go:build unix

package session

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// npm installs a script as the npm of programs.
func (h *house) npm(script string) {
	h.t.Helper()
	tools := h.t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "npm"), []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		h.t.Fatal(err)
	}
	h.env = append(h.env, "PATH="+tools+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestSessionsOfOneBundleInstallOneAfterAnother(t *testing.T) {
	h := newHouse(t)
	log := filepath.Join(h.world, "installed")
	h.npm("#!/bin/sh\nmkdir node_modules || exit 1\necho installed >> " + log + "\n") // mkdir fails if it exists
	bundle := h.upload(map[string]string{
		"Pulumi.yaml": "name: test\nruntime: nodejs\n", "package.json": `{"scripts": {"prepare": "true"}}`,
	})
	sessionOf := func(request deployments.UpdateRequest) *Session {
		t.Helper()
		h.claim(request)
		s, err := h.sessions.Hosted(t.Context(), h.update, 0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := sessionOf(deployments.UpdateRequest{Bundle: bundle}),
		sessionOf(deployments.UpdateRequest{Bundle: bundle, DryRun: true})
	if first.programDir() != second.programDir() {
		t.Fatalf("the sessions are in %s and %s", first.programDir(), second.programDir())
	}
	other, err := h.sessions.bundles.LockInstall(t.Context(), first.programDir())
	if err != nil {
		t.Fatal(err)
	}
	waiting, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if err := first.installDependencies(waiting); err == nil {
		t.Error("it did not wait for an installation of another process")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for _, s := range []*Session{first, second} {
		go func() { errs <- s.installDependencies(t.Context()) }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(log); err != nil || strings.Count(string(text), "installed") != 1 {
		t.Errorf("installed: %s %v", text, err)
	}
}

func TestPackagesAreInstalledWhereTheyAreListedAndRunNoScripts(t *testing.T) {
	workspace := map[string]string{
		"package.json": `{"private": true, "workspaces": ["libs/*", "infra"]}`, "libs/ours/index.js": "",
		"libs/ours/package.json": `{"name": "@corp/ours", "version": "1.0.0"}`,
		"infra/Pulumi.yaml":      "name: test\nruntime: nodejs\n",
		"infra/package.json":     `{"name": "infra", "version": "1.0.0", "dependencies": {"@corp/ours": "^1.0.0"}}`,
	}
	for name, c := range map[string]struct {
		files map[string]string
		dir   string // the directory of Pulumi.yaml
		made  string // a file that the installation creates
		not   string
	}{
		"beside the program": {map[string]string{
			"Pulumi.yaml": "name: test\nruntime: nodejs\n", "package.json": `{"scripts": {"postinstall": "touch ran"}}`,
		}, "", "package.json", "ran"},
		"above the program": {map[string]string{
			"Pulumi.yaml": "name: test\nruntime: nodejs\nmain: src\n", "src/index.js": "",
			"lib/package.json": `{"name": "ours", "version": "1.0.0"}`,
			"package.json":     `{"dependencies": {"ours": "file:lib"}}`,
		}, "", "node_modules/ours/package.json", "src/node_modules"},
		"with scripts that the stack allows": {map[string]string{
			"Pulumi.yaml":  "name: test\nruntime: nodejs\ndeploy: {installScripts: true}\n",
			"package.json": `{"scripts": {"postinstall": "touch ran"}}`,
		}, "", "ran", "nothing"},
		"at the root of the workspace, whose packages are its own": {workspace, "infra",
			"node_modules/@corp/ours/index.js", "infra/node_modules"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			// no registry can be reached
			h.env = append(h.env, "npm_config_registry=http://127.0.0.1:1", "npm_config_fetch_retries=0")
			h.claim(deployments.UpdateRequest{Bundle: h.uploadBelow(c.files, c.dir)})
			s, err := h.sessions.Hosted(t.Context(), h.update, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.installDependencies(t.Context()); err != nil {
				t.Fatal(err, h.log())
			}
			if _, err := os.Stat(filepath.Join(s.place, c.made)); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(s.place, c.not)); err == nil {
				t.Errorf("%s is there", c.not)
			}
		})
	}
}
