package worker

import (
	"context"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// closeLog writes the end of an update's event log after its last save.
func closeLog(ctx context.Context, store *statestore.Store, info deployments.UpdateInfo, saves int) error {
	data, err := activities.EncodeEvents([]deployments.WatchEvent{{End: &info}})
	if err != nil {
		return err
	}
	return store.AppendEvents(ctx, statestore.Part{Update: info.Update, Stream: activities.RunStream, Number: saves + 1}, data)
}
