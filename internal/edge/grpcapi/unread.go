package grpcapi

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	pb "google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/internal/sys/mempool"
)

// An answer that was sent is in memory until the client takes it: gRPC queues a message whatever its size, and its call
// ends. So a call counts, with the memory that it has, until its last byte has left.

const (
	// smallAnswer is how much an answer may have without taking memory for it.
	smallAnswer = 16 << 10
	// pieceOf is in what pieces a message leaves; each is a sign of life of its reader.
	pieceOf = 64 << 10
	// pooledFrom is the capacity from which gRPC says that a buffer is not needed any more.
	pooledFrom = 1<<10 + 1
)

// unread is what a call has sent and its client has not taken.
type unread struct {
	mu      sync.Mutex
	memory  *mempool.Claim // of the call; nil: it has none
	bytes   int64          // that were taken of it
	pieces  int
	over    bool   // the method has returned
	release func() // what the call has; nil when that is done
	forget  func() // the connection, whose end is the end of all that was sent on it
}

// answer is a message of a call, as the codec gets it.
type answer struct {
	message any
	taken   int64 // of memory, for it
	of      *unread
}

// codec is that of protocol buffers, which knows when what it has encoded is not needed any more.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

// Unmarshal implements encoding.CodecV2. Fields that this build does not know are dropped: they would be in memory as
// long as the call.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	v, err := into(v, data)
	if err != nil {
		return err
	}
	m, ok := v.(pb.Message)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	return pb.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(whole.ReadOnlyData(), m)
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	a, ok := v.(*answer)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	whole, err := c.CodecV2.Marshal(a.message)
	if err != nil {
		return nil, err
	}
	data := whole.Materialize()
	if len(whole) == 1 {
		data = whole[0].ReadOnlyData()
	}
	if len(data) < pooledFrom {
		data = append(make([]byte, 0, pooledFrom), data...)
	}
	count := max(1, len(data)/pieceOf)
	left := &leaving{of: a.of, taken: a.taken, pieces: count, whole: whole}
	a.of.sent(count)
	out := make(mem.BufferSlice, 0, count)
	for i := range count {
		piece := data[i*pieceOf:]
		if i < count-1 {
			piece = piece[:pieceOf:pieceOf]
		}
		out = append(out, mem.NewBuffer(&piece, left))
	}
	return out, nil
}

// leaving is one message; gRPC gives each of its pieces back as if it were taken from it.
type leaving struct {
	of     *unread
	taken  int64
	whole  mem.BufferSlice
	mu     sync.Mutex
	pieces int
}

// Get implements mem.BufferPool.
func (l *leaving) Get(length int) *[]byte { data := make([]byte, length); return &data }

// Put implements mem.BufferPool: a piece has left.
func (l *leaving) Put(*[]byte) {
	l.mu.Lock()
	l.pieces--
	last := l.pieces == 0
	l.mu.Unlock()
	if !last {
		l.of.left(0)
		return
	}
	l.whole.Free()
	l.of.left(l.taken)
}

// took notes that memory was taken for a message.
func (u *unread) took(memory *mempool.Claim, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.memory, u.bytes = memory, u.bytes+bytes
}

// ended reports whether the method has returned.
func (u *unread) ended() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.over
}

func (u *unread) sent(pieces int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pieces += pieces
}

// left notes that a piece has left, with the last one of a message how much memory that took.
func (u *unread) left(taken int64) {
	u.mu.Lock()
	u.pieces--
	u.bytes -= taken
	release, memory := u.done(), u.memory
	u.mu.Unlock()
	if release != nil {
		release()
	} else if memory != nil {
		memory.Moved()
		memory.Return(taken)
	}
}

// done returns what is to be called when everything has left, once.
func (u *unread) done() (release func()) {
	if u.over && u.pieces <= 0 && u.release != nil {
		if release, u.release = u.release, nil; u.forget != nil {
			u.forget()
		}
	}
	return release
}

// end has release called once everything has left, or the stream or the connection is closed. What is there until then
// is all that the call still has of its memory, and when that has to give way because nobody takes it, the connection
// is closed: gRPC drops nothing of an answer that has ended.
func (u *unread) end(ctx context.Context, memory *mempool.Claim, release func()) {
	u.mu.Lock()
	u.over, u.release, u.memory = true, release, memory
	// A client that has ended the stream gets nothing more of it, and gRPC drops what comes too late without a word. That
	// its deadline has passed ends no stream.
	if errors.Is(ctx.Err(), context.Canceled) {
		u.pieces = 0
	}
	now, bytes, c := u.done(), u.bytes, connectionOf(ctx)
	if now == nil && c != nil {
		stop := context.AfterFunc(c.open, u.gone)
		u.forget = func() { stop() }
	}
	u.mu.Unlock()
	if now != nil {
		now()
	} else if memory != nil {
		memory.Shrink(bytes)
		if !memory.Whole() {
			c.giveWay()
		}
		memory.Sending()
	}
}

// gone notes that nothing of it is left.
func (u *unread) gone() {
	u.mu.Lock()
	u.pieces = 0
	release := u.done()
	u.mu.Unlock()
	if release != nil {
		release()
	}
}

// connectionOf returns the connection of a call, if a Limited listener has accepted it.
func connectionOf(ctx context.Context) *connection {
	if p, ok := peer.FromContext(ctx); ok {
		if at, ok := p.Addr.(remote); ok {
			return at.connection
		}
	}
	return nil
}
