package recovery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/session"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// archive is a Temporal server that keeps the history of one Run, or of none.
type archive struct {
	frontend
	run []*historypb.HistoryEvent
}

func (a *archive) GetWorkflowExecutionHistory(
	context.Context, *workflowservice.GetWorkflowExecutionHistoryRequest,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	if a.run == nil {
		return nil, serviceerror.ToStatus(serviceerror.NewNotFound("no such workflow")).Err()
	}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: a.run}}, nil
}

var lostUpdate = deployments.UpdateName{StackName: deployments.StackName{Organization: "o", Project: "p", Stack: "s"},
	Version: "1"}

// lostRun is a Run whose update was closed: it has saved the resource "a", and "b" and a create of "c" are still to be
// saved.
func lostRun() (saved []engine.Delta, rest deployments.SaveInput) {
	state := func(op, name string) engine.State {
		return engine.State{Key: engine.Key(op), URN: thingURN(name), Type: "t:index:T", Custom: true, ID: name}
	}
	a, b, c := state("o1", "a"), state("o2", "b"), state("o3", "c")
	saved = []engine.Delta{{Seq: 1, Kind: engine.DeltaPut, Op: 1, State: &a}}
	rest = deployments.SaveInput{Update: lostUpdate, Number: 2, Deltas: []engine.Delta{
		{Seq: 2, Kind: engine.DeltaPut, Op: 2, State: &b},
		{Seq: 3, Kind: engine.DeltaBegin, Op: 3, Pending: &engine.PendingOperation{Op: 3, Kind: "creating", State: c,
			Seed: []byte{1}}},
	}}
	return saved, rest
}

func thingURN(name string) urn.URN { return urn.URN("urn:pulumi:s::p::t:index:T::" + name) }

// lostHouse is a store in which the update has the stack and has saved once, and whose worker can recover it.
func lostHouse(t *testing.T, history *archive) (*Activities, *statestore.Store) {
	t.Helper()
	return lostHouseOn(t, history, &bucket.Memory{})
}

func lostHouseOn(t *testing.T, history *archive, objects bucket.Objects) (*Activities, *statestore.Store) {
	t.Helper()
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	must(t, store.CreateStack(t.Context(), lostUpdate.StackName, nil))
	must(t, store.Updates.PutRequest(t.Context(), lostUpdate, deployments.UpdateRequest{Stack: lostUpdate.StackName,
		Kind: engine.KindUp}))
	_, err = store.Claim(t.Context(), statestore.Claimant{Update: lostUpdate, Writer: "w"})
	must(t, err)
	saved, _ := lostRun()
	must(t, store.Updates.SaveDeltas(t.Context(), lostUpdate, 1, saved))

	acts := activities.New(activities.Options{Options: session.Options{Store: store}})
	return recoveryOn(t, history, store).Activities(acts), store
}

// holds makes sure that the stack's latest state is of these resources, and that these are pending.
func holds(t *testing.T, store *statestore.Store, resources, pending []string) {
	t.Helper()
	head, err := store.Head(t.Context(), lostUpdate.StackName)
	must(t, err)
	c, err := store.Checkpoint(t.Context(), lostUpdate.StackName, head.Version, deployments.SecretsProvider{})
	must(t, err)
	var stored, waiting []string
	for _, s := range c.States() {
		stored = append(stored, s.URN.Name())
	}
	for _, p := range c.Pending() {
		waiting = append(waiting, p.Kind+" "+p.State.URN.Name())
	}
	if head.Version != 1 || head.Active != nil || !slices.Equal(stored, resources) || !slices.Equal(waiting, pending) {
		t.Errorf("the head is %+v, with %v, and pending %v", head, stored, waiting)
	}
}

