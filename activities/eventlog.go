package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/internal/redaction"
	"github.com/deployctl/deployctl/statestore"
	"github.com/google/uuid"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// EventLog takes the parts of event logs. A part is a JSON array of deployments.WatchEvent; see EncodeEvents.
type EventLog interface {
	AppendEvents(ctx context.Context, p statestore.Part, data []byte) error
}

// RunStream is the stream of an event log that Save and Settled write: part N is save N, and the part after the last
// save ends the log.
const RunStream = "run"

// EncodeEvents writes the content of one part of an event log.
func EncodeEvents(events []deployments.WatchEvent) ([]byte, error) {
	data, err := encodeFitting(events)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInternal, "encode events: %w", err)
	}
	return data, nil
}

// DecodeEvents reads the content of one part of an event log.
func DecodeEvents(data []byte) ([]deployments.WatchEvent, error) {
	var events []deployments.WatchEvent
	if err := json.Unmarshal(data, &events); err != nil {
		return nil, deployments.Errorf(deployments.CodeFormat, "an event log is damaged: %w", err)
	}
	return events, nil
}

const (
	// logPause is how long output is gathered before it becomes a part.
	logPause = 250 * time.Millisecond
	// maxPart bounds the events of a part.
	maxPart = 1000
	// maxQueued bounds the bytes of text that wait for the store. What is said beyond is dropped, and counted: one
	// program is not to take its worker's memory.
	maxQueued = 8 << 20
)

// outputLog writes what the program and the plugins of an update say to a stream of its own. Nobody waits for the
// store: what cannot be written is tried again with what came after it.
type outputLog struct {
	log     EventLog
	update  deployments.UpdateName
	stream  string
	secrets *redaction.Redactor
	said    sync.Map // by source: *spoken

	mu      sync.Mutex
	queue   []deployments.WatchEvent
	queued  int // bytes of the queue
	dropped int // events that the queue had no room for
	number  int
	spoken  chan struct{}

	writing sync.Mutex // one part at a time
	stop    context.CancelFunc
	stopped chan struct{}
}

// newOutputLog starts a log; the secrets never appear in it. Close it.
func newOutputLog(log EventLog, u deployments.UpdateName, secrets []string) *outputLog {
	l := &outputLog{
		log: log, update: u, stream: "output-" + uuid.NewString(), secrets: redaction.New(secrets),
		spoken: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	go l.run(ctx)
	return l
}

func (l *outputLog) run(ctx context.Context) {
	defer close(l.stopped)
	for {
		select {
		case <-l.spoken:
		case <-ctx.Done():
			return
		}
		if pause(ctx, logPause) != nil {
			return
		}
		err := persist(ctx, func(error) bool { return true }, func() error { return l.flush(ctx) })
		if err != nil {
			return
		}
	}
}

// take records a message of a plugin or of the program. Debug messages are not for people.
func (l *outputLog) take(m pluginhost.Message) {
	if m.Severity == diag.Debug {
		return
	}
	text := l.blind(m)
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	l.put(apitype.EngineEvent{Timestamp: int(time.Now().Unix()), DiagnosticEvent: &apitype.DiagnosticEvent{
		URN: string(m.URN), Message: text, Color: "never", Severity: string(m.Severity),
		StreamID: int(m.Stream), Ephemeral: m.Ephemeral,
	}})
}

// spoken is what one source has said so far, of which one text may end with the beginning of a secret.
type spoken struct {
	mu     sync.Mutex
	stream *redaction.Stream
}

// blind is the text of a message without secrets and controls.
func (l *outputLog) blind(m pluginhost.Message) string {
	type source struct {
		name     string
		severity diag.Severity
		urn      urn.URN
	}
	found, _ := l.said.LoadOrStore(source{m.Source, m.Severity, m.URN}, &spoken{stream: l.secrets.Stream()})
	s := found.(*spoken)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Next(redaction.Controls(m.Text))
}

// phase records what the host of the update is doing.
func (l *outputLog) phase(p deployments.Phase) {
	l.record(deployments.WatchEvent{Progress: &deployments.Progress{Phase: &p}})
}

// put records an event.
func (l *outputLog) put(event apitype.EngineEvent) { l.record(deployments.WatchEvent{Event: &event}) }

func (l *outputLog) record(event deployments.WatchEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if size := textSize(event); l.queued+size <= maxQueued {
		l.queue, l.queued = append(l.queue, event), l.queued+size
	} else {
		l.dropped++
	}
	select {
	case l.spoken <- struct{}{}:
	default:
	}
}

// textSize estimates what an event takes.
func textSize(e deployments.WatchEvent) int {
	const fixed = 200
	if e.Event == nil || e.Event.DiagnosticEvent == nil {
		return fixed
	}
	return fixed + len(e.Event.DiagnosticEvent.Message)
}

// written takes what is in the store out of the queue, and tells of what there was no room for.
func (l *outputLog) written(batch []deployments.WatchEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number, l.queue = l.number+1, l.queue[len(batch):]
	for _, e := range batch {
		l.queued -= textSize(e)
	}
	if l.dropped == 0 {
		return
	}
	event := apitype.EngineEvent{Timestamp: int(time.Now().Unix()), DiagnosticEvent: &apitype.DiagnosticEvent{
		Message: fmt.Sprintf("%d messages are missing here: more was said than the store could take in time\n",
			l.dropped),
		Color: "never", Severity: string(diag.Warning),
	}}
	l.dropped = 0
	l.queue = append(l.queue, deployments.WatchEvent{Event: &event})
	l.queued += textSize(deployments.WatchEvent{Event: &event})
}

// flush writes everything that was said so far.
func (l *outputLog) flush(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	for {
		l.mu.Lock()
		batch := slices.Clone(l.queue[:min(len(l.queue), maxPart)])
		l.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		data, err := EncodeEvents(batch)
		if err != nil {
			return err
		}
		part := statestore.Part{Update: l.update, Stream: l.stream, Number: l.number + 1}
		if err := l.log.AppendEvents(ctx, part, data); err != nil {
			return err
		}
		l.written(batch)
	}
}

// close ends the log after a last flush.
func (l *outputLog) close(ctx context.Context) {
	l.stop()
	<-l.stopped
	_ = l.flush(ctx) // only output is lost
}
