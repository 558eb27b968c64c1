package grpcapi

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"
)

// What one process serves at a time, and how fast. The memory that messages and contents take is bounded by readers and
// budget together, whoever sends them.
const (
	maxStreams = 100       // of one connection
	windowSize = 256 << 10 // of a stream: what is received of it before anybody reads; see backlog

	// readers is how many first messages are received at a time, each of up to MaxMessage; see turns. messagePatience is
	// how long one may take, chunkPatience a later one.
	readers         = 16
	messagePatience = 20 * time.Second
	chunkPatience   = time.Minute

	// budget bounds the memory of the contents that are being received and answered, and of large messages while their
	// calls last. A file is sealed in place, a deployment is also parsed. A single content may be larger; it is then
	// alone. The memory limit of serve leaves room for MaxContent and for the garbage that is made while it is received.
	budget         = 192 << 20
	leastShare     = 8 << 20  // of a content: at least some chunks of it are in memory
	smallMessage   = 16 << 10 // needs no memory of the budget
	parsedTimes    = 4
	exports        = 8 // at a time
	exportsOfOne   = 3 // organization
	admitPatience  = Patience
	lookups        = 64 // tokens that are looked up at a time
	lookupPatience = 5 * time.Second

	// A token may call this often, and so many times at once.
	callsPerSecond, callBurst = 500, 2000
	pacePatience              = 5 * time.Second

	// From one address, wrong tokens are answered this often; more wait.
	wrongPerSecond, wrongBurst = 2, 20
	wrongPatience              = 5 * time.Second
	waitingWrong               = 256 // that wait at a time; others are answered at once

	// From one address, an identity provider is asked who logs in this often; others are refused at once.
	loginsPerSecond, loginBurst = 2, 20

	maxNamed = 10_000 // names of which something is remembered
)

// Patience is how long a call waits for memory.
const Patience = 5 * time.Minute

// NewMemory returns the memory that the organizations share, on all edges of a process.
func NewMemory() *mempool.Pool { return mempool.New(budget) }

// bounds keeps what a process spends on its callers bounded.
type bounds struct {
	memory  *mempool.Pool
	reading *turns

	exporting, looking, wrong *semaphore.Weighted

	calls            *byName[*rate.Limiter] // by token
	failures, logins *byName[*rate.Limiter] // by Party of the host

	relooking    *byName[*semaphore.Weighted] // by token: of checks of open streams
	exportShares *byName[*semaphore.Weighted] // by party: of the exports
}

