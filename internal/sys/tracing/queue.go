package tracing

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Bounds of the queue: spans that wait, spans of one export, the pause between exports, and between errors that are
// told.
const (
	queued    = 4096
	atOnce    = 512
	every     = 2 * time.Second
	tellEvery = time.Minute
)

// queue exports spans in groups from a goroutine of its own. A span that it has no room for is dropped.
type queue struct {
	exporter sdk.SpanExporter
	tell     func(error)
	spans    chan sdk.ReadOnlySpan
	stop     chan struct{} // closed: export what is there, and end
	ended    chan struct{}
	once     sync.Once
	ctx      context.Context // of exports
	cancel   context.CancelFunc
	told     time.Time

	exported, dropped, failed atomic.Int64
}

func newQueue(exporter sdk.SpanExporter, tell func(error)) *queue {
	q := &queue{exporter: exporter, tell: tell, spans: make(chan sdk.ReadOnlySpan, queued), stop: make(chan struct{}),
		ended: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case q.spans <- s:
	default:
		q.dropped.Add(1)
	}
}

// Shutdown exports what is left until ctx ends.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.stop) })
	defer q.cancel()
	select {
	case <-q.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ForceFlush implements sdk.SpanProcessor. Nothing asks for it.
func (q *queue) ForceFlush(context.Context) error { return nil }

func (q *queue) run() {
	defer close(q.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var group []sdk.ReadOnlySpan
	for {
		select {
		case s := <-q.spans:
			if group = append(group, s); len(group) < atOnce {
				continue
			}
		case <-tick.C:
		case <-q.stop:
			q.rest(group)
			_ = q.exporter.Shutdown(q.ctx) // it has nothing left
			return
		}
		q.export(group)
		group = nil
	}
}

// rest exports what is left.
func (q *queue) rest(group []sdk.ReadOnlySpan) {
	for {
		select {
		case s := <-q.spans:
			if group = append(group, s); len(group) < atOnce {
				continue
			}
			q.export(group)
			group = nil
		default:
			q.export(group)
			return
		}
	}
}

func (q *queue) export(group []sdk.ReadOnlySpan) {
	if len(group) == 0 {
		return
	}
	err := q.exporter.ExportSpans(q.ctx, group)
	if err == nil {
		q.exported.Add(int64(len(group)))
		return
	}
	q.failed.Add(int64(len(group)))
	if q.tell != nil && time.Since(q.told) >= tellEvery {
		q.told = time.Now()
		q.tell(clipped(err))
	}
}

// clipped returns an error with the begin of its text, which may be the collector's.
func clipped(err error) error {
	if text := err.Error(); len(text) > maxText {
		return errors.New(strings.ToValidUTF8(text[:maxText], "") + "…")
	}
	return err
}