func TestAnUpdateWhoseRunHadEndedIsRecoveredWithTheSaveThatTheResultCarries(t *testing.T) {
	_, rest := lostRun()
	history := &archive{}
	r, store := lostHouse(t, history)
	data := converter.GetDefaultDataConverter()
	input, err := data.ToPayloads(deployments.RunInput{Update: lostUpdate})
	must(t, err)
	result, err := data.ToPayloads(deployments.RunOutput{
		Result: engine.Result{Status: engine.StatusCancelled, Error: "somebody did",
			Changes: map[string]int{"create": 2}}, Saves: 2, LastSave: &rest,
	})
	must(t, err)
	history.run = []*historypb.HistoryEvent{
		{EventId: 1, EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{
					Input: input},
			}},
		{EventId: 2, EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionCompletedEventAttributes{
				WorkflowExecutionCompletedEventAttributes: &historypb.WorkflowExecutionCompletedEventAttributes{
					Result: result},
			}},
	}
	in := deployments.RecoverInput{Update: lostUpdate, Status: engine.StatusFailed,
		Error: "its workflow was ended from outside"}
	for range 2 { // which is once
		info, err := r.RecoverUpdate(t.Context(), in)
		must(t, err)
		if info.Status != string(engine.StatusCancelled) || info.Error != "somebody did" || info.Resources != 2 ||
			info.Changes["create"] != 2 {
			t.Errorf("it came to %+v", info)
		}
		holds(t, store, []string{"a", "b"}, []string{"creating c"})
	}
}

func TestAnUpdateWhoseHistoryIsGoneIsRecoveredFromItsSaves(t *testing.T) {
	r, store := lostHouse(t, &archive{})
	info, err := r.RecoverUpdate(t.Context(), deployments.RecoverInput{Update: lostUpdate, Status: engine.StatusFailed,
		Error: "its workflow was ended from outside"})
	must(t, err)
	if info.Status != string(engine.StatusFailed) || info.Resources != 1 {
		t.Errorf("it came to %+v", info)
	}
	holds(t, store, []string{"a"}, nil)
}

// damagedHouse has a stack whose checkpoint is damaged, with a copy that is not, and an update of it whose workflow is
// closed.
func damagedHouse(t *testing.T, objects *bucket.Memory) (*Activities, deployments.UpdateName) {
	t.Helper()
	r, _ := lostHouseOn(t, &archive{}, objects)
	_, err := r.RecoverUpdate(t.Context(), deployments.RecoverInput{Update: lostUpdate})
	must(t, err)
	second := deployments.UpdateName{StackName: lostUpdate.StackName, Version: "2"}
	// nobody has the checkpoint in memory
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	r.recovery.Store, r.acts = store, activities.New(activities.Options{Options: session.Options{Store: store}})
	must(t, store.Updates.PutRequest(t.Context(), second, deployments.UpdateRequest{Stack: second.StackName,
		Kind: engine.KindUp}))
	_, err = store.Claim(t.Context(), statestore.Claimant{Update: second, Writer: "w"})
	must(t, err)
	const key = "stacks/o/p/s/checkpoints/1.json.zst"
	good, err := objects.Get(t.Context(), key)
	must(t, err)
	_, err = objects.Put(t.Context(), key+".good", good.Data, bucket.Condition{})
	must(t, err)
	_, err = objects.Put(t.Context(), key, []byte("damaged"), bucket.Condition{})
	must(t, err)
	return r, second
}

func TestAnUpdateThatHasDoneNothingEndsThoughItsCheckpointIsDamaged(t *testing.T) {
	r, second := damagedHouse(t, &bucket.Memory{})
	_, err := r.acts.ReadHeaders(t.Context(), deployments.HeadersInput{Update: second, Base: 1})
	if err == nil || !strings.Contains(err.Error(), "checkpoints/1.json.zst") ||
		!strings.Contains(err.Error(), "deployctl stack restore") {
		t.Errorf("it does not say what to repair: %v", err)
	}
	for range 2 { // which is once
		info, err := r.acts.CommitUpdate(t.Context(), deployments.CommitInput{
			Update: second, Base: 1, Result: engine.Result{Status: engine.StatusFailed, Error: "damaged"},
		})
		must(t, err)
		if info.Status != string(engine.StatusFailed) || info.Resources != 1 {
			t.Errorf("it came to %+v", info)
		}
	}
	head, err := r.recovery.Store.Head(t.Context(), second.StackName)
	must(t, err)
	if head.Version != 1 || head.Active != nil {
		t.Errorf("the head is %+v", head)
	}
}

func TestAFailedRecoveryNamesTheCauseAndIsRetriedByTheStack(t *testing.T) {
	objects := &bucket.Memory{}
	r, second := damagedHouse(t, objects)
	const key = "stacks/o/p/s/checkpoints/1.json.zst"
	saved, _ := lostRun()
	must(t, r.recovery.Store.Updates.SaveDeltas(t.Context(), second, 1, saved))

	_, err := r.RecoverUpdate(t.Context(), deployments.RecoverInput{Update: second})
	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) || !failure.NonRetryable() || !strings.Contains(failure.Message(), key) {
		t.Fatalf("it came to %v", err)
	}
	good, err := objects.Get(t.Context(), key+".good")
	must(t, err)
	_, err = objects.Put(t.Context(), key, good.Data, bucket.Condition{})
	must(t, err)
	info, err := r.RecoverUpdate(t.Context(), deployments.RecoverInput{Update: second})
	must(t, err)
	if info.Resources != 2 {
		t.Errorf("it came to %+v", info)
	}
}

