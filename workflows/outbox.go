package workflows

import (
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// outbox keeps the replies to the program until they are acknowledged. Cursors count the replies of one epoch.
type outbox struct {
	epoch   int
	acked   int            // number of acknowledged replies of this epoch
	replies []engine.Reply // not yet acknowledged
	ended   bool           // this epoch's program has exited and needs no more replies
	closed  bool           // the run has ended
}

// begin starts a new epoch; replies to the previous one are dropped.
func (o *outbox) begin(epoch int) { *o = outbox{epoch: epoch, closed: o.closed} }

// add appends replies; replies to a program that has exited are dropped.
func (o *outbox) add(replies ...engine.Reply) {
	for _, r := range replies {
		if r.Epoch == o.epoch && !o.ended {
			o.replies = append(o.replies, r)
		}
	}
}

// size estimates the size of the replies that are not acknowledged.
func (o *outbox) size() int {
	n := 0
	for _, r := range o.replies {
		n += replySize(r)
	}
	return n
}

// ready reports whether a poll can be answered now.
func (o *outbox) ready(p deployments.Poll) bool {
	return o.finished(p.Epoch) || p.Epoch == o.epoch && o.acked+len(o.replies) > p.Cursor
}

// finished reports whether an epoch gets no replies besides those that are here.
func (o *outbox) finished(epoch int) bool {
	return o.closed || epoch < o.epoch || epoch == o.epoch && o.ended
}

// acknowledge drops the replies up to the poll's cursor.
func (o *outbox) acknowledge(p deployments.Poll) {
	if p.Epoch != o.epoch || p.Cursor <= o.acked {
		return
	}
	n := min(p.Cursor-o.acked, len(o.replies))
	o.replies, o.acked = o.replies[n:], o.acked+n
}

// next returns the replies after the poll's cursor, as many as one payload holds.
func (o *outbox) next(p deployments.Poll) deployments.Replies {
	a := deployments.Replies{Cursor: p.Cursor, Done: o.finished(p.Epoch)}
	if p.Epoch != o.epoch || p.Cursor < o.acked {
		return a
	}
	rest := o.replies[min(p.Cursor-o.acked, len(o.replies)):]
	n := fits(len(rest), replyItems, replyBytes, func(i int) int { return replySize(rest[i]) })
	a.Replies = rest[:n:n]
	a.Cursor += n
	a.Done = a.Done && n == len(rest)
	return a
}
