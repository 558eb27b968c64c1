package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/updates"
)

// watcher reads one update's log for all its watchers, with a stream for the steps and one for each run of the program,
// and asks Temporal for what no log has.
type watcher struct {
	*Service
	feed          *feed
	update        deployments.UpdateName
	next          map[string]int // by stream: number of the next part
	pause         time.Duration  // until the next read
	asked         time.Time
	listed        time.Time
	streams       []string
	steps         string      // steps running and done at the last query
	missed        int         // reads in a row that found nothing of the update
	runUnattended atomic.Bool // no worker answered the last query
	trouble       string      // of the stack, as last reported
	ended         bool        // its log has its end
	lost          bool        // it was said that Temporal has no workflow of it
	recovering    atomic.Bool // because of that
}

// send publishes a message of the service, which is in no log. It replaces one that a watcher has not read yet. The
// error is always nil.
func (w *watcher) send(e deployments.WatchEvent) error {
	w.feed.publish(e)
	return nil
}

// watch reads until ctx ends or the update has ended.
func (w *watcher) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		// this is only additional information
		_ = panics.Do("looking for what update "+w.update.String()+" waits for", func() error {
			w.reportWaits(ctx)
			return nil
		})
	}()
	if err := w.begin(ctx); err != nil {
		return err
	}
	w.pause = quick
	begun, ended := w.stages(ctx)
	if len(w.next) == 0 {
		w.pause = slow // its log begins after its claim
	}
	for {
		if over, err := w.progress(ctx); err != nil || over {
			return err
		}
		select {
		case <-ctx.Done():
			return failure("watch the update", ctx.Err())
		case at := <-begun:
			begun, ended = nil, w.awaitFirstPart(ctx, at, ended)
		case w.ended = <-ended:
			ended, w.pause = nil, brisk
		case <-time.After(w.pause):
			w.pause = min(w.pause*2, slow)
		}
		news, err := w.readNews(ctx)
		if err != nil {
			return err
		}
		if news {
			w.pause = quick
		}
	}
}

// awaitFirstPart waits until the log of an update that has begun at a time may have something, or the update has ended.
// It returns what tells the end, unless that was told.
func (w *watcher) awaitFirstPart(ctx context.Context, at time.Time, ended <-chan bool) <-chan bool {
	w.pause = firstPart
	select {
	case <-ctx.Done():
	case w.ended = <-ended:
		ended, w.pause = nil, brisk
	case <-time.After(min(max(firstPart-time.Since(at), 0), firstPart)): // clocks may differ
	}
	return ended
}

// begin finds how much of the log there is. The Run's stream was read before the others, because it has the end:
// everything written before the end is there when the end is.
func (w *watcher) begin(ctx context.Context) error {
	if run := w.next[eventlog.RunStream]; run > 0 {
		all, err := w.Updates.EventParts(ctx, w.update)
		if err != nil {
			return err
		}
		w.next = all
		w.next[eventlog.RunStream] = run
	}
	w.feed.mark(w.next)
	return nil
}

// listedParts is how many parts a log has at most while all of it is listed to find new ones.
const listedParts = 500

// readNews finds new parts, and caches them for the watchers; the Run's stream comes first, see begin.
func (w *watcher) readNews(ctx context.Context) (news bool, err error) {
	var marks map[string]int
	parts := 0
	for _, n := range w.next {
		parts += n
	}
	if parts < listedParts {
		marks, err = w.listNews(ctx)
	} else {
		marks, err = w.probeNews(ctx)
	}
	if err != nil {
		return false, err
	}
	for stream, mark := range marks {
		news = news || mark > w.next[stream]
	}
	if news {
		w.next = marks
		w.feed.mark(marks)
	}
	return news, nil
}

// listNews finds new parts by one list of all. Another one follows if it has parts of the Run's stream, of which one
// may be the end, unless the end is known to have been written before.
func (w *watcher) listNews(ctx context.Context) (map[string]int, error) {
	known := w.readEnd(ctx)
	marks, err := w.Updates.EventParts(ctx, w.update)
	known()
	if run := marks[eventlog.RunStream]; err == nil && !w.ended && run > w.next[eventlog.RunStream] {
		if marks, err = w.Updates.EventParts(ctx, w.update); err == nil {
			marks[eventlog.RunStream] = run
		}
	}
	if err != nil {
		return nil, err
	}
	reading, reads := panics.NewGroup(ctx, "reading a log")
	reading.SetLimit(partsAtOnce)
	for stream, last := range marks {
		for n := w.next[stream] + 1; n <= min(last, w.next[stream]+partsAtOnce); n++ {
			p := updates.Part{Update: w.update, Stream: stream, Number: n}
			if w.feeds.has(w.feed, p) {
				continue
			}
			reading.Go(func() error {
				data, err := w.Updates.ReadEvents(reads, p, 1)
				if damaged(err) { // the watchers read it again and report it
					return nil
				}
				w.feeds.keep(w.feed, p, data)
				return err
			})
		}
	}
	return marks, reading.Wait()
}

