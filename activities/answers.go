package activities

import (
	"context"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"go.temporal.io/sdk/activity"
)

// answers are the results of steps whose activities have ended, until Temporal has accepted them. A result that it does
// not accept, because the worker or Temporal was too slow for a timeout, is the only witness of what the step came to.
// Settle and Inquire ask for it here; it is stored, too, for the time when this worker has ended.
type answers struct {
	mu      sync.Mutex
	byStep  map[stepOf]*answer
	byToken map[string]*answer // by the task token of their activities
}

// updateOf names an update of one stack. If all that is known of the stack is lost, the first update of the one that is
// made again in its place has the same name, and its workflow, too.
type updateOf struct {
	update deployments.UpdateName
	stack  string // the stack's identity
}

// requested names the update of a request.
func requested(u deployments.UpdateName, r deployments.UpdateRequest) updateOf {
	of := updateOf{update: u}
	if r.Submitted != nil {
		of.stack = r.Submitted.StackID
	}
	return of
}

// stepOf names a step of an update.
type stepOf struct {
	updateOf
	op int
}

// answer is the result of one attempt.
type answer struct {
	attempt *attempt
	token   string
	result  engine.StepFinished
	store   sync.Once // after the first report that was not accepted
}

func newAnswers() *answers {
	return &answers{byStep: map[stepOf]*answer{}, byToken: map[string]*answer{}}
}

func (at *attempt) stepOf() stepOf {
	return stepOf{requested(at.session.update, at.session.request), at.step.Op}
}

// keep remembers the result of an attempt, whose activity is about to report it.
func (l *answers) keep(a *answer) {
	l.drop(a.attempt.stepOf())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byStep[a.attempt.stepOf()], l.byToken[a.token] = a, a
}

// drop forgets the result of a step whose next attempt begins.
func (l *answers) drop(step stepOf) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.byStep[step]; a != nil {
		delete(l.byStep, step)
		delete(l.byToken, a.token)
	}
}

// of returns the result of a step's attempt in a round, or of an earlier round if that had its effect.
func (l *answers) of(step stepOf, round int) (engine.StepFinished, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.byStep[step]
	if a == nil || a.attempt.round > round || a.attempt.round < round && !hadEffect(a.result) {
		return engine.StepFinished{}, false
	}
	return a.result, true
}

// updates returns the updates of which there are results.
func (l *answers) updates() map[deployments.UpdateName]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[deployments.UpdateName]bool{}
	for step := range l.byStep {
		all[step.update] = true
	}
	return all
}

// forget forgets the results of an update.
func (l *answers) forget(u deployments.UpdateName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for step, a := range l.byStep {
		if step.update == u {
			delete(l.byStep, step)
			delete(l.byToken, a.token)
		}
	}
}

// Reported tells the activities whether Temporal has accepted the end of one of them, by its task token.
func Reported(a *Activities, token []byte, err error) {
	l := a.answers
	l.mu.Lock()
	kept := l.byToken[string(token)]
	l.mu.Unlock()
	if kept != nil && err == nil {
		l.drop(kept.attempt.stepOf())
	}
	// That there was no effect is true only until the next attempt, so it is not stored.
	if kept != nil && err != nil && kept.result.Outcome != engine.OutcomeAbsent {
		kept.store.Do(func() { go kept.attempt.leave(context.Background(), kept.result) })
	}
}

// remember keeps the result of the attempt until Temporal has it. An error after which the step is repeated is the
// answer that it had no effect, unless only words say so.
func (at *attempt) remember(ctx context.Context, result engine.StepFinished, err error) {
	_, rejected := rejection(err)
	switch {
	case err == nil:
	case rejected && at.evidence == nil, isType(err, deployments.ErrorPostponed) && !at.sent:
		result = absent
		result.Op = at.step.Op
	default:
		return
	}
	token := string(activity.GetInfo(ctx).TaskToken)
	at.session.answers.keep(&answer{attempt: at, token: token, result: result})
}

// leave stores the result where Settle looks first, because the activity may be unable to report it. It retries until
// the result is stored; once the worker stops, for at most lastLeave.
func (at *attempt) leave(ctx context.Context, result engine.StepFinished) {
	at.keeping.Store(true)
	defer at.keeping.Store(false)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		select {
		case <-at.heartbeat.stopping:
			_ = pause(ctx, lastLeave)
			cancel()
		case <-ctx.Done():
		}
	}()
	at.session.leaveOutcome(ctx, at.round, at.step, result)
}

// lastLeave is how long a stopping worker tries to store the result of a step, and which calls it has sent.
const lastLeave = 20 * time.Second
