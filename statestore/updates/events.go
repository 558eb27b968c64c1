package updates

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// ClientStream is the stream of a client's events in an event log. Its objects begin with a line of JSON: see CutLine.
const ClientStream = "client"

// EventsFolder is the folder of an update's event log.
const EventsFolder = "events"

// LogLine is the first line of an object of what a client writes: how much the client has written up to there.
type LogLine struct {
	LogSize
	End bool `json:"end,omitempty"`
}

// LogSize is how much a log of a client has: items, bytes of them as JSON, and references of the resources in them (see
// journal.References).
type LogSize struct {
	Items      int   `json:"items"`
	Bytes      int64 `json:"bytes"`
	References int   `json:"references,omitempty"`
}

// Over reports whether a log has more than that.
func (s LogSize) Over(most LogSize) bool {
	return s.Items > most.Items || s.Bytes > most.Bytes || s.References > most.References
}

// CutLine returns the first line of an object that a client has written, and what follows it.
func CutLine(key string, plain []byte) (line LogLine, array []byte, err error) {
	first, array, _ := bytes.Cut(plain, []byte("\n"))
	if err := json.Unmarshal(first, &line); err != nil {
		return line, nil, bucket.Damaged(key, err)
	}
	return line, array, nil
}

// Part names one part of an update's event log. A log has streams with one writer each; the parts of a stream are
// numbered from 1, so that writers need no coordination and a repeated write has no effect.
type Part struct {
	Update deployments.UpdateName
	Stream string // "run", "output-UUID" or ClientStream
	Number int
}

// AppendEvents writes one part of an event log. An existing part of that number is replaced.
func (s *Store) AppendEvents(ctx context.Context, p Part, data []byte) error {
	return s.stacks.Put(ctx, p.Update.StackName, eventsKey(p), data)
}

// readBytes ends a read of several parts once it has so many bytes.
const readBytes = 4 << 20

// ReadEvents returns the parts of a stream from p on, up to the first missing one, or until max or a few MiB are read.
func (s *Store) ReadEvents(ctx context.Context, p Part, max int) ([][]byte, error) {
	var parts [][]byte
	for bytes := 0; len(parts) < max && bytes < readBytes; p.Number++ {
		data, err := s.readEvents(ctx, p)
		if errors.Is(err, bucket.ErrAbsent) {
			break
		}
		if err != nil {
			return parts, err
		}
		parts, bytes = append(parts, data), bytes+len(data)
	}
	return parts, nil
}

func (s *Store) readEvents(ctx context.Context, p Part) ([]byte, error) {
	key := eventsKey(p)
	data, _, err := s.stacks.Get(ctx, p.Update.StackName, key)
	if err == nil && p.Stream == ClientStream {
		_, data, err = CutLine(key, data)
	}
	return data, err
}

// Streams returns the names of an event log's streams, sorted.
func (s *Store) Streams(ctx context.Context, u deployments.UpdateName) ([]string, error) {
	prefix := stackobjects.UpdateKey(u, EventsFolder, "")
	l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: prefix, Fold: true})
	names := make([]string, len(l.Keys))
	for i, key := range l.Keys {
		names[i] = key[len(prefix) : len(key)-1]
	}
	return names, bucket.Failed(err, "list "+prefix)
}

func eventsKey(p Part) string {
	return stackobjects.UpdateKey(p.Update, EventsFolder, p.Stream, fmt.Sprintf("%08d", p.Number))
}

// EventParts returns the number of parts of each stream of an event log, up to the first missing one. Streams are
// listed one after the other, so parts that are written meanwhile may be counted in some streams only.
func (s *Store) EventParts(ctx context.Context, u deployments.UpdateName) (map[string]int, error) {
	prefix := stackobjects.UpdateKey(u, EventsFolder, "")
	l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: prefix})
	if err != nil {
		return nil, bucket.Failed(err, "list "+prefix)
	}
	parts := map[string]int{}
	for _, key := range l.Keys {
		stream, number, _ := strings.Cut(key[len(prefix):], "/")
		if n, err := strconv.Atoi(number); err == nil && n == parts[stream]+1 {
			parts[stream] = n
		}
	}
	return parts, nil
}
