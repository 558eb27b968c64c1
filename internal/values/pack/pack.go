// Package pack works on a text that is in parts, because as a whole it would be in memory once more.
package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/deployctl/deployctl/internal/sys/heap"
	"github.com/klauspost/compress/zstd"
)

// Large is the size from which a text is not made one of its parts only to be compressed.
const Large = 4 << 20

// window is how far back the compression of a large text looks. The encoder keeps twice as much.
const window = 1 << 20

// Size returns the length of a text in parts.
func Size(parts [][]byte) (size int) {
	for _, part := range parts {
		size += len(part)
	}
	return size
}

// Digest returns the SHA-256 of a text in parts, in hexadecimal digits.
func Digest(parts [][]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		_, _ = hash.Write(part) // never fails
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Zstd returns a text in parts as one frame of zstd, which says its size, behind room for so many bytes and before
// spare capacity for so many. Beside the parts there are never more than one and a half times the text in memory, and
// of one that compresses well no more than twice what is returned.
func Zstd(parts [][]byte, level zstd.EncoderLevel, room, spare int) []byte {
	size := Size(parts)
	out := &packed{room: room, spare: spare, size: size}
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window)) // fails for options that are wrong, as what follows does for a writer that fails
	encoder.ResetContentSize(out, int64(size))
	for _, part := range parts {
		_, _ = encoder.Write(part)
	}
	_ = encoder.Close()
	if out.whole == nil {
		out.join(out.length)
	}
	return out.whole
}

// pieceSize is the size of a piece of what is written.
const pieceSize = 256 << 10

// packed is what becomes of a text. It is in pieces, so that it is never there twice, as in a buffer that grows, until
// it is as long as half the text: what is left becomes hardly shorter, and has a buffer that the text would fit into.
type packed struct {
	room, spare, size int
	pieces            [][]byte
	length            int // of all pieces
	whole             []byte
}

// Write implements io.Writer.
func (p *packed) Write(data []byte) (int, error) {
	if p.whole != nil {
		p.whole = append(p.whole, data...)
		return len(data), nil
	}
	n := len(data)
	for len(data) > 0 {
		last := len(p.pieces) - 1
		if last < 0 || len(p.pieces[last]) == cap(p.pieces[last]) {
			p.pieces = append(p.pieces, make([]byte, 0, pieceSize))
			last++
		}
		piece := p.pieces[last]
		fits := min(len(data), cap(piece)-len(piece))
		p.pieces[last], data = append(piece, data[:fits]...), data[fits:]
	}
	if p.length += n; p.size >= Large && p.length > p.size/2 {
		p.join(p.size + p.size/blocksOf + frame)
	}
	return n, nil
}

// What a text may become longer by: a frame, and a few bytes of each of its blocks, which are larger than blocksOf.
const (
	frame    = 64
	blocksOf = 4 << 10
)

// join makes the pieces one text, with capacity for one of a size.
func (p *packed) join(size int) {
	heap.Room(int64(size))
	p.whole = make([]byte, p.room, p.room+size+p.spare)
	for _, piece := range p.pieces {
		p.whole = append(p.whole, piece...)
	}
	p.pieces = nil
}

// Whole returns the text of its parts.
func Whole(parts [][]byte) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	return bytes.Join(parts, nil)
}