// readEnd reads the parts of the Run's stream, of a log that has its end, which mostly follow those that are known,
// before a list says that they are there. It returns what waits until they are cached. One that is not there, or cannot
// be read, is found out later.
func (w *watcher) readEnd(ctx context.Context) (wait func()) {
	if !w.ended {
		return func() {}
	}
	reading, reads := panics.NewGroup(ctx, "reading the end of a log")
	parts := 2 // what was saved before the end, and that
	if w.next[eventlog.RunStream] > 0 {
		parts = 1
	}
	for n := range parts {
		p := updates.Part{Update: w.update, Stream: eventlog.RunStream, Number: w.next[eventlog.RunStream] + 1 + n}
		reading.Go(func() error {
			if data, err := w.Updates.ReadEvents(reads, p, 1); err == nil {
				w.feeds.keep(w.feed, p, data)
			}
			return nil
		})
	}
	return func() { _ = reading.Wait() }
}

// probeNews finds new parts of a long log by reading on where each stream ended.
func (w *watcher) probeNews(ctx context.Context) (marks map[string]int, err error) {
	marks = maps.Clone(w.next)
	if marks[eventlog.RunStream], err = w.lastPart(ctx, eventlog.RunStream); err != nil {
		return nil, err
	}
	if err := w.list(ctx, marks[eventlog.RunStream] > w.next[eventlog.RunStream]); err != nil {
		return nil, err
	}
	for _, stream := range w.streams {
		if stream == eventlog.RunStream {
			continue
		}
		if marks[stream], err = w.lastPart(ctx, stream); err != nil {
			return nil, err
		}
	}
	return marks, nil
}

// lastPart returns the number of the last part of a stream, and caches the new ones for the watchers.
func (w *watcher) lastPart(ctx context.Context, stream string) (int, error) {
	p := updates.Part{Update: w.update, Stream: stream, Number: w.next[stream] + 1}
	parts, err := w.Updates.ReadEvents(ctx, p, partsAtOnce)
	w.feeds.keep(w.feed, p, parts)
	if damaged(err) { // the watchers read it again and report it
		return w.next[stream] + len(parts) + 1, nil
	}
	return w.next[stream] + len(parts), err
}

// listEvery is how often to look for new streams while nothing comes.
const listEvery = 10 * time.Second

// list finds new streams: each worker that hosts the update opens its own. While nothing comes, it lists them rarely.
func (w *watcher) list(ctx context.Context, now bool) error {
	if !now && time.Since(w.listed) < min(8*w.pause, listEvery) {
		return nil
	}
	var err error
	w.streams, err = w.Updates.Streams(ctx, w.update)
	w.listed = time.Now()
	return err
}

// progress publishes the state of the update, once a second: its place in the queue, an end before it began, or its
// running steps and their attempts.
func (w *watcher) progress(ctx context.Context) (ended bool, err error) {
	if time.Since(w.asked) < progressEvery {
		return false, nil
	}
	first := w.asked.IsZero()
	w.asked = time.Now()
	if first {
		return false, nil // most updates end before a first query
	}
	var p deployments.Progress
	err = w.query(ctx, deployments.RunWorkflowID(w.update), deployments.QueryProgress, &p)
	if w.runUnattended.Store(errors.Is(err, errNoWorker)); w.runUnattended.Load() {
		return false, nil
	}
	if err != nil {
		queue, err := w.queued(ctx, w.update.StackName)
		if err != nil {
			return false, w.stackLost(err)
		}
		if err := w.reportTrouble(queue); err != nil {
			return false, err
		}
		w.detail(ctx, queue.Active)
		waiting := w.position(queue)
		if waiting == nil {
			return w.sendUnbegunEnd(ctx, queue) // or it is between the queue and its Run
		}
		p = *waiting
	} else {
		w.attempts(ctx, &p)
	}
	if steps := fmt.Sprint(p.Running, p.Done); steps != w.steps {
		w.steps, w.pause = steps, quick // its log will have news soon
	}
	return false, w.send(deployments.WatchEvent{Progress: &p})
}

// stackLost returns the error of looking at the stack if it says, again and again, that the stack is not there or
// cannot be read, while nothing of the update runs: nothing will end it. Another one may pass.
func (w *watcher) stackLost(err error) error {
	if code := deployments.CodeOf(err); code != deployments.CodeNotFound && code != deployments.CodeFormat {
		return nil
	}
	if w.missed++; w.missed < patience {
		return nil
	}
	return err
}

// reportTrouble publishes, whenever it changes, why the stack cannot run or end this update.
func (w *watcher) reportTrouble(queue deployments.StackInfo) error {
	if queue.Active == nil || queue.Active.Error == w.trouble {
		return nil
	}
	if w.trouble = queue.Active.Error; w.trouble == "" {
		return nil
	}
	e := serviceMessage(w.update, w.trouble)
	e.Event.DiagnosticEvent.Severity = "warning"
	return w.send(e)
}
