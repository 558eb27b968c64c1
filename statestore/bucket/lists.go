package bucket

import (
	"context"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
)

const (
	// ListMemory limits what one list that a caller asks for takes in memory. What the service itself lists has no limit.
	ListMemory = 32 << 20
	// listTimes is how many copies there are of a list until it is answered.
	listTimes = 4
	// freeList is how much a list has before it takes memory, and in what pieces it takes more.
	freeList = 256 << 10
)

// MinAge is the age below which objects are never collected: a writer may still be using them.
const MinAge = 24 * time.Hour

// Budget counts what a list keeps in memory: how much that is decides whoever has made the things in it. It is safe
// for concurrent use.
type Budget struct {
	ctx   context.Context
	limit int64 // 0: none

	mu          sync.Mutex
	kept, taken int64
}

// NewBudget returns the budget of a list; it has a limit if the context has a claim on memory (see mempool), as the
// contexts of callers have.
func NewBudget(ctx context.Context) *Budget {
	l := &Budget{ctx: ctx, taken: freeList}
	if mempool.Claimed(ctx) {
		l.limit = ListMemory
	}
	return l
}

// Keep takes the memory of so many bytes more, before they are kept.
func (l *Budget) Keep(n int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept += n
	if l.limit > 0 && l.kept > l.limit {
		return deployments.TooLarge("this list takes more than %d MiB: ask for less, such as one project, or have an "+
			"admin of the organization remove what is not needed", l.limit>>20)
	}
	if l.kept <= l.taken {
		return nil
	}
	more := l.kept - l.taken + freeList
	l.taken += more
	return mempool.Take(l.ctx, listTimes*more)
}

// Gather reads what is listed, some at a time, and keeps the order. What is not found is left out. Size says how many
// bytes one takes in memory.
func Gather[T any](l *Budget, keys []string, size func(T) int64, read func(key string) (T, error)) ([]T, error) {
	found := make([]*T, len(keys))
	places := make(map[string]int, len(keys))
	for i, key := range keys {
		places[key] = i
	}
	err := Each(keys, func(key string) error {
		one, err := read(key)
		if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
			return nil
		}
		if err == nil {
			err = l.Keep(size(one))
		}
		if err == nil {
			found[places[key]] = &one
		}
		return err
	})
	all := make([]T, 0, len(keys))
	for _, one := range found {
		if one != nil {
			all = append(all, *one)
		}
	}
	return all, err
}

// Each calls f for every item, some concurrently, and returns the first error.
func Each(items []string, f func(string) error) error {
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	next := make(chan string)
	for range min(16, len(items)) {
		wg.Go(func() {
			for item := range next {
				if err := f(item); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	wg.Wait()
	return first
}

// Folders returns the folders called name, or all when it is empty, in the given folders, sorted.
func Folders(ctx context.Context, objects Objects, in []string, name string) ([]string, error) {
	var below []string
	for _, folder := range in {
		if name != "" {
			below = append(below, folder+name+"/")
			continue
		}
		l, err := objects.List(ctx, Query{Prefix: folder, Fold: true})
		if err != nil {
			return nil, Failed(err, "list "+folder)
		}
		for _, key := range l.Keys {
			if strings.HasSuffix(key, "/") && CheckKey(key) == nil { // else it is some file, not a folder
				below = append(below, key)
			}
		}
	}
	sort.Strings(below)
	return below, nil
}
