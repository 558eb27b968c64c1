package heap

import (
	"cmp"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

const mib = 1 << 20

func TestOnlyWhatIsInUseBesidePoolsIsDoubled(t *testing.T) {
	for name, c := range map[string]struct{ live, given, most, want int64 }{
		"nothing is given out":                 {live: 100, want: 100 + 100 + 64 + 10},
		"half of it is given out":              {live: 300, given: 150, want: 300 + 150 + 64 + 10},
		"more is given out than is used":       {live: 200, given: 500, want: 200 + 64 + 10},
		"little is used":                       {live: 5, want: 96},
		"the collector is left room for more":  {live: 5000, given: 5000, want: 5000 + 64 + 10},
		"what is beside pools grows meanwhile": {live: 1000, given: 100, want: 1000 + 900 + 64 + 10},
		"strangers decide about all of it":     {live: 300, given: 100, most: 1, want: 300 + 1 + 64 + 10},
	} {
		b := bounds{least: 96 * mib, most: cmp.Or(c.most*mib, math.MaxInt64)}
		if got := b.of(use{live: c.live * mib, beside: 10 * mib}, c.given*mib); got != c.want*mib {
			t.Errorf("%s: the limit is %d MiB, not %d", name, got/mib, c.want)
		}
	}
}

// TestTheLimitFollowsWhatPoolsGiveOut has a pool give out what a process uses, which uses more after that.
func TestTheLimitFollowsWhatPoolsGiveOut(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	l := Begin(1, math.MaxInt64)
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
	}()
	var given atomic.Int64
	l.Count(given.Load)
	used := make([]byte, 200*mib)
	limit := func(says string, is func(int64) bool) {
		t.Helper()
		waittest.Until(t, says, func() bool { runtime.GC(); return is(debug.SetMemoryLimit(-1)) })
	}
	limit("what is used is doubled", func(n int64) bool { return n > 400*mib && n < math.MaxInt64 })
	given.Store(200 * mib)
	limit("what is given out is not", func(n int64) bool { return n > 200*mib && n < 400*mib })
	used = append(used, make([]byte, 200*mib)...)
	limit("what is used beside that is", func(n int64) bool { return n > 600*mib })
	given.Store(0)
	runtime.KeepAlive(used)
	var none *Limit
	none.Count(given.Load)
}

// garbage leaves so many bytes to a collector that does not begin by itself before the test ends, and returns what is
// in use with them.
func garbage(t *testing.T, n int) use {
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
	runtime.KeepAlive(make([]byte, n))
	return read()
}

// collected returns how often something has the garbage collected.
func collected(something func()) uint32 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	something()
	runtime.ReadMemStats(&after)
	return after.NumForcedGC - before.NumForcedGC
}

func TestGarbageIsCollectedBeforeMuchIsUsedThatWouldNotFitBesideIt(t *testing.T) {
	before := garbage(t, 100*mib)
	limit := before.objects + before.beside + 50*mib
	for _, c := range []struct {
		what     string
		n, limit int64
		want     uint32
	}{
		{"without a limit", 1000 * mib, math.MaxInt64, 0}, {"what fits", 20 * mib, limit, 0},
		{"what does not fit", 60 * mib, limit, 1}, {"what fits after that", 60 * mib, limit, 0},
	} {
		if got := collected(func() { room(c.n, c.limit) }); got != c.want {
			t.Errorf("%s: it is collected %d times", c.what, got)
		}
	}
	if after := read(); after.objects > before.objects-90*mib {
		t.Errorf("%d MiB are there after that, and were %d before", after.objects/mib, before.objects/mib)
	}
}

func TestManyWhoNeedRoomWaitForOneCollection(t *testing.T) {
	before := garbage(t, 200*mib)
	got := collected(func() {
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() { room(60*mib, before.objects+before.beside+50*mib) })
		}
		all.Wait()
	})
	if got != 1 {
		t.Errorf("it is collected %d times", got)
	}
}
