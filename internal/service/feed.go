package service

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/statestore/updates"
)

// cachedBytes limits the cached parts of logs, of all watched updates together.
const cachedBytes = 32 << 20

// feeds has a feed for each watched update, with a cache of parts of its log: that is read once for all watchers.
type feeds struct {
	mu    sync.Mutex
	all   map[deployments.UpdateName]*feed
	order []cachedPart // the oldest first
	bytes int
}

// cachedPart is a part in the cache of a feed. A cache ends with its feed, because a later stack of the same name may
// have an update with the same number.
type cachedPart struct {
	feed *feed
	part updates.Part
}

// feed is the state of one watched update: its log, and messages that are in no log.
type feed struct {
	update   deployments.UpdateName
	stop     context.CancelFunc
	watching int                     // watchers, under the mutex of feeds
	parts    map[updates.Part][]byte // the cache, under the mutex of feeds

	mu  sync.Mutex
	now snapshot
}

// snapshot is the state of a feed at one time. Its map is never changed.
type snapshot struct {
	marks map[string]int // by stream: number of the last part
	// These are in no log: the service's last message, the last progress, and the end of an update that never began.
	message, progress, end *deployments.WatchEvent
	err                    error         // why the feed ended
	changed                chan struct{} // closed when there is a newer snapshot
}

// streams returns the names of the streams; that of the Run is last, because it has the end.
func (p snapshot) streams() []string {
	names := slices.Sorted(maps.Keys(p.marks))
	return append(slices.DeleteFunc(names, func(n string) bool { return n == eventlog.RunStream }), eventlog.RunStream)
}

// join returns the feed of an update, whose log had these parts a moment ago; the caller calls leave when it stops
// watching.
func (f *feeds) join(
	s *Service, u deployments.UpdateName, parts map[string]int,
) (joined *feed, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.all[u]
	if found == nil {
		found = f.begin(s, u, parts)
	}
	found.watching++
	return found, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if found.watching--; found.watching == 0 {
			found.stop()
			f.forget(found)
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

// forget empties the cache of a feed that nobody watches any more; the caller holds the lock.
func (f *feeds) forget(gone *feed) {
	for _, data := range gone.parts {
		f.bytes -= len(data)
	}
	gone.parts = nil
	f.order = slices.DeleteFunc(f.order, func(c cachedPart) bool { return c.feed == gone })
}

// keep caches parts that were read for a feed, and evicts the oldest of all feeds.
func (f *feeds) keep(of *feed, p updates.Part, parts [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if of.watching == 0 {
		return
	}
	if of.parts == nil {
		of.parts = map[updates.Part][]byte{}
	}
	for _, data := range parts {
		if _, there := of.parts[p]; !there {
			of.parts[p] = data
			f.order = append(f.order, cachedPart{of, p})
			f.bytes += len(data)
		}
		p.Number++
	}
	for f.bytes > cachedBytes {
		oldest := f.order[0]
		f.bytes -= len(oldest.feed.parts[oldest.part])
		delete(oldest.feed.parts, oldest.part)
		f.order = f.order[1:]
	}
}

// has reports whether a part is cached.
func (f *feeds) has(of *feed, p updates.Part) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, cached := of.parts[p]
	return cached
}

// read returns up to max parts of a stream from p on, from the cache or else from the store.
func (f *feeds) read(ctx context.Context, s *Service, of *feed, p updates.Part, max int) ([][]byte, error) {
	f.mu.Lock()
	var parts [][]byte
	for next := p; len(parts) < max; next.Number++ {
		data, ok := of.parts[next]
		if !ok {
			break
		}
		parts = append(parts, data)
	}
	f.mu.Unlock()
	if len(parts) > 0 {
		return parts, nil
	}
	return s.Updates.ReadEvents(ctx, p, max)
}

func (f *feed) current() snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// change replaces the snapshot.
func (f *feed) change(how func(*snapshot)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.now.changed
	f.now.changed = make(chan struct{})
	how(&f.now)
	close(changed)
}

func (f *feed) mark(marks map[string]int) {
	f.change(func(p *snapshot) {
		all := maps.Clone(p.marks)
		if all == nil {
			all = map[string]int{}
		}
		maps.Copy(all, marks)
		p.marks = all
	})
}

func (f *feed) publish(e deployments.WatchEvent) {
	f.change(func(p *snapshot) {
		switch {
		case e.End != nil:
			p.end = &e
		case e.Progress != nil:
			p.progress = &e
		default:
			p.message = &e
		}
	})
}

// abort ends the feed; without an error the last message is the end.
func (f *feed) abort(err error) {
	f.change(func(p *snapshot) { p.err = err })
}

// begin makes the feed of an update, and fills it; the caller holds the lock.
func (f *feeds) begin(s *Service, u deployments.UpdateName, parts map[string]int) *feed {
	ctx, cancel := context.WithCancel(context.Background())
	begun := &feed{update: u, stop: cancel, now: snapshot{changed: make(chan struct{})}}
	if f.all == nil {
		f.all = map[deployments.UpdateName]*feed{}
	}
	f.all[u] = begun
	go func() {
		w := &watcher{Service: s, feed: begun, update: u, next: map[string]int{}}
		maps.Copy(w.next, parts)
		err := w.watch(ctx)
		f.remove(begun) // later watchers get a new feed
		begun.abort(err)
	}()
	return begun
}
