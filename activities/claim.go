package activities

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/session"
	"github.com/deployctl/deployctl/internal/host/stackconfig"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"go.temporal.io/sdk/activity"
)

// ReadHead returns the version of a stack, its next version and its active update. An update is mostly about to begin
// then, so what its claim will ask for is read, too.
func (a *Activities) ReadHead(ctx context.Context, name deployments.StackName) (deployments.Head, error) {
	var h statestore.Head
	var next int
	reading, reads := panics.NewGroup(ctx, "reading a head")
	reading.Go(func() (err error) {
		h, next, err = a.Store.HeadAndNext(reads, name) // the history also has updates that never held the claim
		return err
	})
	reading.Go(func() error { a.expect(reads, name.Organization); return nil })
	if err := reading.Wait(); err != nil {
		return deployments.Head{}, failure.AtOnce(err)
	}
	var err error
	head := h.Contract(name)
	head.Next = next
	if a.Unseen != nil {
		if head.Next, err = a.Unseen(ctx, name, max(head.Next, head.Version+1)); err != nil {
			return head, failure.AtOnce(err)
		}
	}
	if head.Active != nil {
		// after an error it has not begun, or watchers just see less
		if info, err := a.Store.Updates.Info(ctx, *head.Active); err == nil {
			head.Running = &info
		}
	}
	return head, nil
}

// ClaimStack makes this worker the host of an update and, if the update changes the stack, the only writer of the
// stack's head. Claiming twice with the same number is the same as claiming once.
func (a *Activities) ClaimStack(ctx context.Context, in deployments.ClaimInput) (deployments.Claimed, error) {
	claimed, err := a.claim(ctx, in)
	return claimed, failure.AtOnce(err)
}

func (a *Activities) claim(ctx context.Context, in deployments.ClaimInput) (deployments.Claimed, error) {
	u, r := in.Update, in.Request
	if r.Lease != nil || r.Submitted == nil {
		return deployments.Claimed{}, notSubmitted(u)
	}
	full := a.sessions.RoomFor(ctx, u)
	asked, err := a.ask(ctx, in, full == nil)
	if err != nil || asked.queue != "" {
		return deployments.Claimed{Queue: asked.queue}, err
	}
	if full != nil {
		return deployments.Claimed{}, full
	}
	if asked.held != "" {
		return deployments.Claimed{}, failure.Later(ctx, asked.held, longestHold)
	}
	if asked.refused != nil {
		return deployments.Claimed{}, asked.refused
	}
	in.Request.Profile = asked.profile
	if err := a.withinQuota(ctx, in); err != nil {
		return deployments.Claimed{}, err
	}
	c, version, missing, err := a.fence(ctx, in, asked.head)
	if err != nil {
		return deployments.Claimed{}, err
	}
	if previewed, confirmed := r.Previewed(); confirmed && previewed != c.Base {
		return deployments.Claimed{}, deployments.Errorf(deployments.CodeConflict,
			"the stack has moved on to version %d since version %d was previewed; preview again", c.Base, previewed)
	}
	s, generations, err := a.beginHosting(ctx, in, c)
	if err != nil {
		return deployments.Claimed{}, err
	}
	if in.Number <= 1 {
		s.Greet(missing)
	}
	goal, known := goalOf(u, version, r, s.Granted()), s.Update()
	goal.StackID, goal.Identity, goal.Look, goal.Generations =
		known.StackID, known.Identity.Seeds, known.Own.Look, generations
	return deployments.Claimed{
		Worker: a.Worker, Base: c.Base, Goal: goal, HasProgram: r.HasProgram(),
		Retries: known.Own.Retries,
	}, nil
}

// beginHosting opens the session of an update that has its stack, while its description is stored, and begins what it
// will need. It returns the generations of the next creates, too.
func (a *Activities) beginHosting(
	ctx context.Context, in deployments.ClaimInput, c statestore.Claim,
) (s *session.Session, generations map[string]int, err error) {
	var since time.Time
	beginning, begins := panics.NewGroup(ctx, "opening the session of an update")
	beginning.Go(func() (err error) {
		if s, err = a.sessions.Open(begins, in.Update, c.Base, in.Request, in.Number > 1); err == nil {
			go s.Prepare(context.WithoutCancel(ctx))
		}
		return err
	})
	beginning.Go(func() (err error) {
		since, err = a.describe(begins, in, c)
		return err
	})
	beginning.Go(func() (err error) {
		generations, err = a.Store.Identities.Generations(begins, in.Update.StackName)
		return err
	})
	if err := beginning.Wait(); err != nil {
		if errors.Is(err, errOver) {
			a.sessions.End(ctx, in.Update)
		}
		return nil, nil, err
	}
	s.Begun(since)
	return s, generations, nil
}

