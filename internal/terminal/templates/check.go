package templates

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"gopkg.in/yaml.v3"
)

// What a template may contain.
const (
	maxFiles     = 2000
	maxFile      = 8 << 20
	maxTotal     = 64 << 20
	maxPath      = 512
	maxDirectory = 32 // how deep
)

// check refuses files that a project should not get from a template: too many or too large ones, and those whose path
// leads out of the project, into a git directory, or cannot be shown.
func check(files []File) error {
	if len(files) > maxFiles {
		return tooMany(len(files))
	}
	seen, total := map[string]bool{}, 0
	for _, f := range files {
		if err := checkPath(f.Path); err != nil {
			return err
		}
		if seen[f.Path] {
			return deployments.Errorf(deployments.CodeInvalid, "the template has the file %q twice", f.Path)
		}
		seen[f.Path] = true
		if total += len(f.Content); len(f.Content) > maxFile || total > maxTotal {
			return tooLarge(f.Path)
		}
		if err := checkConfiguration(f); err != nil {
			return err
		}
	}
	return nil
}

func tooMany(n int) error {
	return deployments.Errorf(deployments.CodeInvalid, "the template has %d files; at most %d are allowed", n, maxFiles)
}

func tooLarge(name string) error {
	return deployments.Errorf(deployments.CodeInvalid, "the template is too large, at %q: a file may have %d MiB, and "+
		"all together %d MiB", name, maxFile>>20, maxTotal>>20)
}

// checkPath refuses a path that is not a plain one below the project's directory.
func checkPath(name string) error {
	refused := func(why string) error {
		return deployments.Errorf(deployments.CodeInvalid, "the template has a file %q, which %s", name, why)
	}
	parts := strings.Split(name, "/")
	switch {
	case !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || strings.Contains(name, "\\"):
		return refused("is not in its directory")
	case len(name) > maxPath || len(parts) > maxDirectory:
		return refused("has a path that is too long")
	case safetext.Visible(name) != name:
		return refused("has control characters in its name")
	}
	for _, part := range parts {
		if isGit(part) {
			return refused("is part of a git repository's own files")
		}
	}
	return nil
}

// isGit reports whether a file system may take a name for that of git's own directory.
func isGit(name string) bool {
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return name == ".git" || name == "git~1"
}

// checkConfiguration checks what configures a project or its stacks.
func checkConfiguration(f File) error {
	base := strings.ToLower(path.Base(f.Path)) // file systems may ignore case
	ext := path.Ext(base)
	switch {
	case base == "pulumi.json", base == "pulumi.yml":
		return deployments.Errorf(deployments.CodeInvalid, "the template has the project file %s; it must be named %s",
			f.Path, projectFile)
	case !strings.HasPrefix(base, "pulumi.") || ext != ".yaml" && ext != ".yml" && ext != ".json":
		return nil
	}
	var said map[string]yaml.Node
	if err := yaml.Unmarshal(f.Content, &said); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the template's %s is not valid: %w", f.Path, err)
	}
	if base == strings.ToLower(projectFile) {
		return checkProject(f)
	}
	return checkStack(f.Path, said)
}

// checkStack refuses a stack's configuration that brings a key for secrets: its maker can decrypt what a user encrypts
// with it.
func checkStack(name string, stack map[string]yaml.Node) error {
	for key := range stack {
		switch strings.ToLower(key) {
		case "secretsprovider", "encryptedkey", "encryptionsalt":
			return deployments.Errorf(deployments.CodeInvalid, "the template's %s brings a key for secrets (%s), which "+
				"its maker knows; remove it from the template", name, key)
		}
	}
	return nil
}

// checkProject refuses a Pulumi.yaml that reaches for files outside the project: those that an update takes along, and
// the directory of configuration files.
func checkProject(f File) error {
	var said struct {
		StackConfigDir string `yaml:"stackConfigDir"`
		Config         yaml.Node
		Deploy         struct{ Include []string }
	}
	if err := yaml.Unmarshal(f.Content, &said); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the template's %s is not valid: %w", f.Path, err)
	}
	paths := append([]string{said.StackConfigDir}, said.Deploy.Include...)
	if said.Config.Kind == yaml.ScalarNode { // an older name of stackConfigDir
		paths = append(paths, said.Config.Value)
	}
	for _, p := range paths {
		if p != "" && !filepath.IsLocal(filepath.FromSlash(p)) {
			return deployments.Errorf(deployments.CodeInvalid, "the template's %s names %q, which is outside the "+
				"project: a template may not use other files of yours", f.Path, p)
		}
	}
	return nil
}
