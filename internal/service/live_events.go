package service

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// EventsAfter returns the events of an update that the service executes, after a position: how many parts of each
// stream of its log were read. It also returns the position after them. The zero position is the beginning.
func (s *Service) EventsAfter(
	ctx context.Context, u deployments.UpdateName, after map[string]int,
) ([]apitype.EngineEvent, map[string]int, error) {
	streams, err := s.Streams(ctx, u)
	if err != nil {
		return nil, nil, err
	}
	at := make(map[string]int, len(streams))
	var events []apitype.EngineEvent
	for _, stream := range streams {
		at[stream] = after[stream]
		parts, err := s.ReadEvents(ctx, statestore.Part{Update: u, Stream: stream, Number: at[stream] + 1}, partsAtOnce)
		if err != nil {
			return nil, nil, err
		}
		for _, part := range parts {
			decoded, err := eventlog.Decode(part)
			if err != nil {
				return nil, nil, err
			}
			for _, e := range decoded {
				if e.Event != nil {
					events = append(events, *e.Event)
				}
			}
		}
		at[stream] += len(parts)
	}
	slices.SortStableFunc(events, func(a, b apitype.EngineEvent) int { return a.Timestamp - b.Timestamp })
	return events, at, nil
}
