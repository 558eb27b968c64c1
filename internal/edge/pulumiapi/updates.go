package pulumiapi

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/journal"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// warningHeader is the header of an answer that the CLI prints at once.
const warningHeader = "X-Pulumi-Warning"

// requestKinds are the kinds of updates by the last part of the path that creates one.
var requestKinds = map[string]engine.Kind{
	"update": engine.KindUp, "preview": engine.KindUp, "refresh": engine.KindRefresh, "destroy": engine.KindDestroy,
}

// createUpdate creates an update that the CLI executes. If another update has the stack, the CLI prints that at once:
// the start then waits.
func createUpdate(c *call, kind string) (any, error) {
	var program apitype.UpdateProgramRequest
	if err := c.parse(&program); err != nil {
		return nil, err
	}
	return c.create(kind, program)
}

func (c *call) create(kind string, program apitype.UpdateProgramRequest) (apitype.UpdateProgramResponse, error) {
	answer := apitype.UpdateProgramResponse{RequiredPolicies: []apitype.RequiredPolicy{}, Messages: []apitype.Message{}}
	r := deployments.UpdateRequest{
		Stack: c.stack, Kind: requestKinds[kind], DryRun: kind == "preview" || program.Options.DryRun,
		Message: program.Metadata.Message, Initiator: c.caller.Name(), Authority: c.caller.Delegated(),
		Lease:  &deployments.Lease{Metadata: program.Metadata.Environment},
		Config: make(map[string]deployments.ConfigValue, len(program.Config)),
	}
	for key, v := range program.Config {
		r.Config[key] = deployments.ConfigValue{Value: v.String, Secret: v.Secret, Object: v.Object}
	}
	c.entry.Subject = "kind=" + string(r.Kind)
	if r.DryRun {
		c.entry.Subject += " dry_run=true"
	}
	var err error
	answer.UpdateID, err = c.createBeside(r)
	if err == nil && !r.DryRun {
		c.warnPlace()
	}
	return answer, err
}

// createBeside creates an update while it is asked what the update will wait for. One of a stack that cannot be
// described is never started.
func (c *call) createBeside(r deployments.UpdateRequest) (id string, err error) {
	creating, creates := panics.NewGroup(c.Context(), "creating an update")
	var info deployments.StackInfo
	if !r.DryRun {
		creating.Go(func() (err error) {
			info, err = c.edge.Service.Stack(creates, c.stack)
			return err
		})
	}
	creating.Go(func() (err error) {
		id, err = c.edge.Service.CreateUpdate(creates, r)
		return err
	})
	if err := creating.Wait(); err != nil {
		return "", err
	}
	c.warnBusy(info)
	return id, nil
}

// warnPlace says that the next update waits for others of its organization, unless it waits for its stack in any case.
func (c *call) warnPlace() {
	if header := c.answer.Header(); header.Get(warningHeader) == "" {
		if why := c.edge.Service.NoPlace(c.Context(), c.stack.Organization); why != "" {
			header.Set(warningHeader, clean(why))
		}
	}
}

// warnBusy says behind which update the next one waits.
func (c *call) warnBusy(info deployments.StackInfo) {
	if a := info.Active; a != nil && !failsWhenBusy(info.Tags) {
		text := "the stack " + c.stack.String() + " is busy: " + a.Holds() + "; this update waits"
		if n := len(info.Queued); n > 0 {
			text += ", behind " + strconv.Itoa(n) + " more"
		}
		c.answer.Header().Set(warningHeader, clean(text))
	}
}

// startUpdate waits until the update has the stack, and answers with its lease. The lease of a preview claims nothing,
// but the CLI needs one.
func startUpdate(c *call) (any, error) {
	var r apitype.StartUpdateRequest
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	return c.start(c.PathValue("id"), r)
}

