package intake

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// poolSize is room for one message of 1 MiB at a time.
const poolSize = (perByte + 1) << 20

// echo is a server with one method, which says what it has got. Its handlers wait for go.
type echo struct {
	address string
	began   chan int // the length of a message that was decoded
	answer  chan struct{}
}

func serve(t *testing.T, i *Intake) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener.Addr().String(), make(chan int, 100), make(chan struct{})}
	handle := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		message := &wrapperspb.BytesValue{}
		if err := decode(message); err != nil {
			return nil, err
		}
		e.began <- len(message.GetValue())
		select {
		case <-e.answer:
		case <-ctx.Done():
		}
		return message, nil
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(pluginprotocol.MaxMessage), grpc.StatsHandler(&Watcher{}))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "test", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: handle}}}, e)
	go func() { _ = server.Serve(i.Listen(listener)) }() // ends by Stop
	t.Cleanup(server.Stop)
	return e
}

// call sends a message of so many bytes, by a client of its own whose answers take memory, too.
func (e *echo) call(t *testing.T, i *Intake, size int, opts ...grpc.CallOption) error {
	t.Helper()
	conn, err := grpc.NewClient(e.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(&Watcher{}), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pluginprotocol.MaxMessage)),
		grpc.WithContextDialer(func(ctx context.Context, at string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
			if err != nil {
				return nil, err
			}
			return i.Connect(conn), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	sent, got := &wrapperspb.BytesValue{Value: bytes.Repeat([]byte("x"), size)}, &wrapperspb.BytesValue{}
	err = conn.Invoke(waittest.Context(t), "/test/Echo", sent, got, opts...)
	if err == nil && len(got.GetValue()) != size {
		t.Errorf("%d bytes are answered for %d", len(got.GetValue()), size)
	}
	return err
}

// isFree reports what a pool has not got back.
func isFree(t *testing.T, p *mempool.Pool, size int64) {
	t.Helper()
	c := p.Claim("whole", nil)
	defer c.Release()
	if err := c.Take(waittest.Context(t), size, waittest.Patience); err != nil {
		t.Errorf("something is still taken: %v", err)
	}
}

func TestALargeMessageWaitsForMemoryBeforeItIsReceived(t *testing.T) {
	pool := mempool.New(poolSize)
	e := serve(t, New(pool, "acme"))
	close(e.answer)
	taken := pool.Claim("other", nil)
	if err := taken.Take(t.Context(), poolSize, 0); err != nil {
		t.Fatal(err)
	}
	large := make(chan error, 1)
	go func() { large <- e.call(t, nil, 1<<20) }()
	for range 20 { // others are received meanwhile
		if err := e.call(t, nil, 1<<10); err != nil {
			t.Fatal(err)
		}
		if got := waittest.For(t, "a small message", e.began); got != 1<<10 {
			t.Fatalf("one of %d bytes is decoded though nothing is free", got)
		}
	}
	taken.Release()
	if err := waittest.For(t, "the large message", large); err != nil {
		t.Error(err)
	}
	isFree(t, pool, poolSize)
}

// TestTheMemoryOfAMessageIsGivenBackOnceItIsDecoded has calls that last, as registrations do.
func TestTheMemoryOfAMessageIsGivenBackOnceItIsDecoded(t *testing.T) {
	pool := mempool.New(poolSize)
	e := serve(t, New(pool, "acme"))
	done := make(chan error, 8)
	for range cap(done) {
		go func() { done <- e.call(t, nil, 1<<20) }()
	}
	for range cap(done) {
		waittest.For(t, "each is decoded, though none is answered", e.began)
	}
	isFree(t, pool, poolSize)
	close(e.answer)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAnAnswerTakesMemoryAndGivesItBack(t *testing.T) {
	pool := mempool.New(poolSize)
	e := serve(t, nil)
	close(e.answer)
	for range 5 {
		if err := e.call(t, New(pool, "acme"), 1<<20); err != nil {
			t.Fatal(err)
		}
		isFree(t, pool, poolSize)
	}
}

// TestAnAnswerKeepsItsMemoryForAsLongAsItsCallerNeedsIt has others take what is left, and then all.
func TestAnAnswerKeepsItsMemoryForAsLongAsItsCallerNeedsIt(t *testing.T) {
	pool := mempool.New(poolSize)
	read, c := connected(t, New(pool, "acme"))
	size := 1 << 20
	if err := read(stream(1, size, make([]byte, size))); err != nil {
		t.Fatal(err)
	}
	ctx, release := WithHold(t.Context())
	c.decoded(HoldOf(ctx), int64(size), int64(size))
	_ = c.Close() // the plugin may end
	isFree(t, pool, poolSize-perByte<<20)
	other := pool.Claim("other", nil)
	defer other.Release()
	if other.Take(t.Context(), poolSize, 0) == nil {
		t.Error("its memory is given to others while it is needed")
	}
	release()
	isFree(t, pool, poolSize)
	late, c := connected(t, New(pool, "acme"))
	if err := late(stream(1, size, make([]byte, size))); err != nil {
		t.Fatal(err)
	}
	c.decoded(HoldOf(ctx), int64(size), int64(size))
	isFree(t, pool, poolSize)
}

// TestAnAnswerThatIsNeededForLongGivesWay has nothing else happen than that others wait.
func TestAnAnswerThatIsNeededForLongGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := mempool.New(poolSize)
		of := pool.Losing("acme")
		if err := of.Take(t.Context(), perByte<<20, 0); err != nil {
			t.Fatal(err)
		}
		ctx, release := WithHold(t.Context())
		defer release()
		if !HoldOf(ctx).keep(of, perByte<<20) {
			t.Fatal("it is not kept")
		}
		other := pool.Claim("other", nil)
		defer other.Release()
		if err := other.Take(t.Context(), poolSize, holdTime/2); err == nil {
			t.Error("its memory is given to others while it is needed")
		}
		if err := other.Take(t.Context(), poolSize, holdTime); err != nil {
			t.Errorf("its memory is kept for ever: %v", err)
		}
	})
}