// errOver is in the chain of the error about an update that was ended while its claim was under way.
var errOver = errors.New("it is over")

// describe stores the description of an update that has its stack, and returns since when it runs. If the update was
// ended while its claim was under way, the claim ends, too.
func (a *Activities) describe(ctx context.Context, in deployments.ClaimInput, c statestore.Claim) (time.Time, error) {
	u, since := in.Update, time.Now().UTC()
	there, begun, err := a.Store.Updates.BeginInfo(ctx, running(u, in.Request, since))
	if err != nil || begun {
		return since, err
	}
	if !there.Ended.IsZero() && changesHead(u, in.Request) {
		if err := a.Store.Commit(ctx, c, statestore.Written{}); err != nil {
			return since, err
		}
		return since, &deployments.Error{Code: deployments.CodeConflict, Err: errOver,
			Message: fmt.Sprintf("update %s is over: %s", u, there.Status)}
	}
	if !there.Started.IsZero() {
		since = there.Started
	}
	return since, a.Store.Updates.PutInfo(ctx, running(u, in.Request, since))
}

// putRequest stores the request of an update that a worker hosts. That of a preview is stored once, by the workflow run
// that executes the preview, and so a preview is executed once: nothing else says that it was.
func (a *Activities) putRequest(ctx context.Context, in deployments.ClaimInput) error {
	u, r := in.Update, in.Request
	if changesHead(u, r) {
		return a.Store.Updates.PutRequest(ctx, u, r)
	}
	if in.Number <= 1 && time.Since(r.Submitted.At) > deployments.PreviewWindow {
		return deployments.Errorf(deployments.CodeConflict, "the preview was asked for at %s, and no worker has begun it "+
			"since then: ask for another one", r.Submitted.At.Format(time.RFC3339))
	}
	by := *r.Submitted
	by.Run = workflowRun(ctx)
	r.Submitted = &by
	return a.Store.Updates.BeginPreview(ctx, u, r)
}

// notSubmitted returns the error about a request that was not submitted as one for this workflow.
func notSubmitted(u deployments.UpdateName) error {
	return deployments.Errorf(deployments.CodeForbidden, "the service has not submitted update %s in this way, so it "+
		"does not begin", u)
}

// claimant describes who claims the stack of an update for the workflow run of this activity.
func claimant(
	ctx context.Context, u deployments.UpdateName, r deployments.UpdateRequest, writer string,
) statestore.Claimant {
	return statestore.Claimant{Update: u, RequestID: r.RequestID, StackID: r.Submitted.StackID, Run: workflowRun(ctx),
		Writer: writer}
}

// workflowRun returns the workflow run of an activity.
func workflowRun(ctx context.Context) string { return activity.GetInfo(ctx).WorkflowExecution.RunID }

// permit fails if the caller may no longer deploy to the stack, because an update may wait in the queue for long. An
// update that has begun continues, so that nothing is left half done; only when it is migrated to another build is it
// checked again.
func (a *Activities) permit(ctx context.Context, in deployments.ClaimInput) error {
	if in.Number > 1 || in.Request.Authority == nil {
		return nil
	}
	err := a.Store.Access.Permit(ctx, *in.Request.Authority, in.Update.StackName, deployments.AuditEntry{
		Request: in.Request.RequestID, Peer: "queue", Method: "Deployments/Submit",
		Subject: "kind=" + string(in.Request.Kind) + " version=" + in.Update.Version,
	})
	if errors.Is(err, access.ErrNotAllowed) {
		err = deployments.Errorf(deployments.CodeForbidden, "the update does not begin: %w", err)
	}
	return err
}

// missing returns a warning about versions before the claim's that Temporal knows and the store does not; "" if there
// are none.
func (a *Activities) missing(ctx context.Context, c statestore.Claim) (string, error) {
	if a.Unseen == nil || c.Next == 0 || c.Next >= c.Update.Number() {
		return "", nil
	}
	latest, err := a.Store.Updates.LatestUpdate(ctx, c.Update.StackName)
	if err != nil {
		return "", err
	}
	known := max(c.Next-1, latest)
	last := c.Update.Number() - 1
	if last <= known {
		return "", nil
	}
	if unseen, err := a.Unseen(ctx, c.Update.StackName, last); err != nil || unseen == last {
		return "", err
	}
	return missingUpdates(known+1, last), nil
}