// newBounds returns the bounds of an edge; memory is nil if the edge has its own.
func newBounds(memory *mempool.Pool) *bounds {
	return &bounds{
		memory: cmp.Or(memory, NewMemory()), reading: newTurns(readers),
		looking:   semaphore.NewWeighted(lookups),
		exporting: semaphore.NewWeighted(exports), wrong: semaphore.NewWeighted(waitingWrong),
		calls:        newByName(func() *rate.Limiter { return rate.NewLimiter(callsPerSecond, callBurst) }),
		failures:     newByName(func() *rate.Limiter { return rate.NewLimiter(wrongPerSecond, wrongBurst) }),
		logins:       newByName(func() *rate.Limiter { return rate.NewLimiter(loginsPerSecond, loginBurst) }),
		relooking:    newByName(func() *semaphore.Weighted { return semaphore.NewWeighted(1) }),
		exportShares: newByName(func() *semaphore.Weighted { return semaphore.NewWeighted(exportsOfOne) }),
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

// export waits for one of the places of calls that answer with a whole deployment or with the audit log, of which a
// party has a share.
func (b *bounds) export(ctx context.Context, party string) (done func(), err error) {
	own, err := acquire(ctx, b.exportShares.of(party), 1, admitPatience)
	if err != nil {
		return own, err
	}
	one, err := acquire(ctx, b.exporting, 1, admitPatience)
	return func() { one(); own() }, err
}

// first receives a first message when it is its sender's turn, or gives up when it takes too long or has to give way.
// What goes on receiving then ends with the call. Whole is closed when the message has arrived. The turn lasts until
// keep has returned, which takes the memory that the call has, so that no more are in memory beside that.
func (b *bounds) first(
	ctx context.Context, of sender, whole <-chan struct{}, recv, keep func(turn context.Context) error,
) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	leave, err := b.reading.enter(ctx, of, admitPatience, func() { stop(errTurn) })
	if err != nil {
		return err
	}
	defer leave()
	if err = b.receive(ctx, messagePatience, whole, func() error { return recv(ctx) }); err == nil {
		err = keep(ctx)
	}
	if errors.Is(context.Cause(ctx), errTurn) {
		return errTurn
	}
	return err
}

var errTurn = busy("a message did not arrive whole while others waited")

// receive receives a message, or gives up when it takes too long until that is whole; nil: until recv has returned.
// What goes on receiving then ends with the call.
func (b *bounds) receive(
	ctx context.Context, patience time.Duration, whole <-chan struct{}, recv func() error,
) error {
	received := make(chan error, 1)
	go func() { received <- recv() }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	slow := timer.C
	for {
		select {
		case err := <-received:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case <-whole:
			whole, slow = nil, nil
		case <-slow:
			return busy("a message did not arrive whole in time")
		}
	}
}

// memoryOf returns what the rest of a call needs of the budget, by its rule and its first message.
func memoryOf(r room, m proto.Message) int64 {
	switch r {
	case ofContent:
		return contentShare(sizeIn(m), 1)
	case ofParsed:
		return contentShare(sizeIn(m), parsedTimes)
	}
	if size := int64(proto.Size(m)); size > smallMessage {
		return min(parsedTimes*size, budget)
	}
	return 0
}

// share gives the call a claim to the memory that the organizations share. One that sends its answer part by part needs
// none: it lasts long, and has little at a time.
func (c *call) share() {
	if c.rule.room == ofParts {
		return
	}
	c.claim()
	c.ctx = mempool.With(c.ctx, c.memory, Patience)
}

// claim gives the call a claim, unless its first message has taken one.
func (c *call) claim() {
	if c.memory == nil {
		c.memory = c.newClaim(c.entry.Organization)
		c.release = append(c.release, c.memory.Release)
	}
}

// newClaim returns a claim of a call about an organization. When it has to give way, so does the call or, if that has
// ended and its answer is not taken, its connection.
func (c *call) newClaim(about string) *mempool.Claim {
	return c.edge.bounds.memory.Claim(c.caller.Party(about), func() {
		c.cancel(endedStream{mempool.ErrBusy})
		if c.unread.ended() {
			connectionOf(c.ServerStream.Context()).giveWay()
		}
	})
}

// takeAnswer takes memory for a message of the answer, which is given back when the client has taken that.
func (c *call) takeAnswer(size int64) error {
	if c.memory == nil {
		c.claim()
	}
	err := c.memory.Take(c.ctx, size, Patience)
	if err == nil {
		c.unread.took(c.memory, size)
	}
	return err
}

// hold takes what the rest of a call needs, of which its first message has taken some, or gives back what that does not
// need any more. What its content takes it takes at once, and gives way if that arrives too slowly; what it reads of
// the store, as it reads it.
func (c *call) hold(ctx context.Context, first proto.Message, taken int64) error {
	needed := memoryOf(c.rule.room, first)
	if taken > needed {
		c.memory.Return(taken - needed)
	}
	needed = max(needed-taken, 0)
	switch c.rule.room {
	case ofParts:
		if needed == 0 {
			return nil
		}
		c.claim()
		c.memory.Whole()
	case ofPages, ofMessage:
		c.memory.Whole()
	case ofExport:
		done, err := c.edge.bounds.export(ctx, c.caller.Party(c.entry.Organization))
		c.release = append(c.release, done)
		if err != nil {
			return err
		}
		c.memory.Whole()
	}
	if needed == 0 {
		return nil
	}
	return c.memory.TakeRoom(ctx, needed, Patience)
}

// sendSlowly sends a part of an answer, and gives up when it is taken too slowly while others wait for its memory.
// What goes on sending then ends with the call.
func (c *call) sendSlowly(m any) error {
	c.memory.Sending()
	sent := make(chan error, 1)
	go func() { sent <- c.ServerStream.SendMsg(m) }()
	select {
	case err := <-sent:
		return err
	case <-c.ctx.Done():
		return cmp.Or(c.ended(), c.ctx.Err())
	}
}

// received notes that something of the content of a call has arrived, or that it is whole.
func (c *call) received(err error) error {
	if c.memory == nil {
		return err
	}
	if c.memory.Moved(); errors.Is(err, io.EOF) && !c.memory.Whole() {
		return mempool.ErrBusy
	}
	return err
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
	_ = sleep(ctx, min(b.failures.of(Party(host)).Reserve().Delay(), wrongPatience)) // its caller has gone
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
