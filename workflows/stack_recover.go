package workflows

import (
	"errors"
	"fmt"
	"strconv"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// trouble keeps a Stack from continuing: its head cannot be read, or its active update closed without a commit and
// cannot be recovered. The Stack keeps its queue and retries after growing pauses, and whenever a request comes; if
// that attempt fails too, the request is rejected with the reason.
type trouble struct {
	reason     error // for clients
	failed     int   // attempts in a row
	retryTimer workflow.Future
	stopTimer  workflow.CancelFunc // cancels retryTimer
}

// noteTrouble records a failed attempt and starts the timer of the next one.
func (s *stack) noteTrouble(ctx workflow.Context, what string, err error) {
	failed := 1
	if s.trouble != nil {
		failed += s.trouble.failed
		s.trouble.stopTimer()
	}
	s.attempts++
	pause := min(firstRetryPause<<min(failed-1, 16), longestRetryPause)
	timing, stop := workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(timing, pause, workflow.TimerOptions{Summary: "try again"})
	text := fmt.Sprintf("%s: %s. The service retries, and so does every command for the stack: once the cause "+
		"is repaired, run the command again", what, messageOf(err))
	s.trouble = &trouble{clientError(deployments.Errorf(codeOf(err), "%s", text)), failed, timer, stop}
	s.Trouble = text
	workflow.SetCurrentDetails(ctx, clip(text, detailsBytes))
	workflow.GetLogger(ctx).Warn("The stack cannot go on.", "error", err, "again", pause)
}

// clearTrouble records that the Stack can continue.
func (s *stack) clearTrouble(ctx workflow.Context) {
	if s.trouble == nil {
		return
	}
	s.trouble.stopTimer()
	s.trouble, s.Trouble = nil, ""
	workflow.SetCurrentDetails(ctx, "")
}

// codeOf returns the code of an activity's error for a client. CodeConflict is not among them: it would make clients
// wait for another update.
func codeOf(err error) deployments.Code {
	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) {
		return deployments.CodeUnavailable // its worker was lost
	}
	switch code := deployments.Code(failure.Type()); code {
	case deployments.CodeInvalid, deployments.CodeUnauthorized, deployments.CodeForbidden, deployments.CodeUnavailable,
		deployments.CodeFormat:
		return code
	}
	return deployments.CodeInternal
}

// retryDue reports whether an attempt may begin: there was none, its pause is over, or a client asks for one.
func (s *stack) retryDue() bool {
	return s.trouble == nil || s.retryRequested || s.trouble.retryTimer.IsReady()
}

// ready waits until requests can be handled. If the last attempt failed, it waits for another one and returns its
// error.
func (s *stack) ready(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return s.loaded || s.trouble != nil }); err != nil {
		return err
	}
	if s.trouble == nil {
		return nil
	}
	before := s.attempts
	s.retryRequested = true
	if err := workflow.Await(ctx, func() bool {
		return s.loaded && s.trouble == nil ||
			s.attempts > before
	}); err != nil {
		return err
	}
	if s.trouble != nil {
		return s.trouble.reason
	}
	return nil
}

// handleRecover handles the update recover: it returns once the active update that closed without a commit has been
// recovered or discarded, or the reason why it cannot be.
func (s *stack) handleRecover(ctx workflow.Context, r deployments.Recovery) error {
	ctx = s.handling(ctx)
	if r.Discard != (deployments.UpdateName{}) {
		s.discard = r.Discard
		defer func() { s.discard = deployments.UpdateName{} }()
	}
	before := s.attempts
	if err := s.ready(ctx); err != nil {
		return err
	}
	if err := s.lock.Lock(ctx); err != nil {
		return err
	}
	err := s.refreshHead(ctx)
	s.lock.Unlock()
	if err != nil {
		return clientError(err)
	}
	s.awaited++
	err = workflow.Await(ctx, func() bool { return s.Active == nil || s.attempts > before })
	s.awaited--
	if err == nil && s.trouble != nil {
		err = s.trouble.reason
	}
	return err
}