func TestACompressedMessageCountsAsTheLongest(t *testing.T) {
	const size = 4 * poolSize
	pool := mempool.New(size)
	e := serve(t, New(pool, "acme"))
	close(e.answer)
	taken := pool.Claim("other", nil)
	if err := taken.Take(t.Context(), 1, 0); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- e.call(t, nil, 1<<20, grpc.UseCompressor(gzip.Name)) }()
	if err := e.call(t, nil, 1<<20); err != nil { // there is room for this one
		t.Fatal(err)
	}
	waittest.For(t, "the one that is not compressed", e.began)
	select {
	case <-e.began:
		t.Error("the compressed one waits for nothing")
	default:
	}
	taken.Release()
	if err := waittest.For(t, "the compressed one", sent); err != nil {
		t.Error(err)
	}
	isFree(t, pool, size)
}

// stream is what a client sends that declares a message of so many bytes, and sends few of them.
func stream(id uint32, declared int, sends []byte) []byte {
	head := make([]byte, 5)
	binary.BigEndian.PutUint32(head[1:], uint32(declared)) //nolint:gosec // small
	return frame(frameData, 0, id, append(head, sends...))
}

func frame(kind, flags byte, id uint32, payload []byte) []byte {
	f := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(f[5:], id)
	return append(f, payload...)
}

// one is a listener that has accepted a connection.
type one struct {
	net.Listener
	conn net.Conn
}

func (o one) Accept() (net.Conn, error) { return o.conn, nil }

// accepted is a connection of a server whose other end is written to.
func accepted(t *testing.T, i *Intake) (read func(sent ...[]byte) error, c *connection) {
	t.Helper()
	ours, theirs := net.Pipe()
	conn, err := i.Listen(one{conn: ours}).Accept()
	if err != nil {
		t.Fatal(err)
	}
	c = conn.(*connection)
	c.in.preface = 0
	return reader(t, c, theirs), c
}

// connected is a connection of a client whose other end is written to.
func connected(t *testing.T, i *Intake) (read func(sent ...[]byte) error, c *connection) {
	t.Helper()
	ours, theirs := net.Pipe()
	c = i.Connect(ours).(*connection)
	return reader(t, c, theirs), c
}

func reader(t *testing.T, c *connection, theirs net.Conn) func(sent ...[]byte) error {
	t.Cleanup(func() { _, _ = c.Close(), theirs.Close() })
	return func(sent ...[]byte) error {
		for _, all := range sent {
			for len(all) > 0 { // in pieces of any size
				n := min(7, len(all))
				go func(piece []byte) { _, _ = theirs.Write(piece) }(all[:n])
				if _, err := c.Read(make([]byte, 64)); err != nil {
					return err
				}
				all = all[n:]
			}
		}
		return nil
	}
}

func TestMessagesThatHaveBegunOnAConnectionAreBounded(t *testing.T) {
	read, _ := accepted(t, New(mempool.New(poolSize), "evil"))
	most := pluginprotocol.MaxMessage
	if err := read(stream(1, most/2, []byte("x")), stream(3, most/2, nil)); err != nil {
		t.Fatalf("as much as one message may have: %v", err)
	}
	if err := read(stream(5, large+1, nil)); !errors.Is(err, errTooMuch) {
		t.Errorf("more of them end with %v", err)
	}
}

