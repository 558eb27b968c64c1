package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/deployctl/deployctl/internal/sandbox/launcher"
)

// seen is what the processes of a box see in mode Namespace: the places, by real paths, that are not as everything else
// is, which can be read and not changed. What a path is depends on the nearest place at or above it.
type seen map[string]launcher.Place

func (s seen) set(access launcher.Access, paths ...string) {
	for _, path := range paths {
		s[path] = launcher.Place{Path: path, Access: access}
	}
}

// at returns the place that a path lies in.
func (s seen) at(path string) (launcher.Place, bool) {
	for {
		if place, ok := s[path]; ok {
			return place, true
		}
		above := filepath.Dir(path)
		if above == path {
			return launcher.Place{}, false
		}
		path = above
	}
}

// hides reports whether what lies at a real path is out of sight.
func (s seen) hides(path string) bool {
	place, ok := s.at(path)
	return ok && (place.Access == launcher.Hidden || place.From != "")
}

// writable reports whether something can be changed at a path, or be put there.
func (s seen) writable(path string) bool {
	place, ok := s.at(existing(path))
	return ok && place.Access == launcher.Writable
}

// existing returns the real path of a file or directory or, if there is none, of the nearest one above.
func existing(path string) string {
	for {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
		above := filepath.Dir(path)
		if above == path {
			return path
		}
		path = above
	}
}

// view puts the places in order, without those that make no difference.
func (s seen) view() launcher.View {
	var view launcher.View
	for _, path := range slices.Sorted(maps.Keys(s)) {
		place := s[path]
		around, inside := s.at(filepath.Dir(path))
		inside = inside && path != "/"
		switch hidden := inside && s.hides(filepath.Dir(path)); {
		case place.Access == launcher.Hidden && hidden:
			continue
		case place.Access == launcher.Readable && !hidden && (!inside || around.Access != launcher.Writable):
			continue
		}
		view = append(view, place)
	}
	return view
}

// commonPlaces returns what every box of a worker sees. The error says what programs could change though the worker
// reads it.
func commonPlaces(o Options, homes, temps []string) (seen, error) {
	s := seen{}
	s.set(launcher.Hidden, realPaths(runtimeDirs())...)
	if !o.OneUser {
		s.set(launcher.Hidden, homes...)
	}
	s.set(launcher.Hidden, temps...)
	if o.OneUser {
		for _, home := range homes {
			s.show(home) // where it is a temporary directory
		}
		s.hideTokens(homes)
	}
	for _, path := range tools(homes) {
		links, real := resolve(path)
		for _, link := range links {
			if dir := filepath.Dir(link.path); s.hides(dir) {
				s.show(dir)
			}
		}
		s.show(real)
	}
	if o.OneUser {
		for _, home := range homes {
			for _, place := range credentials {
				s.set(launcher.Layered, realDirectories(filepath.Join(home, place))...)
			}
		}
	}
	shared := realPaths(o.Shared)
	s.set(launcher.Writable, shared...)
	return s, s.keep(o.Reads)
}

// hideTokens hides the Pulumi home in HOME, where the stock CLI keeps a token of this service: what programs need of it
// is shown again, unless that is a link, which would be hidden.
func (s seen) hideTokens(homes []string) {
	dir := wouldBe(pulumiHome())
	for _, part := range pulumiParts {
		if _, err := os.Readlink(filepath.Join(dir, part)); err == nil {
			return
		}
	}
	if slices.ContainsFunc(homes, func(home string) bool { return dir != home && below(home, dir) }) {
		s.set(launcher.Hidden, dir)
	}
}

// wouldBe returns the real path of what lies at a path, or will once it is made there.
func wouldBe(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real
	}
	if above := filepath.Dir(path); above != path {
		return filepath.Join(wouldBe(above), filepath.Base(path))
	}
	return path
}

// show lets a path be read, unless something in it is hidden.
func (s seen) show(path string) {
	if !s.contains(path, launcher.Hidden) {
		s.set(launcher.Readable, path)
	}
}