func (c *call) start(id string, r apitype.StartUpdateRequest) (apitype.StartUpdateResponse, error) {
	answer := apitype.StartUpdateResponse{JournalVersion: min(r.JournalVersion, journal.Version)}
	if err := deployments.ValidateTags(r.Tags); err != nil {
		return answer, err
	}
	l, err := c.hold(id)
	if err != nil {
		return answer, err
	}
	if l.Preview() {
		head, err := c.edge.Service.Head(c.Context(), c.stack)
		if err != nil {
			return answer, err
		}
		answer.Version = head.Version
	} else {
		answer.Version = l.Update.Number()
		c.entry.Subject = "version=" + l.Update.Version
		if r.Tags != nil && !maps.Equal(r.Tags, l.Tags) {
			if err := c.edge.Service.TagStack(c.Context(), c.stack, r.Tags); err != nil {
				return answer, err
			}
		}
	}
	answer.Token, answer.TokenExpiration = c.edge.Service.LeaseToken(l), l.Expires.Unix()
	return answer, nil
}

// beginUpdate creates and starts an update, and answers with what the CLI would ask for next.
func beginUpdate(c *call) (any, error) {
	var r apitype.BeginUpdateRequest
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	kind := string(r.UpdateKind)
	if kind == string(apitype.ResourceImportUpdate) {
		kind = "update"
	}
	if requestKinds[kind] == "" {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%q is not a kind of update", clean(kind))
	}
	var answer begunUpdate
	var err error
	if answer.UpdateProgramResponse, err = c.create(kind, r.Program); err != nil {
		return nil, err
	}
	if answer.StartUpdateResponse, err = c.start(answer.UpdateID, r.StartUpdateRequest); err != nil {
		return nil, err
	}
	if answer.exported, err = c.export(0); err != nil {
		return nil, err
	}
	info, err := c.edge.Service.StackBriefly(c.Context(), c.stack)
	answer.Stack = describe(info)
	return answer, err
}

// begunUpdate is the answer to beginUpdate, with a deployment that may be large.
type begunUpdate struct {
	apitype.BeginUpdateResponse
	exported exported
}

func (b begunUpdate) parts() ([][]byte, error) {
	deployment, err := b.exported.parts()
	if err != nil {
		return nil, err
	}
	return rawjson.With(b.BeginUpdateResponse, "deployment", deployment...)
}

// update returns the name of the update in the path: its version, or the id that its client knows it by.
func (c *call) update() (deployments.UpdateName, error) {
	id := c.PathValue("id")
	u := deployments.UpdateName{StackName: c.stack, Version: id}
	if u.Validate() == nil {
		return u, nil
	}
	created, err := c.edge.Service.CreatedUpdate(c.Context(), c.stack, id)
	return created.Name(), err
}

// cancelUpdate cancels an update, whoever executes it. One that was cancelled stays as it is.
func cancelUpdate(c *call) (any, error) {
	u, err := c.update()
	if err != nil {
		return nil, err
	}
	c.entry.Subject = "version=" + u.Version
	if err = c.edge.Service.Cancel(c.Context(), u, false); err == nil {
		c.awaitCancelled(u)
		return nil, nil
	}
	if !notFound(err) {
		return nil, err
	}
	info, err := c.edge.Service.Info(c.Context(), u)
	if err == nil && info.Status != deployments.StatusCancelled {
		err = deployments.Errorf(deployments.CodeConflict, "there is nothing to cancel: update %s of %s has ended: %s",
			u.Version, c.stack, info.Status)
	}
	return nil, err
}

// cancelShown is how long a cancel waits until the update of a client is shown as cancelled.
const cancelShown = 5 * time.Second