func TestAMessageThatNeverEndsGivesItsMemoryToOthers(t *testing.T) {
	pool := mempool.New(poolSize)
	read, c := accepted(t, New(pool, "evil"))
	if err := read(stream(1, 1<<20, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	other := pool.Claim("acme", nil)
	defer other.Release()
	if err := other.Take(waittest.Context(t), poolSize, waittest.Patience); err != nil {
		t.Errorf("another organization: %v", err)
	}
	<-c.ctx.Done()
}

func TestAMessageThatIsGivenUpTakesNoMemory(t *testing.T) {
	for name, ends := range map[string]func(read func(...[]byte) error, c *connection) error{
		"the other side resets its stream": func(read func(...[]byte) error, _ *connection) error {
			return read(frame(frameReset, 0, 1, make([]byte, 4)))
		},
		"this side ends it": func(_ func(...[]byte) error, c *connection) error {
			c.out.preface = 0
			return c.out.scan(frame(frameHeaders, flagEnd, 1, []byte("x")))
		},
		"the connection ends": func(_ func(...[]byte) error, c *connection) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			pool := mempool.New(poolSize)
			read, c := connected(t, New(pool, "acme"))
			if err := read(frame(frameHeaders, 0, 1, nil), stream(1, 1<<20, []byte("x"))); err != nil {
				t.Fatal(err)
			}
			if err := ends(read, c); err != nil {
				t.Fatal(err)
			}
			if whole := pool.Claim("whole", nil); whole.Take(t.Context(), poolSize, 0) != nil {
				t.Error("its memory is still taken")
			}
		})
	}
}

func TestPaddedMessagesAreRefused(t *testing.T) {
	read, _ := connected(t, New(mempool.New(poolSize), "evil"))
	if err := read(frame(frameData, flagPadded, 1, []byte("\x01xxxxxxx"))); !errors.Is(err, errPadded) {
		t.Errorf("they end with %v", err)
	}
}

func TestWithoutAnIntakeNothingIsBounded(t *testing.T) {
	e := serve(t, nil)
	close(e.answer)
	if err := e.call(t, nil, 8<<20); err != nil {
		t.Error(err)
	}
}

func TestAMessageThatIsNeverDecodedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := mempool.New(poolSize)
		read, c := accepted(t, New(pool, "acme"))
		if err := read(stream(1, 1<<10*100, make([]byte, 1<<10*100))); err != nil {
			t.Fatal(err)
		}
		<-time.After(decodeTime + time.Second)
		isFree(t, pool, poolSize)
		if c.ctx.Err() != nil {
			t.Error("its connection has ended")
		}
		_ = c.Close()
	})
}

func TestTheOnlyConnectionToAPluginEndsForNoAnswer(t *testing.T) {
	most := pluginprotocol.MaxMessage
	for name, sent := range map[string][][]byte{
		"one that is too long": {stream(1, most+1, []byte("x"))},
		"many at once":         {stream(1, most, []byte("x")), stream(3, most, []byte("x")), stream(5, most, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read, c := connected(t, New(mempool.New(poolSize), "acme"))
				if err := read(sent...); err != nil || c.ctx.Err() != nil {
					t.Errorf("it ends: %v", err)
				}
				_ = c.Close()
			})
		})
	}
	t.Run("no memory, and a pause while others wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pool := mempool.New(poolSize)
			read, c := connected(t, New(pool, "acme"))
			if err := read(stream(1, 1<<20, []byte("x"))); err != nil {
				t.Fatal(err)
			}
			other := pool.Claim("other", nil)
			if err := other.Take(t.Context(), poolSize, time.Minute); err != nil {
				t.Errorf("others wait for it: %v", err)
			}
			if err := read(stream(3, 1<<20, []byte("x"))); err != nil || c.ctx.Err() != nil {
				t.Errorf("it ends: %v", err)
			}
			_ = c.Close()
			other.Release()
			isFree(t, pool, poolSize)
		})
	})
}

func TestTheMemoryOfADecodedMessageIsGivenBackWhileAnotherArrives(t *testing.T) {
	pool := mempool.New(3 * poolSize)
	read, c := accepted(t, New(pool, "acme"))
	size := 100 << 10
	if err := read(stream(1, size, make([]byte, size)), stream(3, 2<<20, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	c.decoded(nil, int64(size), int64(size))
	other := pool.Claim("other", nil)
	defer other.Release()
	if err := other.Take(t.Context(), 3*poolSize-2*perByte<<20, 0); err != nil {
		t.Error(err)
	}
}

func TestACompressedMessageGivesItsMemoryBackWhenItIsDecoded(t *testing.T) {
	pool := mempool.New(poolSize)
	read, c := accepted(t, New(pool, "acme"))
	sent := stream(1, 10, make([]byte, 10))
	sent[frameHead] = 1
	if err := read(sent); err != nil {
		t.Fatal(err)
	}
	c.decoded(nil, 10, 1<<20)
	if whole := pool.Claim("whole", nil); whole.Take(t.Context(), poolSize, 0) != nil {
		t.Error("its memory is still taken")
	}
}

func TestAMessageThatIsTooLongTakesNoMemory(t *testing.T) {
	pool := mempool.New(poolSize)
	read, _ := accepted(t, New(pool, "acme"))
	if err := read(stream(1, pluginprotocol.MaxMessage+1, []byte("x"))); err != nil {
		t.Fatalf("its connection ends, and not only its call: %v", err)
	}
	if whole := pool.Claim("whole", nil); whole.Take(t.Context(), poolSize, 0) != nil {
		t.Error("it has taken memory")
	}
}
