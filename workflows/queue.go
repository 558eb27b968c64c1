package workflows

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// queue decides which update of a stack runs when. It is the Stack workflow without Temporal.
//
// Invariant: at most one update is active, waiting updates have greater versions in the order in which they run, and
// each accepted update is started or withdrawn, once. The tests of the queue check it after every step.
type queue struct {
	deployments.StackInput
	// withdrawn are updates that end before they begin; the Stack workflow starts their Update workflows, which report
	// that.
	withdrawn []deployments.UpdateInput
}

// busy reports whether an update runs or waits.
func (q *queue) busy() bool { return q.Active != nil || len(q.Queue) > 0 }

// answered returns the index of the answer that a request with this id got; -1 if it got none.
func (q *queue) answered(requestID string) int {
	return slices.IndexFunc(q.Answered, func(a deployments.AnsweredRequest) bool { return a.RequestID == requestID })
}

// acceptedBefore returns what an earlier request with this id was answered, if it was accepted.
func (q *queue) acceptedBefore(requestID string) (deployments.Accepted, bool) {
	i := q.answered(requestID)
	if i < 0 || q.Answered[i].Rejected() {
		return deployments.Accepted{}, false
	}
	a := deployments.Accepted{Update: q.named(q.Answered[i].Accepted.Update.Version)}
	if i := q.waiting(a.Update); i >= 0 {
		a.Position, a.Behind = q.place(i)
	}
	return a, true
}

// waiting returns the index of an update that waits; -1 if it does not.
func (q *queue) waiting(u deployments.UpdateName) int {
	return slices.IndexFunc(q.Queue, func(w deployments.QueuedUpdate) bool { return w.Update == u })
}

// place returns the position of an update that waits, and the one that is active.
func (q *queue) place(index int) (position int, behind *deployments.UpdateInfo) {
	if q.Active == nil {
		return index, nil
	}
	active := describe(*q.Active)
	return index + 1, &active
}

// reject remembers that a request was rejected: a copy of it may not be accepted later, when nobody expects that.
func (q *queue) reject(r deployments.UpdateRequest) {
	if _, accepted := q.acceptedBefore(r.RequestID); accepted || r.Stack != q.Stack || r.Submitted == nil ||
		len(q.Answered) >= answersLimit {
		return
	}
	q.remember(r, deployments.Accepted{})
}

// remember keeps the answer to a request: the version, since the input of the next run must have room for many.
func (q *queue) remember(r deployments.UpdateRequest, a deployments.Accepted) {
	answer := deployments.AnsweredRequest{RequestID: r.RequestID, At: r.Submitted.At}
	answer.Accepted.Update.Version = a.Update.Version
	if i := q.answered(r.RequestID); i >= 0 {
		if before := q.Answered[i].At; before.After(answer.At) {
			answer.At = before
		}
		q.Answered = slices.Delete(q.Answered, i, i+1)
	}
	q.Answered = append(q.Answered, answer)
}

// forget forgets the answers to requests that cannot be repeated any more.
func (q *queue) forget(now time.Time) {
	old := 0
	for old < len(q.Answered)-answersKept && now.Sub(q.Answered[old].At) > deployments.RequestWindow {
		old++
	}
	q.Answered = slices.Delete(q.Answered, 0, old)
}

