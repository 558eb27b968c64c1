package activities

import (
	"slices"

	"github.com/deployctl/deployctl/deployments"
)

// order puts messages in order, as a Run does: those of a poll and those of a signal may overtake one another.
type order struct {
	received int // the last number that was given out
	held     []deployments.Messages
}

// take gives out what is next because of m.
func (o *order) take(m deployments.Messages) []deployments.Message {
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
