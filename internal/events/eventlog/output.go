package eventlog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/google/uuid"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
)

const (
	// batchDelay is how long events are gathered before they become a part. After a failed write the delay doubles, up
	// to maxDelay.
	batchDelay, maxDelay = 250 * time.Millisecond, 5 * time.Second
	// maxPart bounds the events of a part.
	maxPart = 1000
	// maxQueued bounds the bytes that wait for the store. Events beyond it are dropped and counted, so that one program
	// cannot use up the memory of its worker.
	maxQueued = 8 << 20
)

// Output writes what the program and the plugins of an update print to a stream of its own. Callers never wait for the
// store: a failed write is repeated together with the events that came after it. It is safe for concurrent use.
type Output struct {
	store   Appender
	update  deployments.UpdateName
	stream  string
	sources *sources

	mu      sync.Mutex
	queue   []deployments.WatchEvent
	queued  int // bytes of the queue
	dropped int // events that did not fit into the queue
	number  int // of the last part that was written

	pending chan struct{} // holds an element when the queue may have events
	writing sync.Mutex    // one part at a time
	cancel  context.CancelFunc
	stopped chan struct{}
}

// NewOutput starts a stream in which the secrets never appear. The caller closes it.
func NewOutput(store Appender, u deployments.UpdateName, secrets []string) *Output {
	ctx, cancel := context.WithCancel(context.Background())
	o := &Output{
		store: store, update: u, stream: "output-" + uuid.NewString(), sources: newSources(redaction.New(secrets)),
		pending: make(chan struct{}, 1), cancel: cancel, stopped: make(chan struct{}),
	}
	go o.run(ctx)
	return o
}

// Hide has other secrets than before never appear in what is printed from now on.
func (o *Output) Hide(secrets *redaction.Redactor) { o.sources.secrets.Store(secrets) }

// run writes the queue whenever it has events, until ctx ends.
func (o *Output) run(ctx context.Context) {
	defer close(o.stopped)
	delay := batchDelay
	for {
		select {
		case <-o.pending:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
		if o.Flush(ctx) == nil {
			delay = batchDelay
			continue
		}
		delay = min(2*delay, maxDelay)
		o.wake()
	}
}

// wake makes run write the queue.
func (o *Output) wake() {
	select {
	case o.pending <- struct{}{}:
	default:
	}
}

// Print records a message. The plugin is the name of the plugin that wrote it, or empty. Debug messages are not
// recorded.
func (o *Output) Print(plugin string, e apitype.DiagnosticEvent) {
	if e.Severity == string(diag.Debug) {
		return
	}
	e.Message = o.sources.get(source{plugin, e.Severity, e.URN}).next(e.Message)
	if !strings.HasSuffix(e.Message, "\n") {
		e.Message += "\n"
	}
	e.Color = "never"
	o.Put(apitype.EngineEvent{Timestamp: int(time.Now().Unix()), DiagnosticEvent: &e})
}

// Phase records what the host of the update does now.
func (o *Output) Phase(p deployments.Phase) {
	o.record(deployments.WatchEvent{Progress: &deployments.Progress{Phase: &p}})
}

// Put records an event as it is.
func (o *Output) Put(event apitype.EngineEvent) { o.record(deployments.WatchEvent{Event: &event}) }

func (o *Output) record(event deployments.WatchEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if size := textSize(event); o.queued+size <= maxQueued {
		o.queue, o.queued = append(o.queue, event), o.queued+size
	} else {
		o.dropped++
	}
	o.wake()
}

// textSize estimates the bytes of an event in the queue.
func textSize(e deployments.WatchEvent) int {
	const fixed = 200
	switch {
	case e.Event == nil:
		return fixed + jsonSize(e.Progress)
	case e.Event.DiagnosticEvent != nil:
		d := e.Event.DiagnosticEvent
		return fixed + len(d.URN) + len(d.Prefix) + len(d.Message) + len(d.Color) + len(d.Severity)
	case e.Event.StdoutEvent != nil:
		return fixed + len(e.Event.StdoutEvent.Message) + len(e.Event.StdoutEvent.Color)
	}
	return fixed + jsonSize(e.Event) // few
}

// written removes events from the queue that are in the store now. If events were dropped, a warning with their number
// takes their place.
func (o *Output) written(batch []deployments.WatchEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.number, o.queue = o.number+1, o.queue[len(batch):]
	for _, e := range batch {
		o.queued -= textSize(e)
	}
	if o.dropped == 0 {
		return
	}
	warning := deployments.WatchEvent{Event: &apitype.EngineEvent{
		Timestamp: int(time.Now().Unix()),
		DiagnosticEvent: &apitype.DiagnosticEvent{
			Message: fmt.Sprintf("%d messages are missing here: the store could not take all output in time\n", o.dropped),
			Color:   "never", Severity: string(diag.Warning),
		},
	}}
	o.dropped = 0
	o.queue, o.queued = append(o.queue, warning), o.queued+textSize(warning)
}

// Flush writes everything that was recorded so far.
func (o *Output) Flush(ctx context.Context) error {
	o.writing.Lock()
	defer o.writing.Unlock()
	for {
		o.mu.Lock()
		batch := slices.Clone(o.queue[:min(len(o.queue), maxPart)])
		o.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		data, err := Encode(batch)
		if err != nil {
			return err
		}
		part := updates.Part{Update: o.update, Stream: o.stream, Number: o.number + 1}
		if err := o.store.AppendEvents(ctx, part, data); err != nil {
			return err
		}
		o.written(batch)
	}
}

// Close ends the stream after a last Flush. What that cannot write is lost.
func (o *Output) Close(ctx context.Context) {
	o.cancel()
	<-o.stopped
	_ = o.Flush(ctx)
}
