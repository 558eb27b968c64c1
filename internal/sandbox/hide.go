package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// covering is what is covered, by real paths, while what is to be hidden lies there.
type covering struct{ at, real []string }

// covered returns the real paths of what hides the secrets now. Asked for each process and each file that is opened, it
// looks for them anew only when what is to be hidden has moved.
func (p *Policy) covered() []string {
	at := realPaths(p.hide)
	if last := p.last.Load(); last != nil && slices.Equal(at, last.at) {
		return last.real
	}
	var all []string
	for _, path := range p.hide {
		covered, _ := p.covers(path)
		all = append(all, covered...)
	}
	now := &covering{at, realPaths(all)}
	p.last.Store(now)
	return now.real
}

// realPaths leaves out what is not there.
func realPaths(paths []string) []string {
	var real []string
	for _, path := range paths {
		if path, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) {
			real = append(real, path)
		}
	}
	return real
}

// covers returns what is covered to hide a path. For a file that is the directory that it lies in, and that of each
// link on the way to it: a mount on the file itself is dropped by the kernel when another file is renamed over it. A
// directory that programs need is not covered: then the file is, and exposed says where one that replaces it is seen.
// Of a directory that programs need nothing is covered, wherever a link to it lies.
func (p *Policy) covers(path string) (covered []string, exposed string) {
	links, real := resolve(path)
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return nil, ""
	case info.IsDir() && p.needs(real):
		return nil, real
	case info.IsDir():
		return []string{real}, ""
	}
	for _, link := range links {
		dir := filepath.Dir(link.path)
		if !p.needs(dir) {
			covered = append(covered, dir)
		} else if link.last {
			exposed = link.path
		}
	}
	if dir := filepath.Dir(real); !p.needs(dir) {
		return append(covered, dir), exposed
	}
	return append(covered, real), real
}

// link is a symbolic link on the way to a file.
type link struct {
	path string
	last bool // it leads to the file, and not to a directory on the way
}

// resolve returns the links on the way to a file, in no directory that is a link itself, and the file's real path.
func resolve(path string) (links []link, file string) {
	const most = 40 // as many as the kernel follows
	file = "/"
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			file = filepath.Dir(file)
			continue
		}
		next := filepath.Join(file, name)
		target, err := os.Readlink(next)
		if err != nil || len(links) == most {
			file = next
			continue
		}
		links = append(links, link{next, len(rest) == 0})
		if filepath.IsAbs(target) {
			file = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return links, file
}

// exposures warns of each secret that programs see, or will see once it is replaced.
func (p *Policy) exposures() []string {
	var warnings []string
	for _, path := range p.hide {
		_, exposed := p.covers(path)
		if exposed == "" || p.around.hides(exposed) {
			continue
		}
		if info, err := os.Stat(exposed); err == nil && info.IsDir() {
			warnings = append(warnings, fmt.Sprintf("programs can read %s, where %s leads, because they need other files "+
				"of it: put what is secret into a directory of its own", exposed, path))
			continue
		}
		warnings = append(warnings, fmt.Sprintf("programs can read %s once it is replaced while they run, because they "+
			"need other files of the directory %s: put it into a directory of its own", exposed, filepath.Dir(exposed)))
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
}
