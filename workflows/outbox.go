package workflows

import (
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// outbox keeps the replies to the program until it has acknowledged them. Cursors count the replies of one epoch.
type outbox struct {
	epoch   int
	acked   int            // replies of this epoch that are acknowledged
	replies []engine.Reply // those that are not
	ended   bool           // this epoch's program has exited: it needs no more
	closed  bool           // the run has ended
}

// begin turns to a new epoch; what was said to the one before is forgotten.
func (o *outbox) begin(epoch int) { *o = outbox{epoch: epoch, closed: o.closed} }

// add takes replies; those to a program that is gone are dropped.
func (o *outbox) add(replies ...engine.Reply) {
	for _, r := range replies {
		if r.Epoch == o.epoch && !o.ended {
			o.replies = append(o.replies, r)
		}
	}
}

// size estimates what the replies take that are not acknowledged.
func (o *outbox) size() int {
	n := 0
	for _, r := range o.replies {
		n += replySize(r)
	}
	return n
}

// ready reports that a poll can be answered with something.
func (o *outbox) ready(p deployments.Poll) bool {
	return o.over(p.Epoch) || p.Epoch == o.epoch && o.acked+len(o.replies) > p.Cursor
}

// over reports that an epoch gets no replies after those that are there.
func (o *outbox) over(epoch int) bool {
	return o.closed || epoch < o.epoch || epoch == o.epoch && o.ended
}

// acknowledge forgets the replies up to the poll's cursor.
func (o *outbox) acknowledge(p deployments.Poll) {
	if p.Epoch != o.epoch || p.Cursor <= o.acked {
		return
	}
	n := min(p.Cursor-o.acked, len(o.replies))
	o.replies, o.acked = o.replies[n:], o.acked+n
}

// answer gives the replies after the poll's cursor, as many as one answer holds.
func (o *outbox) answer(p deployments.Poll) deployments.Replies {
	a := deployments.Replies{Cursor: p.Cursor, Done: o.over(p.Epoch)}
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
