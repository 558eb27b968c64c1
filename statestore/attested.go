package statestore

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/pack"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/klauspost/compress/zstd"
)

// A checkpoint is readable, and ends with a skippable frame of zstd, which every reader of that format passes over. The
// frame has a MAC over the stack's identity, the version and the SHA-256 of all before it, so a checkpoint that the
// service did not write is neither believed, whether the head has its digest or not, nor even unpacked (docs/adr/0017).

// purposeCheckpoints is the purpose of the key that authenticates checkpoints.
const purposeCheckpoints = "checkpoints"

// skippable begins a skippable frame of zstd; the length of its content follows.
const skippable uint32 = 0x184D2A5D

// macLength is the length of a MAC; frameLength that of the frame with it.
const macLength, frameLength = 32, 8 + macLength

// checkpointMAC returns the MAC of a checkpoint that is packed in these bytes.
func (s *Store) checkpointMAC(id string, version int, frames []byte) []byte {
	return s.keys.Box(purposeCheckpoints).Digest(fmt.Appendf(nil, "%s\x00%d\x00%s", id, version, sha256Hex(frames)))
}

// packed returns a checkpoint, whose text is in parts, as it is stored: compressed, and with its MAC.
func (s *Store) packed(id string, version int, parts ...[]byte) []byte {
	out := compressed(parts)
	mac := s.checkpointMAC(id, version, out)
	out = binary.LittleEndian.AppendUint32(out, skippable)
	out = binary.LittleEndian.AppendUint32(out, macLength)
	return append(out, mac...)
}

// compressed returns a text with room for the frame of a MAC behind it.
func compressed(parts [][]byte) []byte {
	size := pack.Size(parts)
	if size >= pack.Large {
		return pack.Zstd(parts, zstd.SpeedDefault, 0, frameLength)
	}
	out := zstdWriter.EncodeAll(pack.Whole(parts), make([]byte, 0, size/4+frameLength))
	if 2*(len(out)+frameLength) < cap(out) { // it is kept, and its buffer is mostly empty
		out = append(make([]byte, 0, len(out)+frameLength), out...)
	}
	return out
}

// storedCheckpoint is the content of a checkpoint, whoever has written it.
type storedCheckpoint struct {
	frames []byte // without the one of the MAC
	mac    []byte // nil when it has none
	tag    string
}

// readCheckpoint reads what is stored as a checkpoint; ErrAbsent when there is none.
func (s *Store) readCheckpoint(ctx context.Context, key string) (c storedCheckpoint, err error) {
	o, err := s.recent.get(ctx, s.objects, key)
	if err != nil {
		return c, bucket.Failed(err, "read "+key)
	}
	return checkpointIn(o), nil
}

// checkpointIn returns what is stored as a checkpoint.
func checkpointIn(o bucket.Object) storedCheckpoint {
	c := storedCheckpoint{frames: o.Data, tag: o.Tag}
	if at := len(o.Data) - frameLength; at >= 0 && binary.LittleEndian.Uint32(o.Data[at:]) == skippable &&
		binary.LittleEndian.Uint32(o.Data[at+4:]) == macLength {
		c.frames, c.mac = o.Data[:at], o.Data[at+8:]
	}
	return c
}

// unpack returns the JSON of a checkpoint that the service has written, or that somebody vouches for.
func (c storedCheckpoint) unpack(ctx context.Context, key string) ([]byte, error) {
	if !bytes.HasPrefix(c.frames, zstdMagic) {
		return c.frames, nil
	}
	if err := mempool.Take(ctx, checkpointTimes*unpackedSize(c.frames)); err != nil {
		return nil, err
	}
	data, err := zstdReader.Decode(c.frames)
	if err != nil {
		return nil, unusable(key, err)
	}
	return data, nil
}

// TakeCheckpoint takes from the claim of a context (see mempool) what the checkpoint of a version takes while an update
// has it.
func (s *Store) TakeCheckpoint(ctx context.Context, name deployments.StackName, version int) error {
	if version == 0 {
		return nil
	}
	key := checkpointKey(name, version)
	c, err := s.readCheckpoint(ctx, key)
	if errors.Is(err, bucket.ErrAbsent) {
		return s.missing(ctx, name, version)
	}
	if err != nil {
		return err
	}
	return mempool.Take(ctx, checkpointTimes*max(unpackedSize(c.frames), int64(len(c.frames))))
}

// checkpointTimes is how much memory a checkpoint takes while it is read and answered, or becomes the next one, in
// times its size.
const checkpointTimes = 4

// unpackedSize returns the size of a checkpoint as its frame says it; that of one which the service has written does.
func unpackedSize(data []byte) int64 {
	var frame zstd.Header
	if frame.Decode(data) != nil || !frame.HasFCS {
		return 0
	}
	return int64(min(frame.FrameContentSize, math.MaxInt32))
}

// checkpointJSON returns the deployment JSON of a version. CodeNotFound: there is no such version. CodeFormat: this
// service has not written it, or it cannot be read.
func (s *Store) checkpointJSON(ctx context.Context, name deployments.StackName, version int) ([]byte, error) {
	key := checkpointKey(name, version)
	c, err := s.readCheckpoint(ctx, key)
	if errors.Is(err, bucket.ErrAbsent) {
		return nil, s.missing(ctx, name, version)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	known := s.names[name.String()]
	s.mu.Unlock()
	if version <= known.version && s.attested(known.id, version, c) {
		data, err := c.unpack(ctx, key)
		if err != nil || version < known.version || sha256Hex(data) == known.digest {
			return data, err
		}
	}
	h, err := s.Head(ctx, name) // what is known may be outdated
	if err != nil {
		return nil, err
	}
	if s.attested(h.ID, version, c) || c.mac == nil && !s.Keys.Authenticated() {
		data, err := c.unpack(ctx, key)
		if err != nil || version != h.Version || h.MAC == "" || sha256Hex(data) == h.Digest {
			return data, err
		}
	}
	return nil, unusable(key, fmt.Errorf("it was not written by this service, which `deployctl key adopt %s` accepts of "+
		"the newest version", name))
}

// attested reports whether a checkpoint has its MAC.
func (s *Store) attested(id string, version int, c storedCheckpoint) bool {
	return hmac.Equal(c.mac, s.checkpointMAC(id, version, c.frames))
}

// adoptCheckpoint gives a checkpoint the MAC of this service, whoever has written it, and describes it; ErrAbsent when
// there is none.
func (s *Store) adoptCheckpoint(
	ctx context.Context, name deployments.StackName, id string, version int,
) (Written, error) {
	key := checkpointKey(name, version)
	for {
		c, err := s.readCheckpoint(ctx, key)
		if err != nil {
			return Written{}, err
		}
		data, err := c.unpack(ctx, key)
		if err != nil {
			return Written{}, err
		}
		if s.attested(id, version, c) {
			return writtenOf(version, data), nil
		}
		_, err = s.objects.Put(ctx, key, s.packed(id, version, data), bucket.Condition{Tag: c.tag})
		if !errors.Is(err, bucket.ErrChanged) {
			return writtenOf(version, data), bucket.Failed(err, "write "+key)
		}
	}
}
