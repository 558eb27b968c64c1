// Package pack works on a text that is in parts, because as a whole it would be in memory once more.
package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

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
// spare capacity for so many. Beside the parts only what it returns is in memory, and that twice for a moment.
func Zstd(parts [][]byte, level zstd.EncoderLevel, room, spare int) []byte {
	out := &pieces{}
	encoder, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window)) // fails for options that are wrong, as what follows does for a writer that fails
	encoder.ResetContentSize(out, int64(Size(parts)))
	for _, part := range parts {
		_, _ = encoder.Write(part)
	}
	_ = encoder.Close()
	whole := make([]byte, room, room+Size(out.list)+spare)
	for _, piece := range out.list {
		whole = append(whole, piece...)
	}
	return whole
}

// pieceSize is the size of a piece of what is written.
const pieceSize = 256 << 10

// pieces keeps what is written without ever having it twice, as a buffer that grows does.
type pieces struct{ list [][]byte }

// Write implements io.Writer.
func (p *pieces) Write(data []byte) (int, error) {
	n := len(data)
	for len(data) > 0 {
		last := len(p.list) - 1
		if last < 0 || len(p.list[last]) == cap(p.list[last]) {
			p.list = append(p.list, make([]byte, 0, pieceSize))
			last++
		}
		piece := p.list[last]
		fits := min(len(data), cap(piece)-len(piece))
		p.list[last], data = append(piece, data[:fits]...), data[fits:]
	}
	return n, nil
}

// Whole returns the text of its parts.
func Whole(parts [][]byte) []byte {
	if len(parts) == 1 {
		return parts[0]
	}
	return bytes.Join(parts, nil)
}
