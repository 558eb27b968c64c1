package service

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// batchMemory limits what the events of one call become in memory, so that whoever reads them has room for them.
	batchMemory = 128 << 20
	// mostChanges limits the kinds of steps of a summary, and longestChange their names: they become part of the history.
	mostChanges, longestChange = 50, 50
)

// WriteEvents stores events of a client.
func (s *Service) WriteEvents(ctx context.Context, l deployments.Leased, events json.RawMessage) error {
	batch, err := s.judgeEvents(ctx, events)
	if err != nil {
		return err
	}
	if err := s.leaseHasEnded(ctx, l); err != nil {
		return err
	}
	writing, writes := panics.NewGroup(ctx, "storing events of "+l.Update.String())
	if batch.changes != nil {
		writing.Go(func() error { return s.Leases.PutLeaseChanges(writes, l.Update, batch.changes) })
	}
	writing.Go(func() error { return s.Leases.WriteClientEvents(writes, l, batch.encoded.Bytes(), batch.events) })
	return writing.Wait()
}

// eventBatch is what WriteEvents stores of the events of one call.
type eventBatch struct {
	encoded bytes.Buffer // the array of deployments.WatchEvent
	events  int
	changes map[string]int // of the last summary; nil when there is none
}

// judgeEvents reports which event of a client is none. It looks at one after the other, so that many take little
// memory.
func (s *Service) judgeEvents(ctx context.Context, events json.RawMessage) (b eventBatch, err error) {
	if !json.Valid(events) || !rawjson.IsArray(events) {
		return b, deployments.Errorf(deployments.CodeInvalid, "these are not events, which are a JSON array")
	}
	cost := rawjson.Cost(events)
	if cost > batchMemory {
		return b, deployments.TooLarge("the events of one call take too much memory: send fewer at once")
	}
	if err := mempool.Take(ctx, cost); err != nil {
		return b, err
	}
	for raw := range rawjson.Elements(events) {
		if b.events++; b.events > deployments.MaxBatch {
			return b, deployments.TooLarge("one call has more than %d events: send fewer at once", deployments.MaxBatch)
		}
		if err := b.add(raw); err != nil {
			return b, err
		}
	}
	b.encoded.WriteByte(']')
	return b, nil
}

// add adds an event.
func (b *eventBatch) add(raw []byte) error {
	var e apitype.EngineEvent
	if err := rawjson.Unmarshal(raw, &e); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "event %d of the call is none: %w", b.events, err)
	}
	if e.Sequence < 0 {
		return deployments.Errorf(deployments.CodeInvalid, "%d is not the number of an event", e.Sequence)
	}
	if summary := e.SummaryEvent; summary != nil {
		b.changes = make(map[string]int, len(summary.ResourceChanges))
		for op, n := range summary.ResourceChanges {
			if b.changes[string(op)] = n; len(b.changes) > mostChanges || len(op) > longestChange {
				return deployments.Errorf(deployments.CodeInvalid, "the summary has kinds of steps that there are not")
			}
		}
	}
	encoded, err := eventlog.EncodeRaw(raw, &e)
	if err != nil {
		return err
	}
	if b.events == 1 {
		b.encoded.WriteByte('[')
	} else {
		b.encoded.WriteByte(',')
	}
	b.encoded.Write(encoded)
	return nil
}
