package templates

import (
	"embed"
	"io/fs"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/examples"
)

// builtin has a directory for each template of this binary, beside the website of the examples. A file NAME.tmpl is
// NAME in the project: Go code and go.mod are not to be taken for the project's own.
//
//go:embed all:builtin
var builtin embed.FS

// Names are the templates of this binary.
var Names = []string{"website", "aws-yaml", "kubernetes-yaml", "go-provider"}

// Builtin returns a template of this binary; CodeNotFound if there is none of that name.
func Builtin(name string) (*Template, error) {
	from, err := builtinFS(name)
	if err != nil {
		return nil, err
	}
	files, err := read(from)
	if err != nil {
		return nil, err
	}
	for i := range files {
		files[i].Path = strings.TrimSuffix(files[i].Path, ".tmpl")
	}
	return parse(name, files)
}

func builtinFS(name string) (fs.FS, error) {
	for _, known := range Names {
		switch {
		case known != name:
		case name == "website":
			return fs.Sub(examples.Website, name)
		default:
			return fs.Sub(builtin, "builtin/"+name)
		}
	}
	return nil, deployments.Errorf(deployments.CodeNotFound, "there is no template %q", name)
}
