// Package project is a project on the user's disk: Pulumi.yaml, the stacks' configuration files with their secrets, the
// files that an update takes along, and which stack is selected. It speaks to a service through small interfaces.
//
// Below it:
//
//   - npmworkspace: finds the npm workspace of a Node program
//   - pythonproject: finds the package manager, the virtual environment and the workspace of a Python program
//   - pythonproject/pythontest: makes Python packages for tests
package project

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/hashicorp/go-multierror"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// Project is an ordinary Pulumi project.
type Project struct {
	File       string // path of Pulumi.yaml
	Dir        string // absolute, without symbolic links
	Definition *workspace.Project
}

// Name is the project's name.
func (p *Project) Name() string { return string(p.Definition.Name) }

// Find loads the project that dir belongs to: the one of the nearest Pulumi.yaml in dir or above it.
func Find(dir string) (*Project, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s is not a directory", dir)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	file, err := workspace.DetectProjectPathFrom(dir)
	if errors.Is(err, workspace.ErrProjectNotFound) {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"there is no Pulumi.yaml in %s or in a directory above it; go to a project's directory or name one with "+
				"--cwd", dir)
	}
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot look for Pulumi.yaml: %w", err)
	}
	if text, err := os.ReadFile(file); err == nil {
		if err := checkBytes(file, text, true); err != nil {
			return nil, err
		}
	}
	definition, err := workspace.LoadProject(file)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the project file is not valid; correct it and try "+
			"again: %w", innermost(file, err))
	}
	if err := deployments.ValidateName("project", string(definition.Name)); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s: %w", file, err)
	}
	if definition.Runtime.Name() == "client" {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s has the runtime client, whose program runs where it "+
			"was started and could not be started again after a loss; name the language of the program, such as "+
			"runtime: yaml", file)
	}
	p := &Project{File: file, Dir: filepath.Dir(file), Definition: definition}
	return p, p.checkOwn()
}

// innermost keeps of what a project file violates in its schema what is said of the innermost place. All places around
// it are reported, too, once for each form that they could have.
func innermost(file string, err error) error {
	var all *multierror.Error
	if !errors.As(err, &all) || all == nil || len(all.Errors) == 0 {
		return err
	}
	depth := func(e error) int {
		place, _, _ := strings.Cut(e.Error(), ": ")
		return strings.Count(place, "/")
	}
	most := depth(slices.MaxFunc(all.Errors, func(a, b error) int { return depth(a) - depth(b) }))
	var said []string
	for _, e := range all.Errors {
		if depth(e) == most && !slices.Contains(said, e.Error()) {
			said = append(said, e.Error())
		}
	}
	return fmt.Errorf("%s: %s", file, strings.Join(said, "; "))
}

// Stack loads the configuration file of one of the project's stacks; a file that does not exist reads as empty.
func (p *Project) Stack(name string) (*Stack, error) { return p.StackIn(name, "") }

// StackIn loads the configuration of a stack from a file, which is Pulumi.STACK.yaml if path is empty. Only that one
// may be missing.
func (p *Project) StackIn(name, path string) (*Stack, error) {
	if path == "" {
		path = workspace.ProjectStackPath(p.File, p.Definition, tokens.QName(name))
	} else if _, err := os.Stat(path); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "--config-file: %w; create the file first", err)
	}
	text, err := readIfThere(path)
	var file *workspace.ProjectStack
	if err == nil {
		file, err = p.parse(path, text)
	}
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s is not valid; correct it and try again: %w", path,
			err)
	}
	return &Stack{Path: path, project: p, name: name, file: file, read: text}, nil
}
