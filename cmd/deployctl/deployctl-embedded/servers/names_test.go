package servers

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/rapidtest"
	"pgregory.net/rapid"
)

// disk is a file system that a power cut leaves with what was synced. A folder that is removed and made again is
// another one.
type disk struct {
	memory map[string]map[string]int // by folder: its names, and which folder or object each is
	synced map[int]map[string]int    // by folder: the names that a cut leaves
	made   int
	ids    map[string]int // of folders
	log    []string
	pause  func() // after each sync
}

func newDisk() *disk {
	return &disk{memory: map[string]map[string]int{"b": {}}, synced: map[int]map[string]int{}, ids: map[string]int{"b": 0},
		pause: func() {}}
}

// write makes an object, and the folders that it needs.
func (d *disk) write(path string) {
	folder := filepath.Dir(path)
	if d.memory[folder] == nil {
		d.write(folder)
		d.memory[folder], d.ids[folder] = map[string]int{}, d.made
	}
	d.made++
	d.memory[folder][filepath.Base(path)] = d.made
}

// remove removes an object, and the folders that are empty then.
func (d *disk) remove(path string) {
	folder := filepath.Dir(path)
	if d.memory[folder] == nil {
		return
	}
	delete(d.memory[folder], filepath.Base(path))
	if len(d.memory[folder]) == 0 && folder != "b" {
		delete(d.memory, folder)
		delete(d.ids, folder)
		d.remove(folder)
	}
}

func (d *disk) sync(folder string) error {
	d.log = append(d.log, folder)
	defer d.pause()
	names, there := d.memory[folder]
	if !there {
		return fs.ErrNotExist
	}
	kept := map[string]int{}
	for name, id := range names {
		kept[name] = id
	}
	d.synced[d.ids[folder]] = kept
	return nil
}

// has reports whether an object is found after a power cut, and not one that was there before.
func (d *disk) has(path string) bool {
	id := 0
	for _, name := range strings.Split(strings.TrimPrefix(path, "b/"), "/") {
		next, there := d.synced[id][name]
		if !there {
			return false
		}
		id = next
	}
	return id == d.id(path)
}

func (d *disk) id(path string) int { return d.memory[filepath.Dir(path)][filepath.Base(path)] }

func TestAFolderThatIsOnDiskIsSyncedForItsOwnNamesAlone(t *testing.T) {
	d := newDisk()
	n := names{sync: d.sync}
	put := func(key string, want ...string) {
		t.Helper()
		d.log = nil
		if err := n.put("b", key, func() error { d.write("b/" + key); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(d.log, want) {
			t.Errorf("%s syncs %q, not %q", key, d.log, want)
		}
	}
	put("x/y/1", "b/x/y", "b/x", "b")
	put("x/y/2", "b/x/y")
	put("x/z/1", "b/x/z", "b/x")
	put("top", "b")
	remove := func(key string) error {
		return n.remove("b", []string{key}, func() error { d.remove("b/" + key); return nil })
	}
	if err := errors.Join(remove("x/y/1"), remove("x/y/2")); err != nil {
		t.Fatal(err)
	}
	put("x/y/3", "b/x/y", "b/x", "b")
	if err := n.put("b", "x/y/4", func() error { return fs.ErrPermission }); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("what is not written ends with %v", err)
	}
}

// part is a put or a delete that goes on when it is told to.
type part struct{ resume, paused chan struct{} }

// begin begins a part, which pauses in the file system.
func (d *disk) begin(f func()) *part {
	p := &part{make(chan struct{}), make(chan struct{})}
	d.pause = p.pause
	go func() {
		f()
		close(p.paused)
	}()
	<-p.paused
	return p
}

func (p *part) pause() { p.paused <- struct{}{}; <-p.resume }

// proceed reports whether a part has not ended.
func (d *disk) proceed(p *part) bool {
	d.pause = p.pause
	p.resume <- struct{}{}
	_, more := <-p.paused
	return more
}

// TestAPowerCutLeavesWhatWasAcknowledged puts and removes objects at the same time, in any order of their parts.
func TestAPowerCutLeavesWhatWasAcknowledged(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		d := newDisk()
		n := names{sync: d.sync}
		acknowledged := map[string]int{} // which object
		var running []*part
		put := func(key string) *part {
			return d.begin(func() {
				wrote := 0
				_ = n.put("b", key, func() error {
					d.pause()
					d.write("b/" + key)
					wrote = d.made
					d.pause()
					return nil
				})
				acknowledged[key] = wrote
			})
		}
		remove := func(key string) *part {
			return d.begin(func() {
				_ = n.remove("b", []string{key}, func() error { d.pause(); d.remove("b/" + key); d.pause(); return nil })
			})
		}
		for range rapid.IntRange(1, 400).Draw(t, "parts") {
			at := rapid.IntRange(0, len(running)+1).Draw(t, "part")
			key := fmt.Sprintf("%d/%d", rapid.IntRange(0, 1).Draw(t, "folder"), rapid.IntRange(0, 1).Draw(t, "object"))
			switch at - len(running) {
			case 0:
				running = append(running, put(key))
			case 1:
				if d.id("b/"+key) > 0 {
					running = append(running, remove(key))
				}
			default:
				if !d.proceed(running[at]) {
					running = slices.Delete(running, at, at+1)
				}
			}
			for key, id := range acknowledged {
				if id == d.id("b/"+key) && !d.has("b/"+key) {
					t.Fatalf("%s was acknowledged, and a power cut would lose it", key)
				}
			}
		}
		for _, p := range running {
			for d.proceed(p) {
			}
		}
	})
}
