package grpcapi

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// bytesCodec sends bytes as they are, and takes any answer.
type bytesCodec struct{}

func (bytesCodec) Name() string                  { return "proto" }
func (bytesCodec) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = data
	return nil
}

// throw sends bytes to a method as its messages, and gives the code of the answer.
func throw(ctx context.Context, c *grpc.ClientConn, full string, messages ...[]byte) codes.Code {
	ctx, cancel := context.WithCancel(as(ctx, "local"))
	defer cancel()
	stream, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, full,
		grpc.ForceCodec(bytesCodec{}))
	if err != nil {
		return status.Code(err)
	}
	for _, m := range messages {
		if stream.SendMsg(&m) != nil {
			break // the answer says why
		}
	}
	_ = stream.CloseSend()
	for {
		var answer []byte
		if err := stream.RecvMsg(&answer); err != nil {
			if ctx.Err() != nil {
				return codes.DeadlineExceeded
			}
			if text := err.Error(); strings.Contains(text, "grpc: failed to unmarshal") ||
				strings.Contains(text, "cardinality violation") {
				return codes.InvalidArgument // what gRPC itself says of what is no message, or not one
			}
			return status.Code(err) // io.EOF is Unknown: that is how a good call ends
		}
	}
}

// methods are those of the API that need a token, sorted.
func methods() []string {
	var list []string
	for full, r := range rules {
		if r.scope != open {
			list = append(list, full)
		}
	}
	slices.Sort(list)
	return list
}

var nasty = []string{
	"", ".", "..", "../../x", "a/b", "a\x00b", "\x1b]0;PWNED\a", "\u202e", strings.Repeat("a", 5000), "organization",
	"shop", "dev", "1", "p-1", "-1",
	"99999999999999999999", "%s%n", "sha256:", "urn:pulumi:", "my:Comp", "a:b", "drift", "up", "0 0 31 2 *",
	"CRON_TZ=x *", "{}", "🦊",
}

// scramble fills a message with values that nobody means.
func scramble(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if r.IntN(4) == 0 || depth > 4 {
			continue
		}
		value := func(f protoreflect.FieldDescriptor, fresh func() protoreflect.Value) protoreflect.Value {
			switch f.Kind() {
			case protoreflect.MessageKind:
				v := fresh()
				scramble(r, v.Message(), depth+1)
				return v
			case protoreflect.StringKind:
				return protoreflect.ValueOfString(nasty[r.IntN(len(nasty))])
			case protoreflect.BytesKind:
				return protoreflect.ValueOfBytes([]byte(nasty[r.IntN(len(nasty))]))
			case protoreflect.BoolKind:
				return protoreflect.ValueOfBool(r.IntN(2) == 0)
			case protoreflect.Int32Kind:
				return protoreflect.ValueOfInt32(int32(r.Uint32()))
			case protoreflect.Int64Kind:
				return protoreflect.ValueOfInt64(int64(r.Uint64()))
			case protoreflect.Uint32Kind:
				return protoreflect.ValueOfUint32(r.Uint32())
			}
			return f.Default()
		}
		switch {
		case f.IsMap():
			for range r.IntN(3) {
				entries := m.Mutable(f).Map()
				entries.Set(value(f.MapKey(), nil).MapKey(), value(f.MapValue(), entries.NewValue))
			}
		case f.IsList():
			for range r.IntN(3) {
				list := m.Mutable(f).List()
				list.Append(value(f, list.NewElement))
			}
		default:
			m.Set(f, value(f, func() protoreflect.Value { return m.NewField(f) }))
		}
	}
}

