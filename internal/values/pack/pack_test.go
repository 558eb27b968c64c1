package pack

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestATextInPartsIsPackedAsItsWhole(t *testing.T) {
	random := make([]byte, Large+1)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random) // never fails
	for name, parts := range map[string][][]byte{
		"nothing": nil, "one": {[]byte("text")}, "empty ones": {nil, []byte("a"), nil, []byte("b"), nil},
		"what has no pattern":  {random[:7], random[7:]},
		"little of it":         {random[:3*pieceSize+1]},
		"a part has a pattern": {random[:Large*3/4], bytes.Repeat([]byte("line\n"), Large/20)},
		"many":                 bytes.SplitAfter(bytes.Repeat([]byte("line\n"), 100_000), []byte("\n")),
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

// TestATextThatDoesNotBecomeShorterHasABufferOfItsSize has others have one of what they become.
func TestATextThatDoesNotBecomeShorterHasABufferOfItsSize(t *testing.T) {
	random := make([]byte, 2*Large)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random) // never fails
	if packed := Zstd([][]byte{random}, zstd.SpeedFastest, 5, 9); cap(packed) > len(random)+len(random)/1000 {
		t.Errorf("%d bytes are packed into %d of %d", len(random), len(packed), cap(packed))
	}
	if packed := Zstd([][]byte{bytes.Repeat([]byte("line\n"), Large)}, zstd.SpeedFastest, 5, 9); cap(packed) >
		len(packed)+pieceSize {
		t.Errorf("what becomes %d bytes has %d", len(packed), cap(packed))
	}
}

// TestNobodyKeepsALargeTextThatWasUnpacked has more of them unpacked than there are processors.
func TestNobodyKeepsALargeTextThatWasUnpacked(t *testing.T) {
	decoder := NewDecoder(1 << 30)
	kept := func(unpack func()) int64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		unpack()
		runtime.GC()
		runtime.ReadMemStats(&after)
		return int64(after.HeapAlloc) - int64(before.HeapAlloc)
	}
	line := []byte("line\n")
	for _, size := range []int{10, 1000, Large - 5, 8 * Large} {
		text := bytes.Repeat(line, size/len(line))
		packed := Zstd([][]byte{text}, zstd.SpeedFastest, 0, 0)
		if left := kept(func() {
			for range 2 * runtime.GOMAXPROCS(0) {
				if got, err := decoder.Decode(packed); err != nil || !bytes.Equal(got, text) {
					t.Fatalf("%d bytes become %d: %v", size, len(got), err)
				}
			}
		}); size > Large && left > Large {
			t.Errorf("%d MiB are kept of texts of %d", left>>20, size>>20)
		}
		runtime.KeepAlive(text)
	}
	if _, err := NewDecoder(Large).Decode(Zstd([][]byte{make([]byte, 2*Large)}, zstd.SpeedFastest, 0, 0)); err == nil {
		t.Error("a text is made that is larger than any may be")
	}
	if _, err := decoder.Decode([]byte("no frame")); err == nil {
		t.Error("a text is made of what is none")
	}
}
