package session

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/internal/project"
)

// shownPath says how the paths below a directory of the worker are shown to users, who do not know it.
type shownPath struct{ dir, shown string } // both end in a slash, or shown is empty

// inProject writes paths in a text of the program, a plugin or a policy pack as the user knows them, where the text has
// those of the worker's copy: relative to the project's directory, and those of a policy pack to the directory above
// it.
func (s *Session) inProject(text string) string {
	if s.place == "" || !strings.Contains(text, "/") {
		return text
	}
	var pairs []string
	for _, p := range s.shownPaths() {
		pairs = append(pairs, "file://"+p.dir, p.shown, p.dir, p.shown)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// shownPaths returns the directories whose paths are shown in another form. One comes before those that contain it.
func (s *Session) shownPaths() (list []shownPath) {
	if linked := s.modules.Load(); linked != nil {
		list = *linked
	}
	return append(list[:len(list):len(list)], s.ownPaths()...)
}

// ownPaths are the directories of the bundle.
func (s *Session) ownPaths() (list []shownPath) {
	for n, pack := range s.request.PolicyPacks {
		if name := path.Base(pack.Dir); pack.Dir == project.PolicyPackDir(n, name) {
			list = append(list, shownPath{filepath.Join(s.place, filepath.FromSlash(path.Dir(pack.Dir))) + "/", ""})
		}
	}
	above := ""
	if below, err := filepath.Rel(s.place, s.dir); err == nil && below != "." {
		above = strings.Repeat("../", strings.Count(filepath.ToSlash(below), "/")+1)
	}
	return append(list, shownPath{s.dir + "/", ""}, shownPath{s.place + "/", above})
}

// showModules has paths below real, the packages of another bundle, shown as those of modules, which links to it.
// s.installing is held.
func (s *Session) showModules(real, modules string) {
	shown := modules + "/"
	for _, p := range s.ownPaths() {
		if below, found := strings.CutPrefix(shown, p.dir); found {
			shown = p.shown + below
			break
		}
	}
	list := []shownPath{{real + "/", shown}}
	if linked := s.modules.Load(); linked != nil {
		list = append(list, *linked...)
	}
	s.modules.Store(&list)
}
