package service

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// pageBytes is how many bytes of a log EventsAfter reads before it returns, and pageMemory what they become in memory.
	pageBytes, pageMemory = 4 << 20, 64 << 20
	// mostRanges limits the ranges of a position. A client leaves a hole only if a batch never arrives.
	mostRanges = 100
)

// EventsAfter implements deployments.LeasedState.
func (s *Service) EventsAfter(
	ctx context.Context, u deployments.UpdateName, after deployments.EventPosition,
) ([]apitype.EngineEvent, deployments.EventPosition, error) {
	r := eventReader{Service: s, update: u, at: deployments.EventPosition{Parts: map[string]int{},
		Ranges: slices.Clone(after.Ranges)}}
	streams, err := s.Updates.Streams(ctx, u)
	if err != nil {
		return nil, after, err
	}
	for _, stream := range streams {
		if err := r.readParts(ctx, stream, after.Parts[stream]); err != nil {
			return nil, after, err
		}
	}
	order := func(a, b apitype.EngineEvent) int { return a.Timestamp - b.Timestamp }
	if len(r.at.Ranges) > 0 {
		order = func(a, b apitype.EngineEvent) int { return a.Sequence - b.Sequence }
	}
	slices.SortStableFunc(r.events, order)
	return r.events, r.at, nil
}

// eventReader reads what follows a position in the log of an update.
type eventReader struct {
	*Service
	update        deployments.UpdateName
	at            deployments.EventPosition
	events        []apitype.EngineEvent
	bytes, memory int64 // that were read
}

// full reports whether enough was read for one answer.
func (r *eventReader) full() bool { return r.bytes >= pageBytes || r.memory >= pageMemory }

// readParts reads the next parts of a stream, of which some were read, until the answer is full.
func (r *eventReader) readParts(ctx context.Context, stream string, read int) error {
	for more := true; more && !r.full(); {
		parts, err := r.Updates.ReadEvents(ctx, updates.Part{Update: r.update, Stream: stream, Number: read + 1}, partsAtOnce)
		if err != nil {
			return err
		}
		more = len(parts) == partsAtOnce
		for _, part := range parts {
			if r.full() {
				break
			}
			if err := r.add(ctx, stream, part); err != nil {
				return err
			}
			read++
		}
	}
	if read > 0 {
		r.at.Parts[stream] = read
	}
	return nil
}

// add adds the events of a part; those of a client that were read before are there because it has repeated a call.
func (r *eventReader) add(ctx context.Context, stream string, part []byte) error {
	cost := rawjson.Cost(part)
	if err := mempool.Take(ctx, cost); err != nil {
		return err
	}
	r.bytes, r.memory = r.bytes+int64(len(part)), r.memory+cost
	return eventlog.Each(part, func(e deployments.WatchEvent) error {
		if e.Event == nil || stream == updates.ClientStream && !addNumber(&r.at.Ranges, e.Event.Sequence) {
			return nil
		}
		r.events = append(r.events, *e.Event)
		return nil
	})
}

// addNumber adds a sequence number to the ranges of those that were read; false: it is there.
func addNumber(ranges *[][2]int, n int) bool {
	if slices.ContainsFunc(*ranges, func(of [2]int) bool { return of[0] <= n && n <= of[1] }) {
		return false
	}
	*ranges = withRange(*ranges, [2]int{n, n})
	return true
}

// withRange adds a range to sorted ones, and joins those that touch. When there are too many, the first hole counts as
// read: what is missing there has been lost.
func withRange(ranges [][2]int, add [2]int) [][2]int {
	ranges = append(ranges, add)
	slices.SortFunc(ranges, func(a, b [2]int) int { return a[0] - b[0] })
	joined := ranges[:1]
	for _, next := range ranges[1:] {
		if last := &joined[len(joined)-1]; next[0] <= last[1]+1 {
			last[1] = max(last[1], next[1])
		} else {
			joined = append(joined, next)
		}
	}
	if len(joined) > mostRanges {
		joined[1][0] = joined[0][0]
		joined = joined[1:]
	}
	return joined
}
