package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// project is the path of the product's module, with which those of the project's other modules begin.
const project = "github.com/deployctl/deployctl"

// variables of the linker by which a build knows what it is.
const variables = project + "/internal/sys/build."

// packages of the programs.
var packages = map[string]string{client: "./cmd/deployctl", embedded: "./cmd/deployctl/deployctl-embedded"}

// buildAll builds the programs of all targets into a directory.
func (r *release) buildAll(dir string, targets []target) error {
	for _, t := range targets {
		b := build{target: t, paths: map[string]string{}}
		for _, name := range t.programs {
			fmt.Fprintf(os.Stderr, "building %s for %s\n", name, t)
			path := filepath.Join(dir, t.os, t.arch, name+t.extension())
			if err := compile(r.root, packages[name], path, t, r.linked()); err != nil {
				return fmt.Errorf("build %s for %s: %w", name, t, err)
			}
			b.paths[name] = path
		}
		r.builds = append(r.builds, b)
	}
	return nil
}

func (t target) extension() string {
	if t.os == "windows" {
		return ".exe"
	}
	return ""
}

// linked are the flags by which the linker says which release it is.
func (r *release) linked() string {
	var flags []string
	for _, x := range [][2]string{{"version", r.version}, {"commit", r.commit}, {"date", r.time.Format(time.RFC3339)}} {
		flags = append(flags, "-X "+variables+x[0]+"="+x[1])
	}
	return strings.Join(flags, " ")
}

// goflags are the flags of the Makefile: what is released is what was tested.
const goflags = "-buildvcs=false -trimpath -tags=release,disable_grpc_modules -gcflags=all=-dwarf=false"

// workspace has programs built in the workspace of the tree, as the Makefile builds them: with the versions that were
// tested.
const workspace = "GOWORK=auto"

// compile builds a package of the module in a directory into a program that is the same wherever, whenever and by whom
// it is built: without paths of this machine, an id of the build, C, and what variables of Go here may say.
func compile(dir, pkg, path string, t target, linked string) error {
	version, err := toolchain(dir)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-ldflags", "-w -buildid= "+linked, "-o", path, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS="+goflags, "CGO_ENABLED=0", workspace, "GOTOOLCHAIN="+version,
		"GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

var directive = regexp.MustCompile(`(?m)^go (\S+)$`)

// toolchain returns the version of Go that the module in a directory says: another one compiles other bytes.
func toolchain(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	found := directive.FindSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s/go.mod names no version of Go", dir)
	}
	return "go" + string(found[1]), nil
}

// gather asks the client for what is packed beside it, and collects the licences. If nothing is released for this
// machine, its client is built in a directory.
func (r *release) gather(dir string) error {
	here := target{os: runtime.GOOS, arch: runtime.GOARCH}
	var asked, program string
	for _, b := range r.builds {
		if b.String() == here.String() {
			asked = b.paths[client]
		}
		if program == "" || b.paths[embedded] != "" { // which has everything that the client has
			program = cmp.Or(b.paths[embedded], b.paths[client])
		}
	}
	if asked == "" {
		asked = filepath.Join(dir, client+here.extension())
		if err := compile(r.root, packages[client], asked, here, r.linked()); err != nil {
			return err
		}
	}
	r.completions = map[string][]byte{}
	for _, shell := range shells {
		script, err := output(r.root, asked, "completion", shell)
		if err != nil {
			return err
		}
		r.completions[shell] = []byte(script + "\n")
	}
	var err error
	r.licences, err = r.licencesOf(program)
	return err
}

// output returns what a command prints, without the white space around it.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", cmd, err, bytes.TrimSpace(exit.Stderr))
	}
	return strings.TrimSpace(string(out)), err
}
