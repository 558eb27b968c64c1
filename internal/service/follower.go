package service

import (
	"context"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/statestore/updates"
)

// follower sends a feed to one watcher from its beginning: all parts of the log, and the messages that are in no log.
type follower struct {
	*Service
	feed       *feed
	send       func(deployments.WatchEvent) error
	next       map[string]int // by stream: number of the next part to send
	ranges     [][2]int       // the sequence numbers of a client's events that were sent
	endDamaged bool           // a part of the Run's stream is damaged, perhaps the end
}

func (f *follower) follow(ctx context.Context) error {
	var said, progress *deployments.WatchEvent // sent last
	for {
		now := f.feed.current()
		for _, stream := range now.streams() {
			ended, err := f.sendParts(ctx, updates.Part{Update: f.feed.update, Stream: stream, Number: f.next[stream] +
				1}, now.marks[stream])
			if err != nil || ended {
				return err
			}
			f.next[stream] = max(f.next[stream], now.marks[stream])
		}
		for _, last := range []struct{ sent, now *deployments.WatchEvent }{{said, now.message}, {progress, now.progress}} {
			if last.now == last.sent {
				continue
			}
			if err := f.send(*last.now); err != nil {
				return err
			}
		}
		said, progress = now.message, now.progress
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
		case <-f.retryEnd():
		}
	}
}

// sendParts sends the events of the parts of a stream from p up to last. It reports a damaged part and continues with
// the next one.
func (f *follower) sendParts(ctx context.Context, p updates.Part, last int) (ended bool, err error) {
	for p.Number <= last {
		parts, err := f.feeds.read(ctx, f.Service, f.feed, p, min(last-p.Number+1, partsAtOnce))
		if err != nil && !damaged(err) {
			return false, err
		}
		if err == nil && len(parts) == 0 {
			return false, deployments.Errorf(deployments.CodeNotFound, "a part of the log of %s is not kept any more",
				p.Update)
		}
		for _, data := range parts {
			var unsent error
			err := eventlog.Each(data, func(e deployments.WatchEvent) error {
				if p.Stream == updates.ClientStream && e.Event != nil && !addNumber(&f.ranges, e.Event.Sequence) {
					return nil // the client has repeated a call
				}
				e.Stream = p.Update.Version + "/" + p.Stream
				ended = ended || e.End != nil
				unsent = f.send(e)
				return unsent
			})
			if unsent == nil {
				unsent = f.reportDamage(p, err)
			}
			if unsent != nil {
				return false, unsent
			}
			p.Number++
		}
		if err != nil {
			if err := f.reportDamage(p, err); err != nil {
				return false, err
			}
			p.Number++
		}
	}
	return ended, nil
}

// reportDamage sends a message about a part, if it is damaged.
func (f *follower) reportDamage(p updates.Part, err error) error {
	if err == nil {
		return nil
	}
	f.endDamaged = f.endDamaged || p.Stream == eventlog.RunStream
	e := serviceMessage(p.Update, fmt.Sprintf(
		"part %d of the log %q of update %s is damaged (%v): its events are missing here; the stack's state does "+
			"not depend on them",
		p.Number, p.Stream, p.Update.Version, err))
	e.Event.DiagnosticEvent.Severity = "warning"
	return f.send(e)
}

// lostEnd sends the end of an update whose log may have lost it, once the update has ended.
func (f *follower) lostEnd(ctx context.Context) (ended bool, err error) {
	if !f.endDamaged {
		return false, nil
	}
	info, err := f.Updates.Info(ctx, f.feed.update)
	if err != nil || info.Ended.IsZero() {
		return false, err
	}
	return true, f.send(deployments.WatchEvent{End: &info})
}

// retryEnd returns when to look again for an end that may be lost.
func (f *follower) retryEnd() <-chan time.Time {
	if !f.endDamaged {
		return nil
	}
	return time.After(slow)
}

// damaged reports whether an error is about a stored object that cannot be parsed.
func damaged(err error) bool {
	code := deployments.CodeOf(err)
	return err != nil && (code == deployments.CodeFormat || code == deployments.CodeInvalid)
}
