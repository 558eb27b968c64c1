// Package heap keeps the garbage collector from doubling what others have a process hold.
//
// Go's collector begins anew when the heap is twice what was in use after the last collection. For ordinary work that
// saves time. What pools of memory (see mempool) have given out is bounded, and would be doubled, too: a process whose
// pools are full would take twice what they say. So the heap grows only by what is in use beside them, and by a fixed
// part in any case, so that the collector never runs all the time however little is in use beside them.
//
// The collector begins where the limit is reached, beside what goes on. A text of a hundred megabytes that is made just
// before is beyond it at once, and so are those that follow while the collector has not come to its end: what was given
// back to a pool would be in memory beside what takes its place. So who is about to make large texts calls Room first.
package heap

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// growth is what the heap may grow by in any case before the collector begins.
const growth = 64 << 20

// Limit is the soft memory limit of the process, which is set after each collection.
type Limit struct {
	bounds bounds

	mu    sync.Mutex
	taken []func() int64
	over  bool // it is set no more
}

// bounds are the least limit, and the most of what is in use beside pools that the heap grows by, in bytes.
type bounds struct{ least, most int64 }

// Begin sets the limit from now on. It is never below least, in bytes, and the heap grows by most at most of what is in
// use beside pools: by none of it where strangers decide about all that there is. A process has one limit.
func Begin(least, most int64) *Limit {
	l := &Limit{bounds: bounds{least, most}}
	l.set()
	l.follow()
	return l
}

// Count adds what returns how much memory was given out of pools, in bytes. A nil Limit follows nothing.
func (l *Limit) Count(taken func() int64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = append(l.taken, taken)
}

// follow has the limit set after the next collection, and each one after that.
func (l *Limit) follow() {
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) {
		l.set()
		l.follow()
	})
}

// set sets the limit by what the last collection has found.
func (l *Limit) set() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	given := int64(0)
	for _, taken := range l.taken {
		given += taken()
	}
	debug.SetMemoryLimit(l.bounds.of(read(), given))
}

// use is what the runtime has, in bytes.
type use struct {
	live    int64 // was in use after the last collection
	objects int64 // is in use, or was and is not collected yet
	beside  int64 // is no part of the heap's objects, nor free: stacks, tables, and gaps between objects
}

// collecting has those who need room at a time wait for one collection.
var collecting sync.Mutex

// Room makes room for n bytes that are about to be used: it collects the garbage if they would lead beyond the soft
// memory limit of the process. Without a limit it does nothing.
func Room(n int64) { room(n, debug.SetMemoryLimit(-1)) }

func room(n, limit int64) {
	if limit == math.MaxInt64 || fits(read(), n, limit) {
		return
	}
	collecting.Lock()
	defer collecting.Unlock()
	if !fits(read(), n, limit) { // nobody has collected it meanwhile
		runtime.GC()
	}
}

// fits reports whether n more bytes are within a limit.
func fits(u use, n, limit int64) bool { return u.objects+u.beside+n <= limit }

// of returns the limit for what pools have given out.
func (b bounds) of(u use, given int64) int64 {
	return max(b.least, u.beside+u.live+min(b.most, max(u.live-given, 0))+growth)
}

// The metrics of which use is made.
const (
	live     = "/gc/heap/live:bytes"
	total    = "/memory/classes/total:bytes"
	released = "/memory/classes/heap/released:bytes"
	free     = "/memory/classes/heap/free:bytes"
	objects  = "/memory/classes/heap/objects:bytes"
)

// read asks the runtime.
func read() use {
	samples := []metrics.Sample{{Name: live}, {Name: total}, {Name: released}, {Name: free}, {Name: objects}}
	metrics.Read(samples)
	value := func(i int) int64 { return int64(samples[i].Value.Uint64()) } //nolint:gosec // no process has that much
	return use{live: value(0), objects: value(4), beside: value(1) - value(2) - value(3) - value(4)}
}
