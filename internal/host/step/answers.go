package step

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"go.temporal.io/sdk/activity"
)

// Answers are the results of steps whose activities have ended, until Temporal has accepted them. A result that it does
// not accept, because the worker or Temporal was too slow for a timeout, is the only witness of what the step came to.
// Settle and AskFormerWorker ask for it here; it is stored, too, for the time when this worker has ended.
type Answers struct {
	mu      sync.Mutex
	byStep  map[stepOf]*answer
	byToken map[string]*answer // by the task token of their activities
	// spent are the last rounds whose calls may have had an effect, by operation.
	spent     map[UpdateOf]*sync.Map
	departure departure
}

// UpdateOf names an update of one stack. If all that is known of the stack is lost, the first update of the one that is
// made again in its place has the same name, and its workflow, too.
type UpdateOf struct {
	update deployments.UpdateName
	stack  string // the stack's identity
}

// Requested names the update of a request.
func Requested(u deployments.UpdateName, r deployments.UpdateRequest) UpdateOf {
	of := UpdateOf{update: u}
	if r.Submitted != nil {
		of.stack = r.Submitted.StackID
	}
	return of
}

// stepOf names a step of an update.
type stepOf struct {
	UpdateOf
	op int
}

// answer is the result of one attempt.
type answer struct {
	attempt *attempt
	token   string
	result  engine.StepFinished
	store   sync.Once // after the first report that was not accepted
}

// NewAnswers returns the answers of a worker that has given none yet.
func NewAnswers() *Answers {
	return &Answers{byStep: map[stepOf]*answer{}, byToken: map[string]*answer{}, spent: map[UpdateOf]*sync.Map{}}
}

func (at *attempt) stepOf() stepOf {
	return stepOf{Requested(at.session.update, at.session.request), at.step.Op}
}

// keep remembers the result of an attempt, whose activity is about to report it.
func (l *Answers) keep(a *answer) {
	l.drop(a.attempt.stepOf())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byStep[a.attempt.stepOf()], l.byToken[a.token] = a, a
}

// drop forgets the result of a step whose next attempt begins.
func (l *Answers) drop(step stepOf) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.byStep[step]; a != nil {
		delete(l.byStep, step)
		delete(l.byToken, a.token)
	}
}

// of returns the result of a step's attempt in a round, or of an earlier round if that had its effect.
func (l *Answers) of(step stepOf, round int) (engine.StepFinished, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.byStep[step]
	if a == nil || a.attempt.round > round || a.attempt.round < round && !hadEffect(a.result) {
		return engine.StepFinished{}, false
	}
	return a.result, true
}

// SpentBy returns the spent rounds of an update, which are known until it is forgotten.
func (l *Answers) SpentBy(of UpdateOf) *sync.Map {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent[of] == nil {
		l.spent[of] = &sync.Map{}
	}
	return l.spent[of]
}

// Updates returns the updates of which there are results, or a session was made.
func (l *Answers) Updates() map[deployments.UpdateName]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[deployments.UpdateName]bool{}
	for step := range l.byStep {
		all[step.update] = true
	}
	for of := range l.spent {
		all[of.update] = true
	}
	return all
}

// Forget forgets the results and the spent rounds of an update.
func (l *Answers) Forget(u deployments.UpdateName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for step, a := range l.byStep {
		if step.update == u {
			delete(l.byStep, step)
			delete(l.byToken, a.token)
		}
	}
	maps.DeleteFunc(l.spent, func(of UpdateOf, _ *sync.Map) bool { return of.update == u })
}

// remember keeps the result of the attempt until Temporal has it. An error after which the step is repeated is the
// answer that it had no effect, unless only words say so.
func (at *attempt) remember(ctx context.Context, result engine.StepFinished, err error) {
	_, rejected := failure.Rejection(err)
	switch {
	case err == nil:
	case rejected && at.evidence == nil, failure.IsType(err, deployments.ErrorPostponed) && !at.sent:
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
		case <-at.heartbeat.Stopping():
			_ = failure.Pause(ctx, lastLeave)
			cancel()
		case <-ctx.Done():
		}
	}()
	at.session.leaveOutcome(ctx, at.round, at.step, result)
}

// lastLeave is how long a stopping worker tries to store the result of a step.
const lastLeave = 20 * time.Second

// Reported says whether Temporal has accepted the end of an activity, by its task token.
func (l *Answers) Reported(token []byte, err error) {
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
