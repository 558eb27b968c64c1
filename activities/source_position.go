package activities

import (
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/deployctl/deployctl/internal/sandbox"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// places tell where in a project the files are that a program names: it goes by other names for directories that are
// links, as modules are that another bundle of the stack has installed.
type places struct {
	root  string
	links []link
}

type link struct{ name, real string }

// placesOf looks at the directory of a project and at the one that its program runs in.
func placesOf(root, program string, box *sandbox.Box) places {
	p := places{root: root, links: []link{{root, root}}}
	for _, name := range []string{root, filepath.Join(program, "node_modules")} {
		if real, err := box.RealPath(name); err == nil && real != name {
			p.links = append(p.links, link{name, real})
		}
	}
	return p
}

// position writes a source position relative to the project, so that it is the same on every machine; empty if it is
// elsewhere.
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
