package monitor

import (
	"net/url"
	"path/filepath"
	"strconv"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// places map the file names that a program reports to places in the project. A program may use other names for
// directories that are links, such as modules that another bundle of the stack has installed.
type places struct {
	root  string
	links []link
}

type link struct{ name, real string }

// placesOf resolves the links among the directories of a project.
func placesOf(project Project) places {
	root := project.Root
	p := places{root: root, links: []link{{root, root}}}
	for _, name := range []string{root, filepath.Join(project.ProgramDir, "node_modules")} {
		if real, err := project.Box.RealPath(name); err == nil && real != name {
			p.links = append(p.links, link{name, real})
		}
	}
	return p
}

// position returns a source position relative to the project, so that it is the same on every machine; empty if the
// file is outside the project.
func (p places) position(at *pulumirpc.SourcePosition) string {
	if at == nil || at.GetLine() < 0 {
		return ""
	}
	u, err := url.Parse(at.GetUri())
	if err != nil || u.Scheme != "file" {
		return ""
	}
	place := strconv.Itoa(int(at.GetLine()))
	if at.GetColumn() > 0 {
		place += "," + strconv.Itoa(int(at.GetColumn()))
	}
	for _, l := range p.links {
		relative, err := filepath.Rel(l.real, filepath.FromSlash(u.Path))
		if err != nil || !filepath.IsLocal(relative) {
			continue
		}
		if relative, err = filepath.Rel(p.root, filepath.Join(l.name, relative)); err == nil {
			return (&url.URL{Scheme: "project", Path: "/" + filepath.ToSlash(relative), Fragment: place}).String()
		}
	}
	return ""
}