// malformed makes what a hostile client sends to a method: values that nobody means, bytes that are flipped, cut and
// repeated, and bytes that are nothing at all.
func malformed(t testing.TB, r *rand.Rand, full string) [][]byte {
	m := messageOf(t, full)
	scramble(r, m.ProtoReflect(), 0)
	data, err := proto.Marshal(m)
	if err != nil {
		data = []byte(err.Error()) // a text that is not UTF-8
	}
	switch r.IntN(6) {
	case 0:
		for range 1 + r.IntN(4) {
			if len(data) > 0 {
				data[r.IntN(len(data))] ^= byte(1 + r.IntN(255))
			}
		}
	case 1:
		data = data[:r.IntN(len(data)+1)]
	case 2:
		data = slices.Concat(data, data)
	case 3:
		data = binary.LittleEndian.AppendUint64(data, r.Uint64())
	case 4: // a field that says it is longer than the message
		data = protowire.AppendVarint(protowire.AppendTag(data, protowire.Number(1+r.IntN(6)), protowire.BytesType),
			r.Uint64())
	}
	return slices.Repeat([][]byte{data}, r.IntN(3))
}

// alive checks that the service still knows what it knew.
func alive(t testing.TB, c *grpc.ClientConn) {
	t.Helper()
	got, err := api.NewStacksClient(c).GetStack(as(t.Context(), "local"),
		&api.GetStackRequest{Stack: wire.FromStack(keep)})
	if err != nil || wire.ToStack(got.GetStack().GetStack()) != keep {
		t.Fatalf("the stack is %v, %v", got, err)
	}
}

// keep is a stack that no malformed call means.
var keep = deployments.StackName{Organization: "acme", Project: "precious", Stack: "prod"}

// calls is how many malformed calls the tests make; the fuzz target makes any number.
const calls = 20_000

func TestMalformedCallsEndNothingHangNothingAndLoseNothing(t *testing.T) {
	service := memory.New()
	if err := service.CreateStack(t.Context(), keep, nil); err != nil {
		t.Fatal(err)
	}
	connection := serving(t, Config{Service: service, Authority: &unpaced{}}, nil)
	ctx, all, workers := waittest.Context(t), methods(), 8
	var done sync.WaitGroup
	var mu sync.Mutex
	seen := map[codes.Code]int{}
	for worker := range workers {
		done.Go(func() {
			r := rand.New(rand.NewPCG(15, uint64(worker)))
			for range calls / workers {
				full := all[r.IntN(len(all))]
				code := throw(ctx, connection, full, malformed(t, r, full)...)
				mu.Lock()
				seen[code]++
				mu.Unlock()
				if code == codes.DeadlineExceeded || code == codes.Unavailable || code == codes.Internal {
					t.Errorf("%s: %s", full, code)
					return
				}
			}
		})
	}
	done.Wait()
	t.Log(seen)
	if seen[codes.InvalidArgument] < calls/4 {
		t.Errorf("hardly anything is refused as invalid: %v", seen)
	}
	alive(t, connection)
}

// unpaced gives every call a token of its own, so that none is too often called with.
type unpaced struct{ calls atomic.Int64 }

func (u *unpaced) Authenticate(context.Context, string) (deployments.Caller, error) {
	return deployments.Caller{Token: strconv.FormatInt(u.calls.Add(1), 36), Authority: deployments.Everything(),
		Trusted: true}, nil
}

func FuzzCalls(f *testing.F) {
	service := memory.New()
	if err := service.CreateStack(f.Context(), keep, nil); err != nil {
		f.Fatal(err)
	}
	connection := serving(f, Config{Service: service, Authority: OneToken("local", nil)}, nil)
	all := methods()
	for i, full := range all {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		for _, m := range malformed(f, r, full) {
			f.Add(uint8(i), m)
		}
		f.Add(uint8(i), []byte{})
	}
	f.Fuzz(func(t *testing.T, method uint8, message []byte) {
		full := all[int(method)%len(all)]
		if code := throw(waittest.Context(t), connection, full, message); code == codes.DeadlineExceeded ||
			code == codes.Unavailable || code == codes.Internal {
			t.Errorf("%s: %s", full, code)
		}
		alive(t, connection)
	})
}
