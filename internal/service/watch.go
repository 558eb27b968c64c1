package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// quick and slow bound how often a log is looked at; it is looked at less and less while nothing comes.
	quick, slow = 30 * time.Millisecond, 250 * time.Millisecond
	// brisk is how often it is looked at first when the end is about to be written.
	brisk = 5 * time.Millisecond
	// progressEvery is how often a running update is asked where it stands.
	progressEvery = time.Second
	// patience is how many looks may find nothing of an update before it is given up.
	patience = 5
	// handedOn is how long an update may take at most to be queued once the one that it goes on from has ended.
	handedOn = time.Minute
	// partsAtOnce bounds the parts that are read in one go.
	partsAtOnce = 50
	// collectedAfter is how old an update is at least whose log is not kept any more.
	collectedAfter = time.Hour
)

// Watch sends an update's events as they are written, until its end, and goes on with what it goes on as.
func (s *Service) Watch(ctx context.Context, u deployments.UpdateName, send func(deployments.WatchEvent) error) error {
	if err := u.Validate(); err != nil {
		return err
	}
	for {
		next := ""
		err := s.watch(ctx, u, func(e deployments.WatchEvent) error {
			if e.End == nil || e.End.Next == "" {
				return send(e)
			}
			next = e.End.Next
			return send(said(u, fmt.Sprintf("update %s goes on as update %s: %s", u.Version, next, e.End.Error)))
		})
		if err != nil || next == "" {
			return err
		}
		u.Version = next
		if err := s.queues(ctx, u); err != nil {
			return err
		}
	}
}

// queues waits until an update that another goes on as is in its stack's queue: the end of the other is written before.
func (s *Service) queues(ctx context.Context, u deployments.UpdateName) error {
	for until := time.Now().Add(handedOn); ; {
		err := s.known(ctx, u)
		if deployments.CodeOf(err) != deployments.CodeNotFound || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return failure("watch the update", ctx.Err())
		case <-time.After(quick):
		}
	}
}

// said is something that the service tells a watcher of an update.
func said(u deployments.UpdateName, text string) deployments.WatchEvent {
	return deployments.WatchEvent{Stream: u.Version + "/service", Event: &apitype.EngineEvent{
		Timestamp: int(time.Now().Unix()), DiagnosticEvent: &apitype.DiagnosticEvent{Message: text + "\n", Color: "never", Severity: "info"},
	}}
}

// watcher follows one update's log: a stream for the steps, and one for what each program said.
type watcher struct {
	*Service
	update  deployments.UpdateName
	next    map[string]int // by stream: number of the next part
	send    func(deployments.WatchEvent) error
	asked   time.Time
	listed  time.Time
	streams []string
	missed  int    // looks in a row that found nothing of the update
	trouble string // of the stack, as it was told last
}

// watch sends the events of one update.
func (s *Service) watch(ctx context.Context, u deployments.UpdateName, send func(deployments.WatchEvent) error) error {
	info, err := s.Info(ctx, u)
	switch {
	case err != nil && deployments.CodeOf(err) == deployments.CodeNotFound:
		if err := s.known(ctx, u); err != nil {
			return err
		}
	case err == nil && !info.Ended.IsZero() && time.Since(info.Ended) > collectedAfter:
		log, err := s.ReadEvents(ctx, statestore.Part{Update: u, Stream: activities.RunStream, Number: 1}, 1)
		if err != nil {
			return err
		}
		if len(log) == 0 {
			return send(deployments.WatchEvent{End: &info})
		}
	}
	w := &watcher{Service: s, update: u, next: map[string]int{}, send: send}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ending := w.ending(ctx)
	pause := quick
	for {
		ended, news, err := w.look(ctx)
		if err != nil || ended {
			return err
		}
		if ended, err := w.progress(ctx); err != nil || ended {
			return err
		}
		if news {
			pause = quick
			continue
		}
		select {
		case <-ctx.Done():
			return failure("watch the update", ctx.Err())
		case <-ending:
			ending, pause = nil, brisk
		case <-time.After(pause):
			pause = min(pause*5/4, slow)
		}
	}
}

