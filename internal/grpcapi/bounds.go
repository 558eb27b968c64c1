package grpcapi

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"
)

// What one process serves at a time, and how fast. The memory that messages and contents take is bounded by readers and
// budget together, whoever sends them.
const (
	maxStreams = 100     // of one connection
	windowSize = 1 << 20 // of a stream: what is received of it before anybody reads

	// readers is how many first messages are received at a time, each of up to MaxMessage; shareOfToken is how many of
	// one token. messagePatience is how long one may take, chunkPatience a later one.
	readers         = 16
	shareOfToken    = 4
	messagePatience = 20 * time.Second
	chunkPatience   = time.Minute

	// budget bounds the memory of the contents that are being received, and of large messages while their calls last. A
	// file is sealed in place, a deployment is also parsed. A single content may be larger; it is then received alone.
	// The memory limit of serve leaves room for MaxContent and for the garbage that is made while it is received.
	budget         = 192 << 20
	leastShare     = 8 << 20 // of a content: at least some chunks of it are in memory
	largeMessage   = 1 << 20
	parsedTimes    = 4
	exports        = 8 // at a time: what they need is not known before
	admitPatience  = 5 * time.Minute
	lookups        = 64 // tokens that are looked up at a time
	lookupPatience = 5 * time.Second

	// A token may call this often, and so many times at once.
	callsPerSecond, callBurst = 500, 2000
	pacePatience              = 5 * time.Second

	// From one address, wrong tokens are answered this often; more wait.
	wrongPerSecond, wrongBurst = 2, 20
	wrongPatience              = 5 * time.Second
	waitingWrong               = 256 // that wait at a time; others are answered at once

	maxNamed = 10_000 // names of which something is remembered
)

// bounds keeps what a process spends on its callers bounded.
type bounds struct {
	budget, reading, exporting, looking, wrong *semaphore.Weighted

	calls, failures *byName[*rate.Limiter] // by token, and by host

	shares, relooking *byName[*semaphore.Weighted] // by token: of the readers, and of checks of open streams
}

func newBounds() *bounds {
	return &bounds{
		budget: semaphore.NewWeighted(budget), reading: semaphore.NewWeighted(readers),
		looking:   semaphore.NewWeighted(lookups),
		exporting: semaphore.NewWeighted(exports), wrong: semaphore.NewWeighted(waitingWrong),
		calls:     newByName(func() *rate.Limiter { return rate.NewLimiter(callsPerSecond, callBurst) }),
		failures:  newByName(func() *rate.Limiter { return rate.NewLimiter(wrongPerSecond, wrongBurst) }),
		shares:    newByName(func() *semaphore.Weighted { return semaphore.NewWeighted(shareOfToken) }),
		relooking: newByName(func() *semaphore.Weighted { return semaphore.NewWeighted(1) }),
	}
}

// busy is the error about a bound that was reached; clients try again.
func busy(what string) error {
	return deployments.Errorf(deployments.CodeUnavailable, "the service is busy: %s; try again", what)
}

// acquire waits for a part of a semaphore, for as long as patience.
func acquire(ctx context.Context, s *semaphore.Weighted, n int64, patience time.Duration) (release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Acquire(waiting, n); err != nil {
		if ctx.Err() != nil {
			return func() {}, ctx.Err()
		}
		return func() {}, busy("too much is sent to it at once")
	}
	return sync.OnceFunc(func() { s.Release(n) }), nil
}

// lookup waits until a token may be looked up.
func (b *bounds) lookup(ctx context.Context) (done func(), err error) {
	return acquire(ctx, b.looking, 1, lookupPatience)
}

// relook waits until the caller of an open stream may be looked up again. Streams of one token do that one after the
// other: what the first one finds is remembered for the others by the Authority.
func (b *bounds) relook(ctx context.Context, token string) (done func(), err error) {
	return acquire(ctx, b.relooking.of(token), 1, lookupPatience)
}

// read waits until a first message of a token may be received.
func (b *bounds) read(ctx context.Context, token string) (done func(), err error) {
	share, err := acquire(ctx, b.shares.of(token), 1, admitPatience)
	if err != nil {
		return share, err
	}
	reading, err := acquire(ctx, b.reading, 1, admitPatience)
	return func() { reading(); share() }, err
}

// receive receives a message, or gives up when it takes too long. What goes on receiving then ends with the call.
func (b *bounds) receive(ctx context.Context, patience time.Duration, recv func() error) error {
	received := make(chan error, 1)
	go func() { received <- recv() }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-received:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return busy("a message did not arrive whole in time")
	}
}

// hold takes what the rest of a call needs from the budget, by its rule and its first message.
func (b *bounds) hold(ctx context.Context, r room, m proto.Message) (release func(), err error) {
	var share int64
	switch r {
	case ofExport:
		return acquire(ctx, b.exporting, 1, admitPatience)
	case ofContent:
		share = contentShare(sizeIn(m), 1)
	case ofParsed:
		share = contentShare(sizeIn(m), parsedTimes)
	default:
		if size := int64(proto.Size(m)); size > largeMessage {
			share = min(parsedTimes*size, budget)
		}
	}
	if share == 0 {
		return func() {}, nil
	}
	return acquire(ctx, b.budget, share, admitPatience)
}

// sizeIn gives what a first message says of the size of the whole content; see checkRoom.
func sizeIn(m proto.Message) int64 {
	return m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByName("size")).Int()
}

// contentShare is what a content of this size takes that is in memory several times; an older client does not say its
// size.
func contentShare(size, times int64) int64 {
	if size <= 0 || size > MaxContent {
		size = MaxContent
	}
	return min(max(times*size, leastShare), budget)
}

// pace delays a call of a token that calls too often.
func (b *bounds) pace(ctx context.Context, token string) error {
	r := b.calls.of(token).Reserve()
	if r.Delay() > pacePatience {
		r.Cancel()
		return busy("this token makes too many calls")
	}
	return sleep(ctx, r.Delay())
}

// slow delays the answer to a call without a right token.
func (b *bounds) slow(ctx context.Context, host string) {
	if !b.wrong.TryAcquire(1) {
		return
	}
	defer b.wrong.Release(1)
	_ = sleep(ctx, min(b.failures.of(host).Reserve().Delay(), wrongPatience)) // its caller has gone
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// byName has a thing for each of many names, and remembers those that were used last.
type byName[T any] struct {
	makes func() T

	mu   sync.Mutex
	last *simplelru.LRU[string, T]
}

func newByName[T any](makes func() T) *byName[T] {
	last, _ := simplelru.NewLRU[string, T](maxNamed, nil) // fails for no size only
	return &byName[T]{makes: makes, last: last}
}

// of returns the thing of a name.
func (n *byName[T]) of(name string) T {
	n.mu.Lock()
	defer n.mu.Unlock()
	found, ok := n.last.Get(name)
	if !ok {
		found = n.makes()
		n.last.Add(name, found)
	}
	return found
}

// hostOf gives the host of HOST:PORT.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