// fresh reports why a request is not taken though it was sealed for this stack: it may be a copy of one that was
// answered, or was kept back. The answers of this queue begin with its first run; what was submitted before that may
// have been answered by an earlier one.
func (q *queue) fresh(r deployments.UpdateRequest, now time.Time) error {
	q.forget(now)
	s := r.Submitted
	if s == nil {
		return deployments.Errorf(deployments.CodeForbidden, "the service has not submitted the request, so it is rejected")
	}
	if q.StackID != "" && s.StackID != q.StackID {
		return deployments.Errorf(deployments.CodeConflict, "the request was submitted for an earlier stack %s: submit it "+
			"again", q.Stack)
	}
	if age := now.Sub(s.At); age.Abs() > deployments.RequestWindow || s.At.Before(q.Since.Add(-clockSkew)) {
		return deployments.Errorf(deployments.CodeInvalid, "the request was submitted at %s, and it is %s by Temporal's "+
			"clock: submit it again, and check the clocks of the service and of Temporal if that does not help",
			s.At.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if i := q.answered(r.RequestID); i >= 0 && q.Answered[i].Rejected() && !s.At.After(q.Answered[i].At) {
		return deployments.Errorf(deployments.CodeInvalid, "the request was rejected already: submit it again")
	}
	if len(q.Answered) >= answersLimit {
		return deployments.Errorf(deployments.CodeConflict, "%s had %d requests within %s: wait, and submit it again",
			q.Stack, len(q.Answered), deployments.RequestWindow)
	}
	return nil
}

// submit accepts or rejects a request. head is the version of the stack, which is known when the queue is not busy.
func (q *queue) submit(r deployments.UpdateRequest, head int, now time.Time) (deployments.Accepted, error) {
	if err := q.validate(r); err != nil {
		return deployments.Accepted{}, err
	}
	if err := q.fresh(r, now); err != nil {
		return deployments.Accepted{}, err
	}
	// A confirmed request is rejected while another update runs; the client previews again and submits once more. The
	// updates that it supersedes must not run before that.
	if _, confirmed := r.Previewed(); confirmed && len(q.Queue) > 0 && r.OnBusy == deployments.OnBusySupersede {
		q.supersede("an update that is previewed again")
	}
	if err := cmp.Or(q.admit(r, head), q.hasVersion()); err != nil {
		return deployments.Accepted{}, err
	}
	q.Version++
	u := deployments.QueuedUpdate{Update: q.newest(), Request: r, Since: now}
	if r.OnBusy == deployments.OnBusySupersede {
		q.supersede("version " + u.Update.Version)
	}
	a := deployments.Accepted{Update: u.Update}
	q.Queue = append(q.Queue, u)
	a.Position, a.Behind = q.place(len(q.Queue) - 1)
	q.remember(r, a)
	return a, nil
}

// supersede withdraws all waiting updates.
func (q *queue) supersede(by string) {
	for _, w := range q.Queue {
		q.withdraw(w, "superseded by "+by)
	}
	q.Queue = nil
}

// validate reports why the request can never be one for this queue.
func (q *queue) validate(r deployments.UpdateRequest) error {
	switch {
	case r.Stack != q.Stack:
		return deployments.Errorf(deployments.CodeForbidden, "a request for %s was sent to %s, so it is rejected",
			r.Stack, q.Stack)
	case r.RequestID == "":
		return deployments.Errorf(deployments.CodeInvalid, "a request needs an id")
	case r.DryRun:
		return deployments.Errorf(deployments.CodeInvalid, "a preview does not queue")
	}
	return nil
}

// admit reports why the request is rejected now.
func (q *queue) admit(r deployments.UpdateRequest, head int) error {
	previewed, confirmed := r.Previewed()
	switch {
	case q.busy() && r.OnBusy == deployments.OnBusyFail:
		return deployments.Errorf(deployments.CodeConflict, "%s is busy with %s; wait for it, or use --on-busy queue",
			q.Stack, q.first())
	case q.busy() && confirmed:
		return deployments.Errorf(deployments.CodeConflict, "%s is being changed by %s since the preview; preview "+
			"again", q.Stack, q.first())
	case confirmed && previewed != head:
		return deployments.Errorf(deployments.CodeConflict, "%s has changed from version %d, which was previewed, to "+
			"%d; preview again", q.Stack, previewed, head)
	case len(q.Queue) >= queueLimit && r.OnBusy != deployments.OnBusySupersede:
		return deployments.Errorf(deployments.CodeConflict, "%d updates of %s wait already; cancel some, or use "+
			"--on-busy supersede", len(q.Queue), q.Stack)
	case q.busy() && q.size(r) > deployments.MaxRequestSize:
		return deployments.Errorf(deployments.CodeConflict, "the requests of the updates of %s that run and wait, each "+
			"with its configuration and environment, would be more than %d KiB: wait for %s, or cancel those that wait", q.Stack,
			deployments.MaxRequestSize>>10, q.first())
	}
	return nil
}

// size returns the bytes of the requests that the next run of the workflow gets with its input if r is accepted.
// Temporal limits the input.
func (q *queue) size(r deployments.UpdateRequest) (bytes int) {
	requests := []deployments.UpdateRequest{r}
	if q.Active != nil {
		requests = append(requests, q.Active.Request)
	}
	if r.OnBusy != deployments.OnBusySupersede {
		for _, w := range q.Queue {
			requests = append(requests, w.Request)
		}
	}
	for _, r := range requests {
		text, _ := json.Marshal(r) // it came as JSON
		bytes += len(text)
	}
	return bytes
}

// reserveVersion takes a version for a change that is not an update, such as an import. It fails while the queue is
// busy.
func (q *queue) reserveVersion() (int, error) {
	if q.busy() {
		return 0, deployments.Errorf(deployments.CodeConflict, "%s is busy with %s; wait for it, or end it with "+
			"`deployctl cancel`", q.Stack, q.first())
	}
	if err := q.hasVersion(); err != nil {
		return 0, err
	}
	q.Version++
	return q.Version, nil
}

// hasVersion reports that there is no further version.
func (q *queue) hasVersion() error {
	if q.Version < deployments.MaxVersion {
		return nil
	}
	return deployments.Errorf(deployments.CodeConflict, "%s has had version %d, which is the last: give the stack "+
		"another name by an export and an import", q.Stack, q.Version)
}

// first names the update that is active, or is next.
func (q *queue) first() string {
	if q.Active != nil {
		return "update " + q.Active.Update.Version
	}
	return "update " + q.Queue[0].Update.Version
}

func (q *queue) withdraw(u deployments.QueuedUpdate, why string) {
	q.withdrawn = append(q.withdrawn, deployments.UpdateInput{Update: u.Update, Request: u.Request, Withdrawn: why,
		Since: u.Since})
}

// requeue puts the request of a migrated update in front of all waiting updates.
func (q *queue) requeue(u deployments.UpdateName, r deployments.UpdateRequest, now time.Time) {
	r.RequestID, r.BaseVersion = r.RequestID+" after "+u.Version, nil // its base is not the previewed one
	q.precede(r, "update "+u.Version+" is repeated first", now)
}

// precede puts a request in front of all waiting updates, for a reason. They get new versions: a version lower than the
// stack's own can no longer be committed.
func (q *queue) precede(r deployments.UpdateRequest, why string, now time.Time) {
	waiting := q.Queue
	q.Version++
	q.Queue = []deployments.QueuedUpdate{{Update: q.newest(), Request: r, Since: now}}
	for _, w := range waiting {
		q.Version++
		q.withdrawn = append(q.withdrawn, deployments.UpdateInput{
			Update: w.Update, Request: w.Request, Withdrawn: why, Next: q.newest().Version, Since: w.Since,
		})
		w.Update = q.newest()
		q.Queue = append(q.Queue, w)
	}
}

// newest returns the name of the update with the last version that was given out.
func (q *queue) newest() deployments.UpdateName { return q.named(strconv.Itoa(q.Version)) }

func (q *queue) named(version string) deployments.UpdateName {
	return deployments.UpdateName{StackName: q.Stack, Version: version}
}

// remove withdraws a waiting update; false when it does not wait.
func (q *queue) remove(u deployments.UpdateName, why string) bool {
	i := q.waiting(u)
	if i < 0 {
		return false
	}
	q.withdraw(q.Queue[i], why)
	q.Queue = slices.Delete(q.Queue, i, i+1)
	return true
}

// next makes the first waiting update the active one, if none is active.
func (q *queue) next(now time.Time) bool {
	if q.Active != nil || len(q.Queue) == 0 {
		return false
	}
	u := q.Queue[0]
	u.Since = now
	q.Active, q.Queue = &u, slices.Delete(q.Queue, 0, 1)
	return true
}

// finish frees the stack if u is the active update.
func (q *queue) finish(u deployments.UpdateName) bool {
	if q.Active == nil || q.Active.Update != u {
		return false
	}
	q.Active = nil
	return true
}

// info describes the queue.
func (q *queue) info() deployments.StackInfo {
	i := deployments.StackInfo{Stack: q.Stack, Version: q.Version}
	if q.Active != nil {
		active := describe(*q.Active)
		active.Status, active.Error = deployments.StatusRunning, q.Trouble
		if q.Active.Request.Lease != nil {
			active.Lease = &deployments.ClientLease{}
		}
		i.Active = &active
	}
	for _, w := range q.Queue {
		i.Queued = append(i.Queued, describe(w))
	}
	return i
}

// describe returns the description of an update that has not ended.
func describe(u deployments.QueuedUpdate) deployments.UpdateInfo {
	return deployments.UpdateInfo{
		Update: u.Update, Kind: u.Request.Kind, Status: deployments.StatusQueued, Message: u.Request.Message,
		Initiator: u.Request.Initiator, Started: u.Since, Trace: u.Request.Trace,
	}
}

// adopt makes the update that the stack's head names the active one.
func (q *queue) adopt(h deployments.Head, now time.Time) {
	q.Active = &deployments.QueuedUpdate{
		Update: *h.Active, Request: deployments.UpdateRequest{Stack: q.Stack, Kind: engine.KindUp}, Since: now,
	}
	if r := h.Running; r != nil {
		q.Active.Since = r.Started
		q.Active.Request.Kind, q.Active.Request.Message, q.Active.Request.Initiator = r.Kind, r.Message, r.Initiator
		q.Active.Request.Trace = r.Trace
	}
}