// ending is closed when the update's Run has ended, after which its log soon does.
func (w *watcher) ending(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		for pause := quick; ; pause = min(pause*3/2, slow) {
			err := w.temporal.GetWorkflow(ctx, deployments.RunWorkflowID(w.update), "").Get(ctx, nil)
			var closed *temporal.WorkflowExecutionError
			if err == nil || errors.As(err, &closed) {
				close(ended)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause): // it has not begun, or Temporal is away
			}
		}
	}()
	return ended
}

// look reads what has been written; the run's stream comes last, because it holds the end.
func (w *watcher) look(ctx context.Context) (ended, news bool, err error) {
	parts, err := w.ReadEvents(ctx, w.part(activities.RunStream), partsAtOnce)
	if err != nil {
		return false, false, err
	}
	if err := w.list(ctx, len(parts) > 0); err != nil {
		return false, false, err
	}
	for _, stream := range w.streams {
		if stream == activities.RunStream {
			continue
		}
		said, err := w.ReadEvents(ctx, w.part(stream), partsAtOnce)
		if err != nil {
			return false, false, err
		}
		news = news || len(said) > 0
		if _, err := w.pass(stream, said); err != nil {
			return false, false, err
		}
	}
	ended, err = w.pass(activities.RunStream, parts)
	return ended, news || len(parts) > 0, err
}

// list finds new streams: each worker that hosts the update opens its own.
func (w *watcher) list(ctx context.Context, now bool) error {
	if !now && time.Since(w.listed) < slow {
		return nil
	}
	var err error
	w.streams, err = w.Streams(ctx, w.update)
	w.listed = time.Now()
	return err
}

func (w *watcher) part(stream string) statestore.Part {
	return statestore.Part{Update: w.update, Stream: stream, Number: w.next[stream] + 1}
}

// pass sends the events of some parts on.
func (w *watcher) pass(stream string, parts [][]byte) (ended bool, err error) {
	for _, data := range parts {
		w.next[stream]++
		events, err := activities.DecodeEvents(data)
		if err != nil {
			return false, err
		}
		for _, e := range events {
			e.Stream = w.update.Version + "/" + stream
			if err := w.send(e); err != nil {
				return false, err
			}
			ended = ended || e.End != nil
		}
	}
	return ended, nil
}

// progress tells where the update stands, once a second: in its queue, ended without having begun, or which steps run and in which
// attempt.
func (w *watcher) progress(ctx context.Context) (ended bool, err error) {
	if time.Since(w.asked) < progressEvery {
		return false, nil
	}
	first := w.asked.IsZero()
	w.asked = time.Now()
	if first {
		return false, nil // most updates are over before anybody wonders
	}
	var p deployments.Progress
	if err := w.ask(ctx, deployments.RunWorkflowID(w.update), deployments.QueryProgress, &p); err != nil {
		queue, err := w.queued(ctx, w.update.StackName)
		if err != nil {
			return false, nil //nolint:nilerr // the next look may tell
		}
		if err := w.troubled(queue); err != nil {
			return false, err
		}
		waiting := w.position(queue)
		if waiting == nil {
			return w.unbegun(ctx, queue) // or between the queue and the run
		}
		p = *waiting
	} else {
		w.attempts(ctx, &p)
	}
	return false, w.send(deployments.WatchEvent{Progress: &p})
}

// troubled tells, whenever it is another, why the stack cannot go on to this update, or end it.
func (w *watcher) troubled(queue deployments.StackInfo) error {
	if queue.Active == nil || queue.Active.Error == w.trouble {
		return nil
	}
	if w.trouble = queue.Active.Error; w.trouble == "" {
		return nil
	}
	e := said(w.update, w.trouble)
	e.Event.DiagnosticEvent.Severity = "warning"
	return w.send(e)
}
