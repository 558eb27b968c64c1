package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

func TestThePacesOfCredentialsThatAreNotUsedAnyMoreAreForgotten(t *testing.T) {
	ps := newPaces()
	old := time.Now().Add(-2 * paceForgotten)
	var slowed *pace
	for n := range 1000 {
		p, err := ps.of("cloud", resource.PropertyMap{"token": resource.NewProperty(fmt.Sprint(n))})
		if err != nil {
			t.Fatal(err)
		}
		p.made = old
		if n == 0 {
			slowed = p
			slowed.prompt.cut = time.Now()
		}
	}
	if len(ps.all) > 2 {
		t.Errorf("%d paces are kept", len(ps.all))
	}
	if again, err := ps.of("cloud", resource.PropertyMap{"token": resource.NewProperty("0")}); err != nil ||
		again != slowed {
		t.Errorf("an account that was slowed down just now is called at will: %v", err)
	}
}

func TestAQuestionThatWasGivenUpIsNotWaitedFor(t *testing.T) {
	c := newConversation(&switchboard{}, deployments.UpdateName{}, 1)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.ask(ctx, func(_, seq int) deployments.Message {
			return deployments.Message{Registered: &engine.Registered{Seq: seq}}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if len(c.waiting) != 0 {
		t.Errorf("%d answers are waited for", len(c.waiting))
	}
}

func TestASessionThatIsForgottenWhileItIsMadeIsClosed(t *testing.T) {
	h := newHouse(t)
	s := &session{update: h.update, ready: make(chan struct{}), log: newOutputLog(h.store, h.update, nil)}
	h.acts.sessions[h.update.String()] = s
	over, cancel := context.WithCancel(t.Context())
	cancel()
	Forget(over, h.acts, h.update)
	if len(Hosted(h.acts)) != 0 {
		t.Error("it is still found")
	}
	select {
	case <-s.log.stopped:
		t.Error("it was closed before it was made")
	default:
	}
	close(s.ready)
	select {
	case <-s.log.stopped:
	case <-time.After(time.Minute):
		t.Error("it is never closed")
	}
}

func TestAPanicBeforeTheCallFailsTheStepAndOneAfterItLeavesItOpen(t *testing.T) {
	for sent, want := range map[bool]engine.Outcome{false: engine.OutcomeFailed, true: engine.OutcomeUndecidable} {
		at := &attempt{sent: sent} // without a session
		result, err := at.guarded(t.Context())
		if err != nil || result.Outcome != want || !strings.Contains(result.Error, "failed internally") {
			t.Errorf("sent %t: %+v %v", sent, result, err)
		}
	}
}

func TestALongTextIsCutWithASentence(t *testing.T) {
	result := engine.StepFinished{Error: strings.Repeat("é", 1<<20)}
	for range 1000 {
		result.Failures = append(result.Failures, engine.CheckFailure{Reason: strings.Repeat("x", 1<<16)})
		result.InitErrors = append(result.InitErrors, strings.Repeat("y", 1<<16))
	}
	cutStep(t.Context(), &result)
	size := len(result.Error)
	for i := range result.Failures {
		size += len(result.Failures[i].Reason)
	}
	for _, e := range result.InitErrors {
		size += len(e)
	}
	if size > 1<<20 {
		t.Errorf("%d bytes are left", size)
	}
	if !strings.Contains(result.Error, "(cut: 32768 of 2097152 bytes are shown; the worker's log has more)") {
		t.Errorf("it ends with %q", result.Error[len(result.Error)-100:])
	}
	if last := result.Failures[len(result.Failures)-1].Reason; last != "and 950 more" {
		t.Errorf("the last failure is %q", last)
	}
}

func TestAnInvokeThatIsCancelledDoesNotWaitForItsDependencies(t *testing.T) {
	r := newRegistry()
	component := urn.New("dev", "test", "", "pkg:index:Component", "open")
	r.byURN[component] = registered{}
	r.open[component] = 1 // as during its own construction
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := r.allExist(ctx, []urn.URN{component})
		done <- err
	}()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for itself")
	}
}

func TestAnEventIsCutToWhatAClientTakes(t *testing.T) {
	large := func(fill string) map[string]any {
		return map[string]any{"content": strings.Repeat(fill, 9<<20), "name": "site"}
	}
	many := map[string]any{}
	for n := range 100_000 {
		many[fmt.Sprint("key-", n)] = strings.Repeat("v", 100)
	}
	events := []deployments.WatchEvent{
		{Event: &apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: apitype.StepEventMetadata{
			URN: "urn", Old: &apitype.StepEventStateMetadata{Outputs: large("a")},
			New: &apitype.StepEventStateMetadata{Outputs: large("b"), Inputs: many},
		}}}},
		{Event: &apitype.EngineEvent{DiagnosticEvent: &apitype.DiagnosticEvent{Message: strings.Repeat("x", 17<<20)}}},
		{Event: &apitype.EngineEvent{DiagnosticEvent: &apitype.DiagnosticEvent{Message: "short"}}},
	}
	data, err := EncodeEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	read, err := DecodeEvents(data)
	if err != nil || len(read) != len(events) || len(data) > 2*maxEvent {
		t.Fatalf("%d events in %d bytes: %v", len(read), len(data), err)
	}
	step := read[0].Event.ResOutputsEvent.Metadata
	before, after := step.Old.Outputs["content"].(string), step.New.Outputs["content"].(string)
	if before == after || !strings.Contains(before, "9437186 bytes") || !strings.Contains(before, "stack export") ||
		step.New.Outputs["name"] != "site" {
		t.Errorf("it shows %.200q and %.200q, of %v", before, after, step.New.Outputs["name"])
	}
	if said := read[1].Event.DiagnosticEvent.Message; !strings.Contains(said,
		"(cut: 262144 of 17825792 bytes are shown)") {
		t.Errorf("it says %q at its end", said[len(said)-80:])
	}
	if read[2].Event.DiagnosticEvent.Message != "short" || len(events[1].Event.DiagnosticEvent.Message) != 17<<20 {
		t.Error("what fits was changed, or what was given")
	}
}
