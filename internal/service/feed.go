package service

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
)

// cachedBytes bounds the parts of logs that are kept for those who watch, of all updates together.
const cachedBytes = 32 << 20

// feeds has a feed for each update that somebody watches, and the parts of logs that were read last. However many watch
// an update, its log is looked at once.
type feeds struct {
	mu    sync.Mutex
	all   map[deployments.UpdateName]*feed
	parts map[statestore.Part][]byte
	order []statestore.Part // of parts, oldest first
	bytes int
}

// feed is what is known of one update's log, and what is in none.
type feed struct {
	update   deployments.UpdateName
	watching int // under the mutex of feeds
	stop     context.CancelFunc

	mu  sync.Mutex
	now picture
}

// picture is a feed at one moment. Its map is never changed.
type picture struct {
	marks map[string]int // by stream: number of the last part that there is
	// What is in no log: the last thing that the service said, where the update stands, and that it ended without
	// having begun.
	said, progress, end *deployments.WatchEvent
	err                 error         // why nobody looks any more
	changed             chan struct{} // closed when there is another picture
}

// streams gives the names of the streams, that of the run last: it holds the end.
func (p picture) streams() []string {
	names := slices.Sorted(maps.Keys(p.marks))
	return append(slices.DeleteFunc(names, func(n string) bool { return n == eventlog.RunStream }),
		eventlog.RunStream)
}

// join gives the feed of an update; leave says that it is not watched any more by this caller.
func (f *feeds) join(s *Service, u deployments.UpdateName) (joined *feed, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.all[u]
	if found == nil {
		ctx, cancel := context.WithCancel(context.Background())
		found = &feed{update: u, stop: cancel, now: picture{changed: make(chan struct{})}}
		if f.all == nil {
			f.all = map[deployments.UpdateName]*feed{}
		}
		f.all[u] = found
		go func() {
			w := &watcher{Service: s, feed: found, update: u, next: map[string]int{}}
			err := w.watch(ctx)
			f.remove(found) // who comes later looks anew
			found.fail(err)
		}()
	}
	found.watching++
	return found, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if found.watching--; found.watching == 0 {
			found.stop()
			if f.all[u] == found {
				delete(f.all, u)
			}
		}
	}
}

func (f *feeds) remove(gone *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[gone.update] == gone {
		delete(f.all, gone.update)
	}
}

// keep keeps parts that were read, and forgets the oldest.
func (f *feeds) keep(p statestore.Part, parts [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts == nil {
		f.parts = map[statestore.Part][]byte{}
	}
	for _, data := range parts {
		if _, there := f.parts[p]; !there {
			f.parts[p] = data
			f.order = append(f.order, p)
			f.bytes += len(data)
		}
		p.Number++
	}
	for f.bytes > cachedBytes {
		f.bytes -= len(f.parts[f.order[0]])
		delete(f.parts, f.order[0])
		f.order = f.order[1:]
	}
}

// read gives parts of a stream from p on, up to max: those that are kept, else from the store.
func (f *feeds) read(ctx context.Context, s *Service, p statestore.Part, max int) ([][]byte, error) {
	f.mu.Lock()
	var parts [][]byte
	for next := p; len(parts) < max; next.Number++ {
		data, ok := f.parts[next]
		if !ok {
			break
		}
		parts = append(parts, data)
	}
	f.mu.Unlock()
	if len(parts) > 0 {
		return parts, nil
	}
	return s.ReadEvents(ctx, p, max)
}

func (f *feed) look() picture {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// change makes another picture.
func (f *feed) change(how func(*picture)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.now.changed
	f.now.changed = make(chan struct{})
	how(&f.now)
	close(changed)
}

func (f *feed) mark(marks map[string]int) {
	f.change(func(p *picture) {
		all := maps.Clone(p.marks)
		if all == nil {
			all = map[string]int{}
		}
		maps.Copy(all, marks)
		p.marks = all
	})
}

func (f *feed) tell(e deployments.WatchEvent) {
	f.change(func(p *picture) {
		switch {
		case e.End != nil:
			p.end = &e
		case e.Progress != nil:
			p.progress = &e
		default:
			p.said = &e
		}
	})
}

// fail says that nobody looks any more; without an error what was told last is the end.
func (f *feed) fail(err error) {
	f.change(func(p *picture) { p.err = err })
}
