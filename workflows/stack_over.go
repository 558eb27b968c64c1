package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// headWhileAwaited is the change by which the head is read again and again while somebody waits for the active update.
const headWhileAwaited = "head-while-awaited"

// awaitWork waits until a busy Stack has something to do. While somebody waits for the end of the active update,
// it asks the head: after Temporal's database was set back, an update that ended long ago may seem to run, and nothing
// tells of its end.
func (s *stack) awaitWork(ctx workflow.Context) error {
	work := func() bool { return s.hasWork() || s.mayContinue(ctx) }
	if !s.endAwaited() {
		return workflow.Await(ctx, func() bool { return work() || s.endAwaited() })
	}
	if workflow.GetVersion(ctx, headWhileAwaited, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return workflow.Await(ctx, work)
	}
	some, err := workflow.AwaitWithTimeout(ctx, headPause, work)
	if err != nil || some {
		return err
	}
	return s.askHead(ctx)
}

// endAwaited reports whether somebody waits for the end of an active update that seems to run, or it seems to be over.
func (s *stack) endAwaited() bool {
	return s.watch != nil && s.Active != nil && (len(s.Queue) > 0 || s.awaited > 0 || s.over == s.Active.Update)
}

// noteOver notes whether the head, as it was just read, says that the active update is over, and returns whether it
// said so before, too. A claim of the stack is refused then (see statestore.Claim), so the update changes nothing more.
func (s *stack) noteOver() (again bool) {
	before := s.over
	s.over = deployments.UpdateName{}
	if s.Active == nil {
		return false
	}
	active := s.Active.Update
	if s.head.Next > active.Number() && (s.head.Active == nil || s.head.Active.Number() != active.Number()) {
		s.over = active
	}
	return s.over == active && before == active
}

// askHead reads the head, and frees the stack from an update that is over, and was when the head was read before: the
// signal of its end is sent right after it.
func (s *stack) askHead(ctx workflow.Context) error {
	if err := s.lock.Lock(ctx); err != nil { // no version is given out meanwhile
		return err
	}
	defer s.lock.Unlock()
	if err := s.readHead(ctx); err != nil {
		workflow.GetLogger(ctx).Warn("The head cannot be read; it is asked again.", "error", err)
		return nil
	}
	if s.receive(ctx); !s.noteOver() {
		return nil
	}
	in := deployments.RecoverInput{Update: s.Active.Update, Status: engine.StatusFailed,
		Error: "it ended before, and Temporal does not know of it", RequestKnown: s.Active.Request.RequestID != ""}
	out, err := s.tryRecover(ctx, in)
	if err != nil {
		workflow.GetLogger(ctx).Warn("An update that is over cannot be taken off its stack; it is tried again.",
			"update", in.Update.String(), "error", err)
		return nil
	}
	if s.freeStack(ctx, in.Update, out.Settle); s.head.Running == nil {
		return nil
	}
	if s.adoptActive(ctx); s.Active != nil { // of a time that Temporal does not know of
		s.watchActive(ctx)
	}
	return nil
}