func TestAnUpdateIsDiscardedOnlyIfNothingCanRecoverIt(t *testing.T) {
	objects := &bucket.Memory{}
	r, second := damagedHouse(t, objects)
	saved, _ := lostRun()
	must(t, r.recovery.Store.Updates.SaveDeltas(t.Context(), second, 1, saved))
	in := deployments.RecoverInput{Update: second, Status: engine.StatusFailed, Error: "it was ended", Discard: true}
	for range 2 { // which is once
		out, err := r.RecoverUpdate(t.Context(), in)
		must(t, err)
		if out.Status != string(engine.StatusFailed) || !strings.Contains(out.Error, "checkpoints/1.json.zst") ||
			!strings.Contains(out.Error, "was discarded") || out.Next != "" {
			t.Errorf("it came to %+v", out)
		}
		free(t, r.recovery.Store, 1)
	}

	healthy, store := lostHouse(t, &archive{})
	out, err := healthy.RecoverUpdate(t.Context(), deployments.RecoverInput{Update: lostUpdate, Discard: true})
	must(t, err)
	if strings.Contains(out.Error, "discarded") {
		t.Errorf("what can be recovered came to %+v", out)
	}
	holds(t, store, []string{"a"}, nil)
}

func TestADiscardWaitsForAStoreThatIsAway(t *testing.T) {
	away := &unreachable{Objects: &bucket.Memory{}}
	r, store := lostHouseOn(t, &archive{}, away)
	away.down = true
	_, err := r.RecoverUpdate(t.Context(), deployments.RecoverInput{Update: lostUpdate, Discard: true})
	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) || failure.NonRetryable() {
		t.Errorf("it came to %v", err)
	}
	away.down = false
	if head, err := store.Head(t.Context(), lostUpdate.StackName); err != nil || head.Active == nil {
		t.Errorf("the head is %+v, %v", head, err)
	}
}

// unreachable is an object store that cannot be reached while it is down.
type unreachable struct {
	bucket.Objects
	down bool
}

func (u *unreachable) Get(ctx context.Context, key string) (bucket.Object, error) {
	if u.down {
		return bucket.Object{}, deployments.Errorf(deployments.CodeUnavailable, "it cannot be reached")
	}
	return u.Objects.Get(ctx, key)
}

func TestRecoveryRetriesOnlyErrorsThatMayPass(t *testing.T) {
	for _, c := range []struct {
		err   error
		again bool
	}{
		{serviceerror.NewUnavailable("no hosts are available"), true},
		{serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT, "slow down"), true},
		{serviceerror.NewPermissionDenied("no", ""), false},
		{deployments.Errorf(deployments.CodeUnavailable, "the bucket cannot be reached"), true},
		{deployments.Errorf(deployments.CodeFormat, "damaged"), false},
		{errors.New("nobody knows"), false},
	} {
		var failure *temporal.ApplicationError
		if err := translate(c.err); !errors.As(err, &failure) || failure.NonRetryable() == c.again {
			t.Errorf("%v becomes %v", c.err, err)
		}
	}
}

// importing is the claim of an import, which is the stack's second version.
func importing(t *testing.T, store *statestore.Store) statestore.Claim {
	t.Helper()
	u := deployments.UpdateName{StackName: lostUpdate.StackName, Version: "2"}
	claim, err := store.Claim(t.Context(), statestore.Claimant{Update: u, Writer: "#import-1"})
	must(t, err)
	return claim
}

// free makes sure that the stack is at a version, and that nobody has it.
func free(t *testing.T, store *statestore.Store, version int) {
	t.Helper()
	head, err := store.Head(t.Context(), lostUpdate.StackName)
	must(t, err)
	if head.Version != version || head.Active != nil {
		t.Errorf("the head is %+v", head)
	}
}

