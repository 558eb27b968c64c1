package runlink

import (
	"context"
	"slices"

	"github.com/deployctl/deployctl/deployments"
)

// sendSignals sends what is queued by signal until the context or the Run ends.
func (l *Link) sendSignals(ctx context.Context) error {
	for {
		next := l.nextSignal()
		if len(next.Items) == 0 {
			select {
			case <-l.toSignal:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := reach(ctx, func() error { return l.runs.Signal(ctx, l.update, next) }); err != nil {
			return err
		}
		l.mu.Lock()
		l.acknowledge(len(next.Items))
		l.mu.Unlock()
	}
}

// nextSignal dequeues what goes into the next signal: as much of the queue as fits, but nothing that a poll or a result
// will carry.
func (l *Link) nextSignal() deployments.Messages {
	l.mu.Lock()
	defer l.mu.Unlock()
	if (!l.polling || l.holds > 0) && onlyCalls(l.sendable()) {
		return deployments.Messages{}
	}
	return l.dequeue()
}

// onlyCalls reports that every message waits for a reply, so that a poll that carries them is sure to return.
func onlyCalls(queue []queued) bool {
	return !slices.ContainsFunc(queue, func(q queued) bool { return q.call == 0 })
}

// dequeue removes what is sent next from the queue: as much of what may be sent as fits, and at least one message if
// there is one; l.mu is held.
func (l *Link) dequeue() deployments.Messages {
	m := deployments.Messages{Epoch: l.epoch, First: l.first}
	size := 0
	for _, q := range l.sendable() {
		size += q.size
		if size > maxSignal && len(m.Items) > 0 {
			break
		}
		m.Items = append(m.Items, q.message)
	}
	l.queue = l.queue[len(m.Items):]
	l.first += len(m.Items)
	l.inFlight += len(m.Items)
	return m
}

// acknowledge notes that n messages were delivered; l.mu is held.
func (l *Link) acknowledge(n int) {
	l.inFlight -= n
	if len(l.queue)+l.inFlight == 0 {
		l.drained.Broadcast()
	}
}
