package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore"
)

// recoverOrDiscard recovers an update. If nothing can, also no other attempt, it ends the update without a new version.
func (a *Activities) recoverOrDiscard(
	ctx context.Context, in deployments.RecoverInput,
) (out deployments.Recovered, err error) {
	err = translate(panics.Do("recovering update "+in.Update.String(), func() (err error) {
		out, err = a.resume(ctx, in)
		return err
	}))
	if err == nil || mayPass(err) {
		return out, err
	}
	info, err := a.discard(ctx, in, err)
	return deployments.Recovered{UpdateInfo: info}, translate(err)
}

// discard ends an update in its stack's history, after it has taken the stack from it. The stack keeps the state from
// before it. cause is why the update cannot be recovered.
func (a *Activities) discard(
	ctx context.Context, in deployments.RecoverInput, cause error,
) (deployments.UpdateInfo, error) {
	store := a.recovery.Store
	claim, err := store.ClaimOf(ctx, in.Update)
	if deployments.CodeOf(err) == deployments.CodeConflict { // it has committed, or never had the stack
		return deployments.UpdateInfo{}, cause
	}
	if err == nil {
		err = store.Commit(ctx, claim, statestore.Written{})
	}
	if err != nil {
		return deployments.UpdateInfo{}, err
	}
	info, err := store.Updates.Info(ctx, in.Update)
	if err != nil { // it cannot be read, or was never written
		info = deployments.UpdateInfo{Update: in.Update, Started: time.Now().UTC()}
	}
	why := cause.Error()
	if failure := (*temporal.ApplicationError)(nil); errors.As(cause, &failure) {
		why = failure.Message()
	}
	info.Status, info.Ended = string(engine.StatusFailed), time.Now().UTC()
	info.Error = fmt.Sprintf("%s; it could not be recovered (%s) and was discarded: what it did is not in the state. "+
		"Look for resources that it created, import or delete them, and run `deployctl refresh`", in.Error, why)
	return info, a.enter(ctx, info)
}

// mayPass reports whether what failed may succeed when it is repeated.
func mayPass(err error) bool {
	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) {
		return true // cancelled, or out of time
	}
	switch deployments.Code(failure.Type()) {
	case deployments.CodeUnavailable, deployments.CodeUnauthorized, deployments.CodeForbidden:
		return true
	}
	return false
}
