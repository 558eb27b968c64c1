package workflows

import (
	"slices"

	"github.com/deployctl/deployctl/deployments"
)

// inbox orders the program's messages: within an epoch it delivers each number once, from 1 on; messages of an epoch
// that a later one has replaced are dropped.
type inbox struct {
	epoch    int
	received int // number of the last message of this epoch that was delivered
	early    []deployments.Messages
}

// take adds m and returns the messages that can be delivered now; none if m is a repeat or has come before its turn.
func (b *inbox) take(m deployments.Messages) []deployments.Message {
	if m.Epoch == 0 {
		return m.Items
	}
	if m.Epoch < b.epoch {
		return nil
	}
	if m.Epoch > b.epoch {
		b.epoch, b.received, b.early = m.Epoch, 0, nil
	}
	b.early = append(b.early, m)
	var out []deployments.Message
	for {
		i := slices.IndexFunc(b.early, func(m deployments.Messages) bool { return m.First <= b.received+1 })
		if i < 0 {
			return out
		}
		next := b.early[i]
		b.early = slices.Delete(b.early, i, i+1)
		if seen := b.received + 1 - next.First; seen < len(next.Items) {
			out = append(out, next.Items[seen:]...)
			b.received = next.First + len(next.Items) - 1
		}
	}
}
