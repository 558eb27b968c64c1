package access

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/internal/sys/panics"
)

// lookups are reads of tokens that are under way. Those who ask for the same at once share a read, which ends when the
// last of them has left: who asks and leaves costs nothing afterwards.
type lookups struct {
	mu      sync.Mutex
	running map[string]*lookup
}

// lookup is a read. Found and err are set when done is closed.
type lookup struct {
	waiting int
	end     context.CancelFunc
	done    chan struct{}
	found   knownCaller
	err     error
}

// join returns what read returns, also to others who ask for the key meanwhile.
func (l *lookups) join(
	ctx context.Context, key string, read func(context.Context) (knownCaller, error),
) (knownCaller, error) {
	at := l.enter(ctx, key, read)
	defer l.leave(key, at)
	select {
	case <-at.done:
		return at.found, at.err
	case <-ctx.Done():
		return knownCaller{}, ctx.Err()
	}
}

func (l *lookups) enter(
	ctx context.Context, key string, read func(context.Context) (knownCaller, error),
) *lookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.running[key]
	if at == nil {
		reading, end := context.WithCancel(context.WithoutCancel(ctx)) // the first one may leave before the others
		at = &lookup{end: end, done: make(chan struct{})}
		if l.running == nil {
			l.running = map[string]*lookup{}
		}
		l.running[key] = at
		go func() {
			at.err = panics.Do("finding a token", func() (err error) {
				at.found, err = read(reading)
				return err
			})
			l.forget(key, at)
			close(at.done)
		}()
	}
	at.waiting++
	return at
}

// leave ends a read when nobody waits for it any more.
func (l *lookups) leave(key string, at *lookup) {
	l.mu.Lock()
	at.waiting--
	last := at.waiting == 0
	if last && l.running[key] == at {
		delete(l.running, key)
	}
	l.mu.Unlock()
	if last {
		at.end()
	}
}

// forget has those who ask from now on read anew.
func (l *lookups) forget(key string, at *lookup) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[key] == at {
		delete(l.running, key)
	}
}
