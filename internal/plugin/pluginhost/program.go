package pluginhost

import (
	"fmt"
	"path/filepath"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// program is the location of a project's program.
type program struct {
	root    string         // directory of Pulumi.yaml
	dir     string         // the directory in which it runs
	entry   string         // a file within dir, or "."
	options map[string]any // runtime options of the project
}

// findProgram applies the "main" of a project: a directory or a file below the root.
func findProgram(root string, project *workspace.Project, box *sandbox.Box) (program, error) {
	p := program{root: root, dir: root, entry: "."}
	if project == nil {
		return p, nil
	}
	p.options = project.Runtime.Options()
	if project.Main == "" {
		return p, nil
	}
	if !filepath.IsLocal(project.Main) {
		return p, fmt.Errorf("main is %q in Pulumi.yaml: it must be a path below the project", project.Main)
	}
	main := filepath.Join(root, project.Main)
	info, err := box.Stat(main)
	switch {
	case err != nil:
		return p, fmt.Errorf("main is %q in Pulumi.yaml: %w", project.Main, err)
	case info.IsDir():
		p.dir = main
	default:
		p.dir, p.entry = filepath.Split(main)
		p.dir = filepath.Clean(p.dir)
	}
	return p, nil
}

// environment is a list of KEY=value; the last of equal keys counts.
type environment []string

func (e environment) get(key string) string {
	value, _ := e.lookup(key)
	return value
}

// lookup distinguishes an empty value from a missing one.
func (e environment) lookup(key string) (string, bool) {
	return process.Variable(e, key)
}

// with returns a copy of the environment with more variables, which override equal names; it is never nil.
func (e environment) with(more ...string) environment {
	return append(append(environment{}, e...), more...)
}
