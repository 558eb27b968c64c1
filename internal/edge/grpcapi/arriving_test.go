package grpcapi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// TestALargeMessageIsDecodedOnceItHasItsMemory has messages arrive while somebody has all memory. None is refused for
// being slow, and a small one does not wait.
func TestALargeMessageIsDecodedOnceItHasItsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounds(nil)
		all := b.memory.Claim("other", nil)
		if err := all.Take(t.Context(), budget, 0); err != nil {
			t.Fatal(err)
		}
		texts := func(n int) mem.BufferSlice {
			data, err := proto.Marshal(&api.EncryptRequest{Plain: []string{strings.Repeat("x", n)}})
			if err != nil {
				t.Fatal(err)
			}
			return mem.BufferSlice{mem.SliceBuffer(data)}
		}
		arrives := func(n int) (a *arriving, m *api.EncryptRequest, ended chan error) {
			m, ended = &api.EncryptRequest{}, make(chan error, 1)
			a = &arriving{message: m, claim: b.memory.Claim("acme", nil), whole: make(chan struct{})}
			data := texts(n)
			go func() {
				ended <- b.first(t.Context(), sender{"acme", "host", "ann"}, a.whole, func(turn context.Context) error {
					a.turn = turn
					return newCodec().Unmarshal(data, a)
				}, kept)
			}()
			synctest.Wait()
			return a, m, ended
		}
		const large = 8 << 20
		a, m, ended := arrives(large)
		if len(m.GetPlain()) != 0 {
			t.Error("it is decoded without memory")
		}
		if _, little, over := arrives(smallMessage / 2); len(little.GetPlain()) != 1 || <-over != nil {
			t.Error("a small one is not decoded")
		}
		time.Sleep(2 * messagePatience)
		all.Release()
		if err := <-ended; err != nil || len(m.GetPlain()) != 1 || a.taken < parsedTimes*large ||
			b.memory.Taken() != a.taken {
			t.Errorf("with memory it has %d texts and %d of %d bytes: %v", len(m.GetPlain()), a.taken, b.memory.Taken(), err)
		}
		if err := all.Take(t.Context(), 1, 0); err != nil { // released ones take nothing
			t.Error(err)
		}
	})
}

// TestAMessageThatGetsNoMemoryIsToldSo has one wait for as long as any may.
func TestAMessageThatGetsNoMemoryIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBounds(nil)
		if err := b.memory.Claim("other", nil).Take(t.Context(), budget, 0); err != nil {
			t.Fatal(err)
		}
		a := &arriving{claim: b.memory.Claim("acme", nil), turn: t.Context(), whole: make(chan struct{})}
		began := time.Now()
		if err := a.arrived(smallMessage + 1); !errors.Is(err, mempool.ErrBusy) || !errors.Is(a.err, mempool.ErrBusy) ||
			time.Since(began) != Patience {
			t.Errorf("after %s it is answered %v", time.Since(began), err)
		}
	})
}