// watchEnded handles the end of the watch of the active update.
func (s *stack) watchEnded(ctx workflow.Context) {
	watch := s.watch
	s.watch = nil
	why := watch.closed.Get(ctx, nil)
	if watch.polled && why != nil { // the update may still run
		s.noteTrouble(ctx, fmt.Sprintf("cannot find out whether %s still runs", s.first()), why)
		return
	}
	in := deployments.RecoverInput{Update: s.Active.Update, Status: engine.StatusFailed,
		Error: "its workflow was ended from outside"}
	var failure *temporal.ApplicationError
	if errors.As(why, &failure) {
		in.Error = failure.Message()
		if failure.Type() == string(deployments.CodeCancelled) {
			in.Status = engine.StatusCancelled
		}
	}
	s.toRecover = &in
}

// recover ends the active update, whose workflow closed without a commit, once nothing of it is running any more. If
// the update's last signal has come in the same moment, there is nothing to recover.
func (s *stack) recover(ctx workflow.Context) error {
	s.retryRequested = false
	if err := s.lock.Lock(ctx); err != nil { // until recover returns, no version is given out
		return err
	}
	defer s.lock.Unlock()
	if s.receive(ctx); s.Active == nil {
		return nil
	}
	if s.toRecover == nil {
		s.clearTrouble(ctx)
		s.watchActive(ctx)
		return nil
	}
	in := *s.toRecover
	in.Next, in.RequestKnown = strconv.Itoa(s.Version+1), s.Active.Request.RequestID != ""
	in.Discard = s.discard == in.Update
	out, err := s.tryRecover(ctx, in)
	if err != nil {
		s.noteTrouble(ctx, fmt.Sprintf("%s of %s ended without a commit and cannot be recovered", s.first(), s.Stack),
			err)
		return nil
	}
	if in.RequestKnown {
		out.Request = s.Active.Request
	}
	s.freeStack(ctx, in.Update, out.Settle)
	if out.Next != "" {
		s.requeue(in.Update, out.Request, workflow.Now(ctx))
	}
	return nil
}

// tryRecover makes one attempt to recover.
func (s *stack) tryRecover(ctx workflow.Context, in deployments.RecoverInput) (out deployments.Recovered, err error) {
	var host string
	stopping := withBriefRetries(onShared(ctx, "end what still runs of "+s.first()))
	if err := execute(stopping, deployments.ActivityTerminateRun, in.Update).Get(ctx, &host); err != nil {
		return out, err
	}
	if host != "" {
		release(ctx, in.Update, []string{host})
	}
	recovering := withBriefRetries(onLong(ctx, "recover "+s.first()))
	err = execute(recovering, deployments.ActivityRecoverUpdate, in).Get(ctx, &out)
	if err == nil && out.Update != in.Update { // not from a worker: somebody completed the activity by hand
		err = temporal.NewApplicationError("its recovery was completed with another result",
			string(deployments.CodeInternal))
	}
	return out, err
}

// freeStack frees the stack if u is the active update. What is to be settled then is settled first.
func (s *stack) freeStack(ctx workflow.Context, u deployments.UpdateName, settle *deployments.UpdateRequest) {
	if !s.finish(u) {
		return
	}
	if settle != nil {
		s.precede(*settle, "what update "+u.Version+" left pending is settled first", workflow.Now(ctx))
	}
	s.toRecover = nil
	s.clearTrouble(ctx)
	if s.watch != nil {
		s.watch.cancel()
		s.watch = nil
	}
}

// loadActive takes the active update from the input of this run or from the head. It retries until the head can be
// read, because the update that the head names has the stack.
func (s *stack) loadActive(ctx workflow.Context) error {
	for s.Active == nil && s.Continues == "" {
		err := s.readHead(ctx)
		if err == nil {
			s.adoptActive(ctx)
			break
		}
		s.retryRequested = false
		s.noteTrouble(ctx, fmt.Sprintf("the head of %s cannot be read", s.Stack), err)
		if err := workflow.Await(ctx, s.retryDue); err != nil {
			return err
		}
	}
	s.clearTrouble(ctx)
	s.loaded = true
	if s.Active != nil {
		s.watchActive(ctx)
	}
	return nil
}

// adoptActive takes the active update from the head.
func (s *stack) adoptActive(ctx workflow.Context) {
	if a := s.head.Active; a != nil && a.Number() > 0 { // not a rename or a removal
		s.adopt(s.head, workflow.Now(ctx))
	}
}

// withBriefRetries makes an activity fail after a few attempts: the Stack reports the failure and retries itself.
func withBriefRetries(ctx workflow.Context) workflow.Context {
	return workflow.WithRetryPolicy(ctx, retryBriefly)
}
