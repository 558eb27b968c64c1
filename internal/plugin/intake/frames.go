package intake

import (
	"encoding/binary"
	"errors"

	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
)

// The parts of HTTP/2 (RFC 9113) and of gRPC that say where messages begin and end.
const (
	frameHead, messageHead = 9, 5

	frameData, frameHeaders, frameReset = 0, 1, 3
	flagEnd, flagPadded                 = 0x1, 0x8
)

var (
	errPadded  = errors.New("the other side pads its messages, as no gRPC library does")
	errPartial = errors.New("the other side has begun messages on too many streams at once")
)

// mostPartial bounds the streams of a connection on which a message has begun: a side may name streams that it has not
// opened, which gRPC ignores.
const mostPartial = 2 * pluginprotocol.MaxStreams

// frames follows the frames that one side of a connection sends. Its functions are called as they pass by; nil: what
// they tell is not looked for.
type frames struct {
	preface int // bytes before the first frame that are left

	message func(stream uint32, wire, cost int64) error // the length of a message has arrived, and nothing of it
	arrived func(stream uint32)                         // the message is whole
	ended   func(stream uint32)                         // see scan

	head   [frameHead]byte
	have   int // of head
	left   int // of the payload
	stream uint32

	partial map[uint32]*partial // by stream, between the parts of a message
}

// partial is a message of which something has arrived.
type partial struct {
	head [messageHead]byte
	have int // of head
	left int64
}

// scan follows what is sent. If messages are looked for, a stream ends when the other side resets it; otherwise also
// when this side sends nothing more on it.
func (f *frames) scan(p []byte) error {
	for len(p) > 0 {
		var n int
		switch {
		case f.preface > 0:
			n = min(f.preface, len(p))
			f.preface -= n
		case f.left > 0:
			n = min(f.left, len(p))
			f.left -= n
			if f.head[3] == frameData && f.message != nil {
				if err := f.data(p[:n]); err != nil {
					return err
				}
			}
		default:
			n = copy(f.head[f.have:], p)
			if f.have += n; f.have == frameHead {
				if err := f.begin(); err != nil {
					return err
				}
			}
		}
		p = p[n:]
	}
	return nil
}

// begin is called when the head of a frame is there.
func (f *frames) begin() error {
	f.have = 0
	f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	f.stream = binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31)
	kind, flags := f.head[3], f.head[4]
	closes := (kind == frameData || kind == frameHeaders) && flags&flagEnd != 0
	switch {
	case f.message != nil && kind == frameData && flags&flagPadded != 0:
		return errPadded
	case kind == frameReset, f.message == nil && closes:
		delete(f.partial, f.stream)
		f.ended(f.stream)
	}
	return nil
}

// data follows the messages of a stream.
func (f *frames) data(p []byte) error {
	m := f.partial[f.stream]
	if m == nil {
		if len(f.partial) >= mostPartial {
			return errPartial
		}
		m = &partial{}
		if f.partial == nil {
			f.partial = map[uint32]*partial{}
		}
		f.partial[f.stream] = m
	}
	for len(p) > 0 {
		var n int
		if m.have < messageHead {
			n = copy(m.head[m.have:], p)
			if m.have += n; m.have == messageHead {
				m.left = int64(binary.BigEndian.Uint32(m.head[1:]))
				if err := f.message(f.stream, m.left, cost(m.head[0], m.left)); err != nil {
					return err
				}
			}
		} else {
			n = int(min(m.left, int64(len(p))))
			m.left -= int64(n)
		}
		if m.have == messageHead && m.left == 0 {
			m.have = 0
			f.arrived(f.stream)
		}
		p = p[n:]
	}
	if m.have == 0 {
		delete(f.partial, f.stream)
	}
	return nil
}

// cost is the length of a message, uncompressed. A compressed one, which no SDK sends, counts as the longest.
func cost(compressed byte, length int64) int64 {
	if compressed != 0 {
		return pluginprotocol.MaxMessage
	}
	return length
}