// contains reports whether a directory is a place of one of some kinds, or has one below it.
func (s seen) contains(dir string, kinds ...launcher.Access) bool {
	for path, place := range s {
		if below(dir, path) && slices.Contains(kinds, place.Access) {
			return true
		}
	}
	return false
}

// credentials are directories of HOME in which tools of clouds keep credentials that they renew.
var credentials = []string{".aws", ".azure", ".config/gcloud", ".kube"}

// realDirectories leaves out what is no directory.
func realDirectories(paths ...string) []string {
	return slices.DeleteFunc(realPaths(paths), func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.IsDir()
	})
}

// temporaries returns the directories in whose place programs have one of their own.
func temporaries() []string { return realPaths(append(slices.Clone(temporaryPlaces), os.TempDir())) }

// keep makes what this process reads such that programs cannot change it, where it lies in a shared directory.
func (s seen) keep(reads []string) error {
	var changeable []error
	for _, path := range reads {
		if !filepath.IsAbs(path) || !s.writable(path) {
			continue
		}
		dir := existing(path)
		if info, err := os.Stat(dir); err == nil && !info.IsDir() {
			dir = filepath.Dir(dir) // a mount on a file is dropped when another one is renamed over it
		}
		if _, shared := s[dir]; shared {
			changeable = append(changeable, fmt.Errorf("programs can change %s, which this process reads, because "+
				"%s is in sandbox.shared: share another directory", path, dir))
			continue
		}
		s.set(launcher.Readable, dir)
	}
	return errors.Join(changeable...)
}

// sees returns what processes see whose temporary directory is temp, but for the room; with an empty temp they have
// none.
func (p *Policy) sees(temp string) seen {
	s := maps.Clone(p.around)
	for _, dir := range p.temps {
		if place := s[dir]; place.Access == launcher.Hidden && temp != "" {
			s[dir] = launcher.Place{Path: dir, Access: launcher.Writable, From: temp}
		}
	}
	s.set(launcher.Hidden, p.covered()...)
	return s
}

// sees returns what the processes of the box see.
func (b *Box) sees() seen {
	s := b.policy.sees(b.slashTmp)
	s.set(launcher.Hidden, b.real)
	s.set(launcher.Writable, b.own...)
	s.set(launcher.Readable, b.plugins)
	if b.handed != "" {
		s.set(launcher.Readable, b.handed)
	}
	return s
}

// whole is what the processes of the box see, by the names that this process knows.
func (b *Box) whole() seen {
	s := b.sees()
	s.set(launcher.Writable, b.slashTmp) // which the processes know under another name
	return s
}

// view returns what one process of the box sees.
func (b *Box) view() (launcher.View, error) {
	s := b.sees()
	for _, path := range sockets(s.hides) {
		if place, ok := s.at(path); ok && (s.hides(path) || place.Access == launcher.Writable) {
			continue
		}
		dir := filepath.Dir(path)
		if !b.policy.needs(dir) && !s.contains(dir, launcher.Readable, launcher.Writable, launcher.Layered) {
			path = dir
		}
		s.set(launcher.Hidden, path)
	}
	view := s.view()
	for i, place := range view {
		if place.Access != launcher.Layered {
			continue
		}
		from, err := os.MkdirTemp(b.aside, "changes-")
		if err != nil {
			return nil, err
		}
		view[i].From = from
	}
	return view, nil
}

// outside returns the path outside of the box of what its processes know under a path.
func (b *Box) outside(path string) string {
	if b == nil || b.policy.Mode() != Namespace || !filepath.IsAbs(path) {
		return path
	}
	path = filepath.Clean(path)
	place, ok := b.sees().at(path)
	if !ok || place.From == "" {
		return path
	}
	rest, err := filepath.Rel(place.Path, path)
	if err != nil {
		return path
	}
	return filepath.Join(place.From, rest)
}
