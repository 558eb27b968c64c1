package project

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/fsnotify/fsnotify"
)

const (
	// quiet is how long nothing must change before a change is reported: editors and version control write several files.
	quiet = 50 * time.Millisecond
	// latest is how long after the first change it is reported, though others follow.
	latest = time.Second
)

// Watcher reports that files in directories may have changed.
type Watcher struct {
	events  *fsnotify.Watcher
	dirs    map[string]bool
	changes chan struct{} // holds one
}

// NewWatcher returns a watcher of no directory. Close ends it.
func NewWatcher() (*Watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, tooManyWatches(err)
	}
	w := &Watcher{events: events, dirs: map[string]bool{}, changes: make(chan struct{}, 1)}
	go w.collect()
	return w, nil
}

// tooManyWatches says what to do about the limits of Linux.
func tooManyWatches(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) {
		return deployments.Errorf(deployments.CodeInvalid, "the system watches no more files for this user (%w): raise "+
			"fs.inotify.max_user_watches and fs.inotify.max_user_instances with sysctl, or exclude directories in %s", err,
			IgnoreFile)
	}
	return err
}

// Close ends the watcher.
func (w *Watcher) Close() { _ = w.events.Close() }

// Changes receives after changes: once for those that come together. That content differs is for the receiver to find.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Again has a change reported once more.
func (w *Watcher) Again() {
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

// Follow watches these directories instead of those before. It reports whether one of them was not watched: what has
// changed in it until now is not reported.
func (w *Watcher) Follow(dirs []string) (added bool, err error) {
	now := map[string]bool{}
	for _, dir := range dirs {
		now[dir] = true
		if w.dirs[dir] {
			continue
		}
		if err := w.events.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return added, tooManyWatches(fmt.Errorf("cannot watch %s: %w", dir, err))
		}
		added = true
	}
	for dir := range w.dirs {
		if !now[dir] {
			_ = w.events.Remove(dir) // it may be gone
		}
	}
	w.dirs = now
	return added, nil
}

// collect reports the changes of some time as one.
func (w *Watcher) collect() {
	pause := time.NewTimer(0)
	<-pause.C
	var first time.Time // of those that are not reported
	for {
		select {
		case e, open := <-w.events.Events:
			if !open {
				return
			}
			if e.Op == fsnotify.Chmod || isEditors(e.Name) {
				continue
			}
		// Changes may have been lost.
		case _, open := <-w.events.Errors:
			if !open {
				return
			}
		case <-pause.C:
			first = time.Time{}
			w.Again()
			continue
		}
		if first.IsZero() {
			first = time.Now()
		}
		pause.Reset(min(quiet, max(0, latest-time.Since(first))))
	}
}

// isEditors reports whether a file is one that editors write beside the one that is edited.
func isEditors(file string) bool {
	name := filepath.Base(file)
	return slices.ContainsFunc([]string{"*~", ".*.sw?", ".#*", "#*#", "4913"}, func(pattern string) bool {
		matches, _ := path.Match(pattern, name)
		return matches
	})
}

// Content is what an update takes along, as far as it matters to a stack: digests by the names of files.
type Content map[string]string

// Content returns what a bundle of the project holds for a stack, with the stack's configuration file, which may be
// elsewhere.
func (p *Project) Content(b *Bundle, stack *Stack) (Content, error) {
	c := Content{}
	for _, f := range b.Manifest.Files {
		if !isEditors(f.Path) && !p.configures(filepath.Join(b.root, filepath.FromSlash(f.Path))) {
			c[f.Path] = fmt.Sprint(f.Digest, f.Mode)
		}
	}
	f, err := digestFile(stack.Path)
	if err == nil {
		c[filepath.Base(stack.Path)] = f.Digest
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return c, err
}

// configures reports whether a file is the configuration of a stack.
func (p *Project) configures(file string) bool {
	name := filepath.Base(file)
	return filepath.Dir(file) == p.Dir && strings.HasPrefix(name, "Pulumi.") && strings.Count(name, ".") > 1
}

// Changed returns the names of files that are not as they were, in order.
func (c Content) Changed(before Content) []string {
	names := maps.Clone(c)
	maps.Copy(names, before)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(name string) bool { return c[name] == before[name] })
}
