package service

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/internal/panics"
	"github.com/deployctl/deployctl/statestore"
)

// watcher looks at one update's log, which has a stream for the steps and one for what each program said, for everybody
// who watches the update; and asks Temporal for what no log has.
type watcher struct {
	*Service
	feed    *feed
	update  deployments.UpdateName
	next    map[string]int // by stream: number of the last part
	pause   time.Duration  // until the next look
	asked   time.Time
	listed  time.Time
	streams []string
	steps   string      // that ran and were done when it was asked last
	missed  int         // looks in a row that found nothing of the update
	lonely  atomic.Bool // its Run was asked, and no worker answered
	trouble string      // of the stack, as it was told last
}

// send gives everybody something that is in no log.
func (w *watcher) send(e deployments.WatchEvent) error {
	w.feed.tell(e)
	return nil
}

// watch looks until ctx ends, or what is told says the end.
func (w *watcher) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		// which is a help only
		_ = panics.Do("looking for what update "+w.update.String()+" waits for", func() error {
			w.attend(ctx)
			return nil
		})
	}()
	if err := w.begin(ctx); err != nil {
		return err
	}
	w.pause = quick
	ending := w.ending(ctx)
	for {
		news, err := w.look(ctx)
		if err != nil {
			return err
		}
		if ended, err := w.progress(ctx); err != nil || ended {
			return err
		}
		if news {
			w.pause = quick
			continue
		}
		select {
		case <-ctx.Done():
			return failure("watch the update", ctx.Err())
		case <-ending:
			ending, w.pause = nil, brisk
		case <-time.After(w.pause):
			w.pause = min(w.pause*5/4, slow)
		}
	}
}

// begin finds how much of the log there is. The stream of the run is looked at before the others, because it holds the
// end: whatever was said before the end is there when it is.
func (w *watcher) begin(ctx context.Context) error {
	run, err := w.EventParts(ctx, w.update)
	if err != nil {
		return err
	}
	all, err := w.EventParts(ctx, w.update)
	if err != nil {
		return err
	}
	all[eventlog.RunStream] = run[eventlog.RunStream]
	w.next = all
	w.feed.mark(all)
	return nil
}

// ending is closed when the update's Run has ended, after which its log soon does.
func (w *watcher) ending(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		for pause := quick; ; pause = min(pause*3/2, endingEvery) {
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

// look finds what has been written since; the run's stream comes first, see begin.
func (w *watcher) look(ctx context.Context) (news bool, err error) {
	marks := map[string]int{}
	if marks[eventlog.RunStream], err = w.further(ctx, eventlog.RunStream); err != nil {
		return false, err
	}
	if err := w.list(ctx, marks[eventlog.RunStream] > w.next[eventlog.RunStream]); err != nil {
		return false, err
	}
	for _, stream := range w.streams {
		if stream == eventlog.RunStream {
			continue
		}
		if marks[stream], err = w.further(ctx, stream); err != nil {
			return false, err
		}
	}
	for stream, mark := range marks {
		news = news || mark > w.next[stream]
		w.next[stream] = mark
	}
	if news {
		w.feed.mark(marks)
	}
	return news, nil
}

// further gives the number of the last part of a stream, and keeps the new ones for those who watch.
func (w *watcher) further(ctx context.Context, stream string) (int, error) {
	p := statestore.Part{Update: w.update, Stream: stream, Number: w.next[stream] + 1}
	parts, err := w.ReadEvents(ctx, p, partsAtOnce)
	w.feeds.keep(p, parts)
	if damaged(err) { // who watches reads it again, and says so
		return w.next[stream] + len(parts) + 1, nil
	}
	return w.next[stream] + len(parts), err
}

// listEvery is how often new streams are looked for while nothing comes.
const listEvery = 10 * time.Second

// list finds new streams: each worker that hosts the update opens its own. While nothing comes, they are looked for as
// seldom as the log is.
func (w *watcher) list(ctx context.Context, now bool) error {
	if !now && time.Since(w.listed) < min(8*w.pause, listEvery) {
		return nil
	}
	var err error
	w.streams, err = w.Streams(ctx, w.update)
	w.listed = time.Now()
	return err
}

// progress tells where the update stands, once a second: in its queue, ended without having begun, or which steps run
// and in which attempt.
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
	err = w.ask(ctx, deployments.RunWorkflowID(w.update), deployments.QueryProgress, &p)
	if w.lonely.Store(errors.Is(err, errNobody)); w.lonely.Load() {
		return false, nil
	}
	if err != nil {
		queue, err := w.queued(ctx, w.update.StackName)
		if err != nil {
			return false, nil //nolint:nilerr // the next look may tell
		}
		if err := w.troubled(queue); err != nil {
			return false, err
		}
		if queue.Active != nil {
			queue.Active.Waiting = w.waiting(ctx, queue.Active.Update)
		}
		waiting := w.position(queue)
		if waiting == nil {
			return w.unbegun(ctx, queue) // or between the queue and the run
		}
		p = *waiting
	} else {
		w.attempts(ctx, &p)
	}
	if steps := fmt.Sprint(p.Running, p.Done); steps != w.steps {
		w.steps, w.pause = steps, quick // its log soon tells of it
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