// awaitCancelled waits a moment for the end of a cancelled update that a client executes. Others finish their steps.
func (c *call) awaitCancelled(u deployments.UpdateName) {
	if r, err := c.edge.Service.Request(c.Context(), u); err != nil || r.Lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context(), cancelShown)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause *= 2 {
		if info, err := c.edge.Service.Info(ctx, u); err != nil || !info.Ended.IsZero() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// statusOf translates the status of an update.
func statusOf(u deployments.UpdateInfo) apitype.UpdateStatus {
	switch u.Status {
	case deployments.StatusSucceeded:
		return apitype.UpdateStatusSucceeded
	case deployments.StatusCancelled:
		return apitype.UpdateStatusCancelled
	case deployments.StatusRunning:
		return apitype.StatusRunning
	case deployments.StatusQueued:
		return apitype.StatusNotStarted
	}
	return apitype.UpdateStatusFailed
}

// state describes an update; one that has not begun is not started.
func (c *call) state() (deployments.UpdateName, deployments.UpdateInfo, error) {
	u, err := c.update()
	if err != nil {
		return u, deployments.UpdateInfo{}, err
	}
	info, err := c.edge.Service.Info(c.Context(), u)
	if notFound(err) {
		return u, deployments.UpdateInfo{Update: u, Status: deployments.StatusQueued}, c.expected(u)
	}
	return u, info, err
}

// expected returns CodeNotFound for the number of an update that the stack neither has nor will have next.
func (c *call) expected(u deployments.UpdateName) error {
	if u.Number() == 0 || c.PathValue("id") != u.Version {
		return nil // a preview, or one that its client knows by the id with which it was created
	}
	info, err := c.edge.Service.Stack(c.Context(), c.stack)
	if err != nil {
		return err
	}
	if info.Active != nil {
		info.Queued = append(info.Queued, *info.Active)
	}
	if slices.ContainsFunc(info.Queued, func(q deployments.UpdateInfo) bool { return q.Update.Version == u.Version }) {
		return nil
	}
	return deployments.Errorf(deployments.CodeNotFound, "the stack %s has no update %s, or it is not kept any more",
		c.stack, u.Version)
}

// updateStatus returns the status of an update. The CLI polls it after an import.
func updateStatus(c *call) (any, error) {
	_, info, err := c.state()
	if err != nil {
		return nil, err
	}
	answer := apitype.UpdateResults{Status: statusOf(info), Events: []apitype.UpdateEvent{}}
	if info.Ended.IsZero() {
		again := "0"
		answer.ContinuationToken = &again
	}
	return answer, nil
}

// eventFilter selects events by their types and the resource that they are about; what is empty selects all.
type eventFilter struct {
	types map[string]bool
	urn   string
}

func (c *call) eventFilter() eventFilter {
	f := eventFilter{types: map[string]bool{}, urn: c.query().Get("urn")}
	for _, kind := range c.query()["type"] {
		f.types[kind] = true
	}
	return f
}

// selects reports whether the filter selects an event.
func (f eventFilter) selects(e apitype.EngineEvent) bool {
	kind, about := "other", ""
	switch {
	case e.ResourcePreEvent != nil:
		kind, about = "resourcePreEvent", e.ResourcePreEvent.Metadata.URN
	case e.ResOutputsEvent != nil:
		kind, about = "resOutputsEvent", e.ResOutputsEvent.Metadata.URN
	case e.ResOpFailedEvent != nil:
		kind, about = "resOpFailedEvent", e.ResOpFailedEvent.Metadata.URN
	case e.DiagnosticEvent != nil:
		kind, about = "diagnosticEvent", e.DiagnosticEvent.URN
	case e.SummaryEvent != nil:
		kind = "summaryEvent"
	case e.PreludeEvent != nil:
		kind = "preludeEvent"
	case e.PolicyEvent != nil:
		kind, about = "policyEvent", e.PolicyEvent.ResourceURN
	case e.StdoutEvent != nil:
		kind = "stdoutEvent"
	case e.CancelEvent != nil:
		kind = "cancelEvent"
	}
	return (len(f.types) == 0 || f.types[kind]) && (f.urn == "" || f.urn == about)
}
