package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/deployctl/deployctl/statestore"
)

// auditEvery is how often old entries of the audit log are removed.
const auditEvery = 6 * time.Hour

// expiredKept is how long given and derived tokens are listed after they have expired.
const expiredKept = 24 * time.Hour

// collectAudit removes old entries of the audit log until ctx ends. Any number of processes may do it.
func collectAudit(ctx context.Context, store *statestore.Store, kept time.Duration, log *slog.Logger) error {
	for {
		if err := store.Access.CollectAudit(ctx, time.Now().Add(-kept)); err != nil && ctx.Err() == nil {
			log.Warn("old entries of the audit log were not removed", "error", err)
		}
		if err := store.Access.CollectTokens(ctx, time.Now().Add(-expiredKept)); err != nil && ctx.Err() == nil {
			log.Warn("expired tokens were not removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(auditEvery):
		}
	}
}
