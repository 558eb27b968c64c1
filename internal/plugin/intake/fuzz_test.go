package intake

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
)

// FuzzFrames follows what another side sends, in pieces of any size: what it finds does not depend on them, and each
// message that is whole was announced before.
func FuzzFrames(f *testing.F) {
	f.Add(stream(1, 3, []byte("abc")), uint8(1))
	f.Add(append(stream(1, 1<<20, []byte("x")), frame(frameReset, 0, 1, make([]byte, 4))...), uint8(7))
	f.Add(append(stream(1, 0, nil), stream(3, 2, []byte("ab"))...), uint8(64))
	f.Fuzz(func(t *testing.T, sent []byte, piece uint8) {
		whole, inPieces := follow(t, sent, len(sent)), follow(t, sent, int(piece)+1)
		if whole != inPieces {
			t.Errorf("as a whole %+v, in pieces of %d %+v", whole, piece, inPieces)
		}
	})
}

// followed is what was found in frames.
type followed struct {
	announced, arrived, reset int
	bytes                     int64
	failed                    bool
}

func follow(t *testing.T, sent []byte, piece int) (found followed) {
	t.Helper()
	open := map[uint32]int{}
	frames := frames{
		message: func(stream uint32, _, length int64) error {
			open[stream]++
			found.announced, found.bytes = found.announced+1, found.bytes+length
			return nil
		},
		arrived: func(stream uint32) {
			if open[stream]--; open[stream] < 0 {
				t.Errorf("a message of stream %d is whole that was not announced", stream)
			}
			found.arrived++
		},
		ended: func(stream uint32) { found.reset++; delete(open, stream) },
	}
	for len(sent) > 0 && !found.failed {
		n := min(piece, len(sent))
		found.failed = frames.scan(sent[:n]) != nil
		sent = sent[n:]
	}
	return found
}

func TestACompressedMessageIsAsLongAsAMessageCanBe(t *testing.T) {
	head := binary.BigEndian.AppendUint32([]byte{1}, 10)
	if got := follow(t, frame(frameData, 0, 1, head), 1); got.bytes != pluginprotocol.MaxMessage {
		t.Errorf("it counts as %d bytes", got.bytes)
	}
}

// FuzzValues decodes what a program or a plugin sends: it is refused for its values alone, and never for few.
func FuzzValues(f *testing.F) {
	f.Add([]byte{10, 2, 8, 0}, uint16(1))
	f.Add([]byte{10, 4, 10, 2, 8, 0}, uint16(60_000))
	f.Add([]byte{8, 1, 26, 0xff, 0xff, 3}, uint16(30_000))
	f.Fuzz(func(t *testing.T, part []byte, times uint16) {
		data := bytes.Repeat(part[:min(len(part), 64)], int(times))
		one, two := &structpb.ListValue{}, &structpb.ListValue{}
		got, want := Unmarshal(data, one), proto.Unmarshal(data, two)
		switch {
		case errors.Is(got, errValues):
			if len(data) < 2*mostValues {
				t.Errorf("%d bytes have too many values", len(data))
			}
		case (got == nil) != (want == nil) || !proto.Equal(one, two):
			t.Errorf("%v, and without a bound %v", got, want)
		}
	})
}

// A side sends the beginnings of messages on streams that it has not opened, which gRPC ignores.
func TestBeginningsOfMessagesAreBounded(t *testing.T) {
	f := frames{message: func(uint32, int64, int64) error { return nil }, arrived: func(uint32) {}, ended: func(uint32) {}}
	var err error
	for stream := uint32(1); err == nil && stream < 4*mostPartial; stream += 2 {
		frame := binary.BigEndian.AppendUint32([]byte{0, 0, 1, frameData, 0}, stream)
		err = f.scan(append(frame, 0))
	}
	if !errors.Is(err, errPartial) || len(f.partial) > mostPartial {
		t.Errorf("%d are remembered: %v", len(f.partial), err)
	}
}
