package service

import (
	"context"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
)

// follower sends one watcher what a feed has from its beginning on: all parts of the log that it knows, and what is in
// none.
type follower struct {
	*Service
	feed *feed
	send func(deployments.WatchEvent) error
	next map[string]int // by stream: number of the last part that was sent
	torn bool           // a part of the run's stream is damaged: the end may have been in it
}

func (f *follower) follow(ctx context.Context) error {
	var said, progress *deployments.WatchEvent // that were sent last
	for {
		now := f.feed.look()
		for _, stream := range now.streams() {
			ended, err := f.pass(ctx, statestore.Part{Update: f.feed.update, Stream: stream, Number: f.next[stream] +
				1}, now.marks[stream])
			if err != nil || ended {
				return err
			}
			f.next[stream] = max(f.next[stream], now.marks[stream])
		}
		for _, last := range []struct{ sent, now *deployments.WatchEvent }{{said, now.said}, {progress, now.progress}} {
			if last.now == last.sent {
				continue
			}
			if err := f.send(*last.now); err != nil {
				return err
			}
		}
		said, progress = now.said, now.progress
		if now.end != nil {
			return f.send(*now.end)
		}
		if now.err != nil {
			return now.err
		}
		if ended, err := f.lostEnd(ctx); err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return failure("watch the update", ctx.Err())
		case <-now.changed:
		case <-f.again():
		}
	}
}

// pass sends the events of the parts of a stream from p up to last. Of a part that is damaged it says so, and goes on
// behind it.
func (f *follower) pass(ctx context.Context, p statestore.Part, last int) (ended bool, err error) {
	for p.Number <= last {
		parts, err := f.feeds.read(ctx, f.Service, p, min(last-p.Number+1, partsAtOnce))
		if err != nil && !damaged(err) {
			return false, err
		}
		if err == nil && len(parts) == 0 {
			return false, deployments.Errorf(deployments.CodeNotFound, "a part of the log of %s is not kept any more",
				p.Update)
		}
		for _, data := range parts {
			events, err := eventlog.Decode(data)
			if err := f.tear(p, err); err != nil {
				return false, err
			}
			p.Number++
			for _, e := range events {
				e.Stream = p.Update.Version + "/" + p.Stream
				if err := f.send(e); err != nil {
					return false, err
				}
				ended = ended || e.End != nil
			}
		}
		if err != nil {
			if err := f.tear(p, err); err != nil {
				return false, err
			}
			p.Number++
		}
	}
	return ended, nil
}

// tear tells that a part is damaged, if it is.
func (f *follower) tear(p statestore.Part, err error) error {
	if err == nil {
		return nil
	}
	f.torn = f.torn || p.Stream == eventlog.RunStream
	e := said(p.Update, fmt.Sprintf(
		"part %d of the log %q of update %s is damaged (%v): what it told is missing here; the stack's state does "+
			"not depend on it",
		p.Number, p.Stream, p.Update.Version, err))
	e.Event.DiagnosticEvent.Severity = "warning"
	return f.send(e)
}

// lostEnd sends the end of an update whose log may have lost it, once it has ended.
func (f *follower) lostEnd(ctx context.Context) (ended bool, err error) {
	if !f.torn {
		return false, nil
	}
	info, err := f.Info(ctx, f.feed.update)
	if err != nil || info.Ended.IsZero() {
		return false, err
	}
	return true, f.send(deployments.WatchEvent{End: &info})
}

// again is when an end that may be lost is looked for once more.
func (f *follower) again() <-chan time.Time {
	if !f.torn {
		return nil
	}
	return time.After(slow)
}

// damaged says whether what is stored cannot be understood.
func damaged(err error) bool {
	code := deployments.CodeOf(err)
	return err != nil && (code == deployments.CodeFormat || code == deployments.CodeInvalid)
}