func TestAnImportThatWasInterruptedIsEndedAndLosesTheStack(t *testing.T) {
	r, store := lostHouse(t, &archive{})
	in := deployments.RecoverInput{Update: lostUpdate, Next: "3", Status: engine.StatusFailed,
		Error: "its workflow was ended from outside"}
	_, err := r.RecoverUpdate(t.Context(), in)
	must(t, err)
	claim := importing(t, store)
	in.Update = claim.Update
	for range 2 { // which is once
		out, err := r.RecoverUpdate(t.Context(), in)
		must(t, err)
		if out.Status != string(engine.StatusFailed) || !strings.Contains(out.Error, "interrupted; do it again") ||
			out.Ended.IsZero() || out.Next != "" {
			t.Errorf("it came to %+v", out.UpdateInfo)
		}
		free(t, store, 1)
	}
	if err := store.Commit(t.Context(), claim, statestore.Written{Version: 2, Digest: "d"}); deployments.CodeOf(
		err) != deployments.CodeConflict {
		t.Errorf("the import went on: %v", err)
	}
}

func TestAnUpdateWhoseRequestWasLostIsNotTakenForAnImport(t *testing.T) {
	objects := &bucket.Memory{}
	r, store := lostHouseOn(t, &archive{}, objects)
	const key = "stacks/o/p/s/updates/1/update"
	request, err := objects.Get(t.Context(), key)
	must(t, err)
	must(t, objects.Delete(t.Context(), key))
	in := deployments.RecoverInput{Update: lostUpdate, Error: "its workflow was ended from outside"}
	_, err = r.RecoverUpdate(t.Context(), in)
	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) || failure.Type() != string(deployments.CodeFormat) ||
		!strings.Contains(failure.Message(), key) {
		t.Fatalf("it came to %v", err)
	}
	_, err = objects.Put(t.Context(), key, request.Data, bucket.Condition{})
	must(t, err)
	_, err = r.RecoverUpdate(t.Context(), in)
	must(t, err)
	free(t, store, 1)
	holds(t, store, []string{"a"}, nil)
}

func TestAnImportThatEndsBeforeItIsInterruptedStays(t *testing.T) {
	r, store := lostHouse(t, &archive{})
	in := deployments.RecoverInput{Update: lostUpdate, Error: "its workflow was ended from outside"}
	_, err := r.RecoverUpdate(t.Context(), in)
	must(t, err)
	claim := importing(t, store)
	must(t, store.Commit(t.Context(), claim, statestore.Written{Version: 2, Digest: "d"}))
	in.Update = claim.Update
	_, err = r.RecoverUpdate(t.Context(), in)
	must(t, err)
	free(t, store, 2)
	if info, err := store.Updates.Info(t.Context(), in.Update); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("it has ended as %+v, %v", info, err)
	}
}

func TestAClaimThatLandsAfterItsUpdateHasEndedIsGivenBack(t *testing.T) {
	r, store := lostHouse(t, &archive{})
	must(t, store.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: lostUpdate, Status: "cancelled",
		Ended: time.Now()}))
	for range 2 {
		out, err := r.RecoverUpdate(t.Context(), deployments.RecoverInput{Update: lostUpdate,
			Error: "its workflow was ended from outside"})
		must(t, err)
		if out.Status != "cancelled" {
			t.Errorf("it came to %+v", out.UpdateInfo)
		}
		free(t, store, 0)
	}
}

func TestAnUpdateThatItsClientIsRefusedNeverBegan(t *testing.T) {
	r, store := lostHouse(t, &archive{})
	_, err := r.RecoverUpdate(t.Context(), deployments.RecoverInput{Update: lostUpdate, Error: "over"})
	must(t, err)
	for version, c := range map[string]struct {
		request deployments.UpdateRequest
		unbegun bool
	}{
		"2": {deployments.UpdateRequest{Lease: &deployments.Lease{}}, true},
		"3": {deployments.UpdateRequest{}, false}, // who asked for it looks for it in the history
	} {
		u := deployments.UpdateName{StackName: lostUpdate.StackName, Version: version}
		c.request.Stack, c.request.Kind = u.StackName, engine.KindUp
		must(t, store.Updates.PutRequest(t.Context(), u, c.request))
		out, err := r.RecoverUpdate(t.Context(), deployments.RecoverInput{Update: u, Error: "its caller may not deploy"})
		must(t, err)
		stored, err := store.Updates.Info(t.Context(), u)
		if must(t, err); out.Unbegun != c.unbegun || stored.Unbegun != c.unbegun || stored.Error != out.Error {
			t.Errorf("update %s came to %+v, and is stored as %+v", version, out.UpdateInfo, stored)
		}
	}
}
