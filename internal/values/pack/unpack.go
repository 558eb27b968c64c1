package pack

import "github.com/klauspost/compress/zstd"

// Decoder makes texts of frames of zstd. It may be used concurrently.
//
// A decoder of package zstd has as many parts as the process has processors, and each keeps the last text that it has
// made until it makes another one. So large texts are made by decoders of their own, which nobody keeps.
type Decoder struct {
	shared *zstd.Decoder
	most   uint64
}

// unsized is the length from which frames that do not say the size of their text may be those of a large one.
const unsized = 512

// NewDecoder returns a Decoder of texts that have at most so many bytes.
func NewDecoder(most uint64) *Decoder {
	shared, _ := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(most), zstd.WithDecoderConcurrency(0)) // see Zstd
	return &Decoder{shared, most}
}

// Decode returns the text of frames.
func (d *Decoder) Decode(frames []byte) ([]byte, error) {
	var frame zstd.Header
	if frame.Decode(frames) == nil && (frame.HasFCS && frame.FrameContentSize < Large ||
		!frame.HasFCS && len(frames) < unsized) {
		return d.shared.DecodeAll(frames, nil)
	}
	own, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(d.most), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer own.Close()
	return own.DecodeAll(frames, nil)
}
