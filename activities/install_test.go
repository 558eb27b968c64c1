//go:build unix

package activities

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/gofrs/flock"
)

// npm makes a script the npm of programs.
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
	h.npm("#!/bin/sh\nmkdir node_modules || exit 1\necho installed >> " + log + "\n") // it bears no other one beside it
	bundle := h.upload(map[string]string{
		"Pulumi.yaml": "name: test\nruntime: nodejs\n", "package.json": `{"scripts": {"prepare": "true"}}`,
	})
	sessionOf := func(request deployments.UpdateRequest) *session {
		t.Helper()
		h.claim(request)
		s, err := h.acts.hosted(t.Context(), h.update, h.base)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first, second := sessionOf(deployments.UpdateRequest{Bundle: bundle}), sessionOf(deployments.UpdateRequest{Bundle: bundle, DryRun: true})
	if first.programDir() != second.programDir() {
		t.Fatalf("the sessions are in %s and %s", first.programDir(), second.programDir())
	}
	other := flock.New(h.acts.shelf.beside(first.programDir(), ".lock"))
	if ok, err := other.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
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
	for _, s := range []*session{first, second} {
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
