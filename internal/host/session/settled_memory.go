package session

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/internal/sys/mempool"
)

// settledPatience is how long an update that settles what a lease left waits for the memory of its state before its
// claim is retried, and settledTime how long it keeps it: a provider that does not answer holds up nobody for longer.
const settledPatience, settledTime = time.Minute, 10 * time.Minute

// takeSettled takes the memory of the state of an update that settles what the client of another one left: nobody has
// asked for it, and the client has chosen how large it is. It is shared as that of the ends of leases is, apart from
// them: they wait for no provider. It is released with the session.
func (a *Sessions) takeSettled(ctx context.Context, s *Session) error {
	if s.request.Settle == nil {
		return nil
	}
	s.memory = a.StateMemory.Claim(s.update.Organization, nil)
	ctx = mempool.With(ctx, s.memory, settledPatience)
	if err := a.Store.TakeCheckpoint(ctx, s.update.StackName, s.base); err != nil {
		return err
	}
	time.AfterFunc(settledTime, s.memory.Release)
	return nil
}
