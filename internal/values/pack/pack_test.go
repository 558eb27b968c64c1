package pack

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestATextInPartsIsPackedAsItsWhole(t *testing.T) {
	random := make([]byte, 3*pieceSize+1)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random) // never fails
	for name, parts := range map[string][][]byte{
		"nothing": nil, "one": {[]byte("text")}, "empty ones": {nil, []byte("a"), nil, []byte("b"), nil},
		"what has no pattern": {random[:7], random[7:]},
		"many":                bytes.SplitAfter(bytes.Repeat([]byte("line\n"), 100_000), []byte("\n")),
	} {
		t.Run(name, func(t *testing.T) {
			packed := Zstd(parts, zstd.SpeedDefault, 5, 9)
			if cap(packed)-len(packed) < 9 {
				t.Fatalf("%d bytes of %d", len(packed), cap(packed))
			}
			var frame zstd.Header
			size := uint64(Size(parts))
			// of less than 256 bytes it says no size
			if err := frame.Decode(packed[5:]); err != nil || size >= 256 && frame.FrameContentSize != size {
				t.Errorf("the frame says %+v: %v", frame, err)
			}
			reader, err := zstd.NewReader(nil)
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			whole, err := reader.DecodeAll(packed[5:], nil)
			if err != nil || !bytes.Equal(whole, Whole(parts)) {
				t.Errorf("%d bytes become %d: %v", Size(parts), len(whole), err)
			}
		})
	}
}
