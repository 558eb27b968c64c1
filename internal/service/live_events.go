package service

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// clientStream begins the names of the streams of a client's events: each batch is a stream of its own, with one part,
// because batches arrive in any order. The rest of the name is the first sequence number of the batch.
const clientStream = "client-"

// clientPage is how many bytes of a client's batches EventsAfter reads before it returns.
const clientPage = 4 << 20

// mostRanges limits the ranges of a position. A client leaves a hole only if a batch never arrives.
const mostRanges = 100

// WriteEvents stores events of a client.
func (s *Service) WriteEvents(
	ctx context.Context, l deployments.Leased, first int, events []apitype.EngineEvent,
) error {
	if err := s.leaseHasEnded(ctx, l.Update); err != nil {
		return err
	}
	batch := make([]deployments.WatchEvent, len(events))
	for i := range events {
		batch[i].Event = &events[i]
		if summary := events[i].SummaryEvent; summary != nil {
			changes := make(map[string]int, len(summary.ResourceChanges))
			for op, n := range summary.ResourceChanges {
				changes[string(op)] = n
			}
			if err := s.PutLeaseChanges(ctx, l.Update, changes); err != nil {
				return err
			}
		}
	}
	data, err := eventlog.Encode(batch)
	if err != nil {
		return err
	}
	return s.AppendEvents(ctx, statestore.Part{Update: l.Update, Stream: fmt.Sprintf("%s%08d", clientStream, first),
		Number: 1}, data)
}

// EventsAfter implements deployments.LeasedState.
func (s *Service) EventsAfter(
	ctx context.Context, u deployments.UpdateName, after deployments.EventPosition,
) ([]apitype.EngineEvent, deployments.EventPosition, error) {
	r := eventReader{Service: s, update: u, at: deployments.EventPosition{Parts: map[string]int{},
		Ranges: slices.Clone(after.Ranges)}}
	streams, err := s.Streams(ctx, u)
	if err != nil {
		return nil, after, err
	}
	for _, stream := range streams {
		if first, ok := firstOf(stream); ok {
			err = r.readBatch(ctx, stream, first)
		} else {
			err = r.readParts(ctx, stream, after.Parts[stream])
		}
		if err != nil {
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
	update deployments.UpdateName
	at     deployments.EventPosition
	events []apitype.EngineEvent
	bytes  int // of batches
}

// readParts reads the next parts of a stream, of which some were read.
func (r *eventReader) readParts(ctx context.Context, stream string, read int) error {
	parts, err := r.ReadEvents(ctx, statestore.Part{Update: r.update, Stream: stream, Number: read + 1}, partsAtOnce)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := r.add(part); err != nil {
			return err
		}
	}
	if read += len(parts); read > 0 {
		r.at.Parts[stream] = read
	}
	return nil
}

// readBatch reads the batch of a client that begins with a sequence number, unless it was read, or enough was.
func (r *eventReader) readBatch(ctx context.Context, stream string, first int) error {
	wasRead := slices.ContainsFunc(r.at.Ranges, func(of [2]int) bool { return of[0] <= first && first <= of[1] })
	if wasRead || r.bytes >= clientPage {
		return nil
	}
	parts, err := r.ReadEvents(ctx, statestore.Part{Update: r.update, Stream: stream, Number: 1}, 1)
	if err != nil || len(parts) == 0 {
		return err
	}
	r.bytes += len(parts[0])
	last := first
	batch, err := r.add(parts[0])
	for _, e := range batch {
		last = max(last, e.Sequence)
	}
	r.at.Ranges = withRange(r.at.Ranges, [2]int{first, last})
	return err
}

// add adds the events of a part, and returns them.
func (r *eventReader) add(part []byte) ([]apitype.EngineEvent, error) {
	decoded, err := eventlog.Decode(part)
	if err != nil {
		return nil, err
	}
	from := len(r.events)
	for _, e := range decoded {
		if e.Event != nil {
			r.events = append(r.events, *e.Event)
		}
	}
	return r.events[from:], nil
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

// firstOf returns the first sequence number of a client's batch; ok is false for a stream of the service.
func firstOf(stream string) (first int, ok bool) {
	digits, ok := strings.CutPrefix(stream, clientStream)
	if !ok {
		return 0, false
	}
	first, err := strconv.Atoi(digits)
	return first, err == nil
}
