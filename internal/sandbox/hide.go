package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// systemTrees are directories that programs need with everything in them.
var systemTrees = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/nix", "/dev", "/proc", "/sys", "/etc/ssl/certs",
	"/etc/pki/ca-trust",
}

// systemPlaces are directories that programs need, though not everything in them.
var systemPlaces = []string{
	"/", "/boot", "/etc", "/etc/ssl", "/etc/pki", "/home", "/media", "/mnt", "/opt", "/root", "/run", "/run/lock",
	"/run/user", "/snap", "/srv",
	"/tmp", "/var", "/var/cache", "/var/lib", "/var/log", "/var/run", "/var/spool", "/var/tmp",
}

// homePlaces are those of the directory HOME.
var homePlaces = []string{"", ".cache", ".config", ".docker", ".kube", ".local", ".local/bin", ".local/share",
	".local/state", ".pulumi", ".ssh"}

// homeVariables name directories of which programs need some.
var homeVariables = []string{
	"TMPDIR", "PULUMI_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOROOT",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
}

// neededPlaces returns the directories that programs need of this machine, by their real paths.
func neededPlaces() []string {
	needed := append(slices.Clone(systemPlaces), filepath.SplitList(os.Getenv("PATH"))...)
	if home, err := os.UserHomeDir(); err == nil {
		for _, place := range homePlaces {
			needed = append(needed, filepath.Join(home, place))
		}
	}
	for _, variable := range homeVariables {
		needed = append(needed, os.Getenv(variable))
	}
	if self, err := os.Executable(); err == nil {
		needed = append(needed, filepath.Dir(self))
	}
	var real []string
	for _, dir := range needed {
		if dir, err := filepath.EvalSymlinks(dir); err == nil && filepath.IsAbs(dir) {
			real = append(real, dir)
		}
	}
	return real
}

// needs reports whether programs need a directory, or one below it.
func (p *Policy) needs(dir string) bool {
	return slices.ContainsFunc(systemTrees, func(tree string) bool { return below(tree, dir) }) ||
		slices.ContainsFunc(p.needed, func(needed string) bool { return below(dir, needed) })
}

// hidden returns what is covered now. It is asked for anew for each process: links to secrets may have changed.
func (p *Policy) hidden() []string {
	var all []string
	for _, path := range p.hide {
		covered, _ := p.covers(path)
		all = append(all, covered...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// covering is what was covered, by real paths, while what is to be hidden lay there.
type covering struct{ at, real []string }

// covered returns the real paths of what is covered now. Asked for each file that is opened, it looks for them anew
// only when what is to be hidden has moved.
func (p *Policy) covered() []string {
	at := realPaths(p.hide)
	if last := p.last.Load(); last != nil && slices.Equal(at, last.at) {
		return last.real
	}
	now := &covering{at, realPaths(p.hidden())}
	p.last.Store(now)
	return now.real
}

// realPaths leaves out what is not there.
func realPaths(paths []string) []string {
	var real []string
	for _, path := range paths {
		if path, err := filepath.EvalSymlinks(path); err == nil {
			real = append(real, path)
		}
	}
	return real
}

// covers returns what is covered to hide a path. For a file that is the directory that it lies in, and that of each
// link on the way to it: a mount on the file itself is dropped by the kernel when another file is renamed over it. A
// directory that programs need is not covered: then the file is, and exposed says where one that replaces it is seen.
func (p *Policy) covers(path string) (covered []string, exposed string) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return []string{path}, ""
	}
	links, file := resolve(path)
	for _, link := range links {
		dir := filepath.Dir(link.path)
		if !p.needs(dir) {
			covered = append(covered, dir)
		} else if link.last {
			exposed = link.path
		}
	}
	if dir := filepath.Dir(file); !p.needs(dir) {
		return append(covered, dir), exposed
	}
	return append(covered, file), file
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

// exposures warns of each secret file that is covered alone.
func (p *Policy) exposures() []string {
	var warnings []string
	for _, path := range p.hide {
		if _, exposed := p.covers(path); exposed != "" {
			warnings = append(warnings, fmt.Sprintf("programs can read %s once it is replaced while they run, "+
				"because they need other files "+
				"of the directory %s: put it into a directory of its own", exposed, filepath.Dir(exposed)))
		}
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
}