func missingUpdates(first, last int) string {
	which := fmt.Sprintf("updates %d to %d", first, last)
	if first == last {
		which = fmt.Sprintf("update %d", last)
	}
	return fmt.Sprintf("The bucket knows nothing of the %s of this stack, which Temporal remembers: it seems to have "+
		"been put back from an older backup, or to be a new one. What was created then may exist without being in the "+
		"state; `deployctl up --refresh --adopt` looks for it, and for what of the state is different.", which)
}

// fence claims the stack for this worker. It returns the claim with the stack's version, the version that the update
// makes, and a warning about missing versions between the two. A preview claims nothing; it has the version of the next
// update, so that both generate the same names.
func (a *Activities) fence(
	ctx context.Context, in deployments.ClaimInput, h statestore.Head,
) (c statestore.Claim, version int, missing string, err error) {
	if !changesHead(in.Update, in.Request) {
		if h.ID != in.Request.Submitted.StackID {
			err = deployments.Errorf(deployments.CodeConflict, "the preview was asked for when another stack had this name: "+
				"ask for another one")
		}
		return statestore.Claim{Base: h.Version}, max(h.Next, h.Version+1), "", err
	}
	writer := statestore.WriterOf(a.Worker, strconv.Itoa(in.Number))
	c, err = a.Store.Claim(ctx, claimant(ctx, in.Update, in.Request, writer))
	if err == nil {
		missing, err = a.missing(ctx, c)
	}
	return c, in.Update.Number(), missing, err
}

// changesHead reports whether an update makes a version of its stack; a preview does not.
func changesHead(u deployments.UpdateName, r deployments.UpdateRequest) bool {
	return !r.DryRun && u.Number() > 0
}

func running(u deployments.UpdateName, r deployments.UpdateRequest, since time.Time) deployments.UpdateInfo {
	return deployments.UpdateInfo{
		Update: u, Kind: r.Kind, DryRun: r.DryRun, Status: deployments.StatusRunning, Message: r.Message,
		Initiator: r.Initiator,
		Started:   since,
		Profile:   r.Profile.Used(),
		Trace:     r.Trace,
	}
}

// goalOf returns the core's goal for a request, in an update that makes that version of the stack and has been granted
// so many steps at a time.
func goalOf(u deployments.UpdateName, version int, r deployments.UpdateRequest, parallel int) engine.Goal {
	g := engine.Goal{
		Kind: r.Kind, DryRun: r.DryRun, Version: version,
		Organization: u.Organization, Project: u.Project, Stack: u.Stack,
		Refresh: r.Refresh, Targets: r.Targets, TargetDependents: r.TargetDependents, Replace: r.Replace,
		Excludes: r.Excludes, ExcludeDependents: r.ExcludeDependents,
		ExcludeProtected: r.ExcludeProtected, IgnoreProtect: r.IgnoreProtect,
		Plan: r.Plan, Settle: r.Settle, Adopt: r.Adopt,
		RunProgram: r.RunProgram, ClearPendingCreates: r.ClearPendingCreates,
		ContinueOnError: r.ContinueOnError, Parallel: parallel, WaitOnUnknown: r.WaitOnUnknown,
	}
	g.Ahead, g.ReadAhead = ahead(g.Parallel)
	g.Policies = len(r.PolicyPacks) > 0
	return g
}

// opening returns what the nth part of a Run's stream begins with: the first one with the prelude. It is not printed by
// whoever claims the update, so that an update which prints nothing has no more parts.
func opening(n int, c stackconfig.Config) []deployments.WatchEvent {
	if n != 1 {
		return nil
	}
	event := prelude(c)
	return []deployments.WatchEvent{{Event: &event}}
}

// prelude returns the first event of a log: the configuration, with secrets redacted.
func prelude(c stackconfig.Config) apitype.EngineEvent {
	shown := map[string]string{}
	for key, v := range c {
		shown[key] = v.Value
		if v.Secret {
			shown[key] = redaction.Placeholder
		}
	}
	return apitype.EngineEvent{Timestamp: int(time.Now().Unix()), PreludeEvent: &apitype.PreludeEvent{Config: shown}}
}

// ahead returns how many steps the core issues beyond those that may run, so that when one ends the next begins here,
// not after a round trip through the core, and how many refreshes in addition, which are made in groups: 512 in all
// are four full groups. With few parallel steps both are 0, because then users want to see the steps start one by one.
func ahead(parallel int) (steps, refreshes int) {
	const few, inGroups = 4, 512
	if parallel <= few {
		return 0, 0
	}
	steps = parallel / 2
	return steps, max(inGroups-steps-parallel, parallel)
}
