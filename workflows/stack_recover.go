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

// trouble is what keeps a Stack from going on: its head cannot be read, or its active update, which closed without
// settling, cannot be recovered. The Stack keeps its queue meanwhile. It tries again after a growing pause, and
// whenever a request comes, which is answered with the reason if that still fails.
type trouble struct {
	reason error // a refusal for clients
	failed int   // attempts in a row
	again  workflow.Future
	stop   workflow.CancelFunc // of the timer
}

// fail notes an attempt that failed, and when the next one begins.
func (s *stack) fail(ctx workflow.Context, what string, err error) {
	failed := 1
	if s.trouble != nil {
		failed += s.trouble.failed
		s.trouble.stop()
	}
	s.attempts++
	pause := min(firstRepair<<min(failed-1, 16), longestRepair)
	timing, stop := workflow.WithCancel(ctx)
	timer := workflow.NewTimerWithOptions(timing, pause, workflow.TimerOptions{Summary: "try again"})
	text := fmt.Sprintf("%s: %s. It is tried again by itself, and with every command for the stack: once the cause "+
		"is repaired, "+
		"run the command again", what, sentence(err))
	s.trouble = &trouble{refusal(deployments.Errorf(codeOf(err), "%s", text)), failed, timer, stop}
	s.Trouble = text
	workflow.SetCurrentDetails(ctx, clip(text, detailsBytes))
	workflow.GetLogger(ctx).Warn("The stack cannot go on.", "error", err, "again", pause)
}

// relieve notes that the Stack can go on.
func (s *stack) relieve(ctx workflow.Context) {
	if s.trouble == nil {
		return
	}
	s.trouble.stop()
	s.trouble, s.Trouble = nil, ""
	workflow.SetCurrentDetails(ctx, "")
}

// codeOf is the code of an activity's error, as a refusal has it. A conflict would have clients wait for the update
// in the way.
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

// due reports that an attempt is to begin: there was none, its pause is over, or somebody asks.
func (s *stack) due() bool {
	return s.trouble == nil || s.asked || s.trouble.again.IsReady()
}

// ready waits until requests can be answered. What failed before is tried again first; if it fails again, the error
// says why.
func (s *stack) ready(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return s.opened || s.trouble != nil }); err != nil {
		return err
	}
	if s.trouble == nil {
		return nil
	}
	before := s.attempts
	s.asked = true
	if err := workflow.Await(ctx, func() bool {
		return s.opened && s.trouble == nil ||
			s.attempts > before
	}); err != nil {
		return err
	}
	if s.trouble != nil {
		return s.trouble.reason
	}
	return nil
}

// recalled answers the update handler recover: it returns when the active update that closed without settling has
// been recovered, with the reason when it cannot be.
func (s *stack) recalled(ctx workflow.Context) error {
	ctx = lasting(ctx)
	before := s.attempts
	if err := s.ready(ctx); err != nil {
		return err
	}
	err := workflow.Await(ctx, func() bool { return s.Active == nil || s.attempts > before })
	if err == nil && s.trouble != nil {
		err = s.trouble.reason
	}
	return err
}

// closed notes that the watch of the active update has ended, and with what.
func (s *stack) closed(ctx workflow.Context) {
	watch := s.watch
	s.watch = nil
	why := watch.closed.Get(ctx, nil)
	if watch.polled && why != nil { // it may still run
		s.fail(ctx, fmt.Sprintf("whether %s still runs cannot be found out", s.first()), why)
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
	s.remains = &in
}

// recover ends the active update in the place of its workflow, which closed without settling, once nothing of it moves
// any more. The update's last signal may have come in the same moment; then there is nothing to do.
func (s *stack) recover(ctx workflow.Context) error {
	s.asked = false
	if err := s.lock.Lock(ctx); err != nil { // nobody else gets the next version
		return err
	}
	defer s.lock.Unlock()
	if s.receive(ctx); s.Active == nil {
		return nil
	}
	if s.remains == nil {
		s.relieve(ctx)
		s.observe(ctx)
		return nil
	}
	in := *s.remains
	in.Next, in.Held = strconv.Itoa(s.Version+1), s.Active.Request.RequestID != ""
	out, err := s.recovered(ctx, in)
	if err != nil {
		s.fail(ctx, fmt.Sprintf("%s of %s ended before it had settled, and cannot be recovered", s.first(), s.Stack),
			err)
		return nil
	}
	if in.Held {
		out.Request = s.Active.Request
	}
	s.free(ctx, in.Update)
	if out.Next != "" {
		s.goOn(in.Update, out.Request, workflow.Now(ctx))
	}
	return nil
}

// recovered makes one attempt.
func (s *stack) recovered(ctx workflow.Context, in deployments.RecoverInput) (out deployments.Recovered, err error) {
	var host string
	stopping := reporting(onShared(ctx, "stop what is left"))
	if err := workflow.ExecuteActivity(stopping, deployments.ActivityStop, in.Update).Get(ctx, &host); err != nil {
		return out, err
	}
	if host != "" {
		release(ctx, in.Update, []string{host})
	}
	recovering := reporting(onLong(ctx, "recover "+s.first()))
	err = workflow.ExecuteActivity(recovering, deployments.ActivityRecover, in).Get(ctx, &out)
	return out, err
}

// free frees the stack if u is the active update.
func (s *stack) free(ctx workflow.Context, u deployments.UpdateName) {
	if !s.finish(u) {
		return
	}
	s.remains = nil
	s.relieve(ctx)
	if s.watch != nil {
		s.watch.cancel()
		s.watch = nil
	}
}

// begin takes up what was under way: carried over by continue-as-new, or named by the head. A head that cannot be
// read is read again: whatever it names has the stack.
func (s *stack) begin(ctx workflow.Context) error {
	for s.Active == nil && len(s.Answers) == 0 {
		err := s.read(ctx)
		if err == nil {
			if a := s.head.Active; a != nil && a.Number() > 0 { // not a renaming or a removal
				s.adopt(s.head, workflow.Now(ctx))
			}
			break
		}
		s.asked = false
		s.fail(ctx, fmt.Sprintf("where %s stands cannot be read", s.Stack), err)
		if err := workflow.Await(ctx, s.due); err != nil {
			return err
		}
	}
	s.relieve(ctx)
	s.opened = true
	if s.Active != nil {
		s.observe(ctx)
	}
	return nil
}

// reporting are the options of an activity whose failure the Stack reports, and tries again itself.
func reporting(ctx workflow.Context) workflow.Context {
	return workflow.WithRetryPolicy(ctx, briefly)
}
