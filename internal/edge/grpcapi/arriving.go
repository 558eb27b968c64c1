package grpcapi

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/internal/sys/mempool"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// arriving is the first message of a call, as the codec gets it. A large one takes its memory once it has arrived and
// before it is decoded: until then it counts as what nobody has read (see backlog), and after that as what the call
// has. So as many large messages as there are places to receive them (see turns) take no memory beside these.
type arriving struct {
	message proto.Message
	claim   *mempool.Claim  // is the call's once it has taken anything
	content bool            // more arrives, which keeps the claim only if it comes soon
	turn    context.Context // ends when the message has to give way
	whole   chan struct{}   // is closed when it has arrived
	once    sync.Once

	taken int64
	err   error // of taking it, which gRPC hides
}

// arriving returns what the first message of the call is received into.
func (c *call) arriving(first proto.Message) *arriving {
	claim := c.newClaim("")
	c.release = append(c.release, claim.Release)
	return &arriving{message: first, claim: claim, content: c.rule.room == ofContent || c.rule.room == ofParsed,
		turn: c.ctx, whole: make(chan struct{})}
}

// arrived notes that the message is whole, with so many bytes, and takes its memory if it is large.
func (a *arriving) arrived(size int) error {
	a.once.Do(func() { close(a.whole) })
	if size <= smallMessage {
		return nil
	}
	if !a.content {
		a.claim.Whole()
	}
	needed := min(parsedTimes*int64(size), budget)
	if a.err = a.claim.TakeRoom(a.turn, needed, Patience); a.err == nil {
		a.taken = needed
	}
	return a.err
}

// into returns the message that data is decoded into.
func into(v any, data mem.BufferSlice) (any, error) {
	if a, ok := v.(*arriving); ok {
		return a.message, a.arrived(data.Len())
	}
	return v, nil
}
