// Package runlinktest holds what tests need in the place of a Run workflow.
package runlinktest

import (
	"slices"

	"github.com/deployctl/deployctl/deployments"
)

// Order puts messages in order, as a Run does: those of a poll and those of a signal may overtake each other.
type Order struct {
	received int // the last number that was returned
	held     []deployments.Messages
}

// Take returns the messages that are in order once m has arrived; it keeps the others.
func (o *Order) Take(m deployments.Messages) []deployments.Message {
	o.held = append(o.held, m)
	var out []deployments.Message
	for {
		i := slices.IndexFunc(o.held, func(m deployments.Messages) bool { return m.First <= o.received+1 })
		if i < 0 {
			return out
		}
		next := o.held[i]
		o.held = slices.Delete(o.held, i, i+1)
		if seen := o.received + 1 - next.First; seen < len(next.Items) {
			out = append(out, next.Items[seen:]...)
			o.received = next.First + len(next.Items) - 1
		}
	}
}
