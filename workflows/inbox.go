package workflows

import (
	"slices"

	"github.com/deployctl/deployctl/deployments"
)

// inbox puts the program's messages in order: of each epoch every number once, from 1, and none of an epoch that
// a later one has taken the place of.
type inbox struct {
	epoch    int
	received int // the last number of this epoch that was given out
	held     []deployments.Messages
}

// take gives out what is next because of m; nothing if m is old or before its turn.
func (b *inbox) take(m deployments.Messages) []deployments.Message {
	if m.Epoch == 0 {
		return m.Items
	}
	if m.Epoch < b.epoch {
		return nil
	}
	if m.Epoch > b.epoch {
		b.epoch, b.received, b.held = m.Epoch, 0, nil
	}
	b.held = append(b.held, m)
	var out []deployments.Message
	for {
		i := slices.IndexFunc(b.held, func(m deployments.Messages) bool { return m.First <= b.received+1 })
		if i < 0 {
			return out
		}
		next := b.held[i]
		b.held = slices.Delete(b.held, i, i+1)
		if seen := b.received + 1 - next.First; seen < len(next.Items) {
			out = append(out, next.Items[seen:]...)
			b.received = next.First + len(next.Items) - 1
		}
	}
}
