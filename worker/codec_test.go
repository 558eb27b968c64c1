package worker

import (
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/seal"
)

func someKeys(t *testing.T) *seal.Keyring {
	t.Helper()
	keys, err := seal.NewKeyring(make([]byte, 32))
	must(t, err)
	return keys
}

// converterOf is the data converter of a namespace, for a workflow.
func converterOf(t *testing.T, namespace, workflow string) converter.DataConverter {
	t.Helper()
	data := newDataConverter(newCodec(someKeys(t), namespace))
	return converter.WithDataConverterSerializationContext(data,
		converter.WorkflowSerializationContext{Namespace: namespace, WorkflowID: workflow})
}

func TestAPayloadOpensWhereItBelongsAndNowhereElse(t *testing.T) {
	payload, err := converterOf(t, "ours", "stack/o/p/dev").ToPayload("destroy")
	must(t, err)
	for _, c := range []struct {
		name, namespace, workflow string
		opens                     bool
	}{
		{"its workflow", "ours", "stack/o/p/dev", true},
		{"another stack", "ours", "stack/o/p/prod", false},
		{"another workflow of its stack", "ours", "update/o/p/dev/1", false},
		{"another namespace", "theirs", "stack/o/p/dev", false},
		{"a schedule", "ours", "scheduled/o/p/dev/nightly-2026-01-02T03:04:05Z", false},
		{"no workflow", "ours", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said string
			err := converterOf(t, c.namespace, c.workflow).FromPayload(proto.CloneOf(payload), &said)
			if c.opens != (err == nil && said == "destroy") {
				t.Errorf("it says %q, %v", said, err)
			}
			if err != nil && !strings.Contains(err.Error(), "so it is refused") {
				t.Errorf("it says %v", err)
			}
		})
	}
	forged := proto.CloneOf(payload)
	forged.Metadata[placeKey] = []byte("ours\x00stack/o/p/prod\x00")
	var said string
	if err := converterOf(t, "ours", "stack/o/p/prod").FromPayload(forged, &said); err == nil {
		t.Errorf("a payload that only says that it is of another stack opens there as %q", said)
	}
}

func TestTheRunsOfAScheduleOpenPayloadsSealedForIt(t *testing.T) {
	payload, err := converterOf(t, "ours", "scheduled/o/p/dev/nightly").ToPayload("drift")
	must(t, err)
	var said string
	must(t, converterOf(t, "ours", "scheduled/o/p/dev/nightly-2026-01-02T03:04:05Z").FromPayload(payload, &said))
	if err := converterOf(t, "ours", "scheduled/o/p/prod/nightly-2026-01-02T03:04:05Z").FromPayload(payload,
		&said); err == nil {
		t.Error("the run of another schedule opens it")
	}
}

// activityOf is the converter of an activity of a workflow.
func activityOf(t *testing.T, workflow, activity string) converter.DataConverter {
	return converter.WithDataConverterSerializationContext(converterOf(t, "ours", ""),
		converter.ActivitySerializationContext{Namespace: "ours", WorkflowID: workflow, ActivityType: activity})
}

func TestAPayloadOfAnActivityIsOneOfNoOther(t *testing.T) {
	const run = "run/o/p/dev/1"
	payload, err := activityOf(t, run, "RunProgram").ToPayload(deployments.ProgramInput{})
	must(t, err)
	var in deployments.ProgramInput
	must(t, activityOf(t, run, "RunProgram").FromPayload(payload, &in))
	for what, there := range map[string]converter.DataConverter{
		"another activity": activityOf(t, run, "CommitUpdate"), "its workflow": converterOf(t, "ours", run),
		"that activity of another workflow": activityOf(t, "run/o/p/dev/2", "RunProgram"),
	} {
		if err := there.FromPayload(payload, &in); err == nil {
			t.Errorf("%s opens it", what)
		}
	}
}

func TestAPayloadIsReadAsWhatItWasMadeFor(t *testing.T) {
	data := converterOf(t, "ours", "stack/o/p/dev")
	accepted, err := data.ToPayloads(deployments.Accepted{Position: 3})
	must(t, err)
	var same deployments.Accepted
	must(t, data.FromPayloads(accepted, &same))
	if same.Position != 3 {
		t.Errorf("it is %+v", same)
	}
	nothing, err := data.ToPayloads(nil)
	must(t, err)
	codec := newCodec(someKeys(t), "ours")
	codec.workflow = "stack/o/p/dev"
	untagged, err := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), codec).ToPayloads(
		deployments.CommitInput{})
	must(t, err)
	for what, payloads := range map[string]*commonpb.Payloads{"an answer": accepted, "nothing": nothing,
		"a payload that does not say what it is": untagged, "no payload": nil, "an empty list of them": {}} {
		var commit deployments.CommitInput
		if err := data.FromPayloads(payloads, &commit); err == nil || !strings.Contains(err.Error(), "is refused") {
			t.Errorf("%s is read as a commit: %v", what, err)
		}
	}
}

func TestAFailureIsReadOnlyInItsWorkflow(t *testing.T) {
	at := converter.WorkflowSerializationContext{Namespace: "ours", WorkflowID: "run/o/p/dev/1"}
	any := newFailures(newDataConverter(newCodec(someKeys(t), "ours")))
	there := converter.WithFailureConverterSerializationContext(any, at)
	failure := there.ErrorToFailure(temporal.NewApplicationError("quota exceeded", "x", "detail"))
	if strings.Contains(failure.String(), "quota") {
		t.Errorf("it is not sealed: %v", failure)
	}
	if err := there.FailureToError(proto.CloneOf(failure)); !strings.Contains(err.Error(), "quota exceeded") {
		t.Errorf("it is read as %v", err)
	}
	at.WorkflowID = "run/o/p/prod/1"
	elsewhere := converter.WithFailureConverterSerializationContext(any, at)
	if err := elsewhere.FailureToError(proto.CloneOf(failure)); strings.Contains(err.Error(), "quota exceeded") {
		t.Errorf("elsewhere it is read as %v", err)
	}
}

// earlierPayload is a payload as earlier builds have sealed it, for a place or for none.
func earlierPayload(t *testing.T, place string, v any) *commonpb.Payload {
	t.Helper()
	plain, err := converter.GetDefaultDataConverter().ToPayload(v)
	must(t, err)
	data, err := proto.Marshal(plain)
	must(t, err)
	purpose, metadata := seal.PurposePayload, map[string][]byte{converter.MetadataEncoding: []byte(sealedEncoding)}
	if place != "" {
		purpose, metadata[placeKey] = sealPurpose(place), []byte(place)
	}
	return &commonpb.Payload{Metadata: metadata, Data: someKeys(t).Box(seal.PurposePayload).Seal(data, purpose)}
}

func TestAPayloadOfAnEarlierBuildIsRefusedWithASentenceAndRecovered(t *testing.T) {
	const run = "run/o/p/dev/1"
	recovering := newCodec(someKeys(t), "ours")
	recovering.earlier = true
	step := converter.WithDataConverterSerializationContext(newDataConverter(recovering),
		converter.ActivitySerializationContext{WorkflowID: run, ActivityType: "Step"})
	for _, place := range []string{"", "ours\x00" + run} {
		payload := earlierPayload(t, place, "step")
		if !unbound(payload) {
			t.Errorf("it says where it belongs: %q", place)
		}
		var said string
		for what, data := range map[string]converter.DataConverter{"its workflow": converterOf(t, "ours", run),
			"an activity": activityOf(t, run, "Step")} {
			if err := data.FromPayload(payload, &said); deployments.CodeOf(err) != deployments.CodeFormat ||
				!strings.Contains(err.Error(), "earlier build") {
				t.Errorf("to %s it says %q, %v", what, said, err)
			}
		}
		must(t, step.FromPayload(payload, &said))
		if said != "step" {
			t.Errorf("recovery reads %q", said)
		}
	}
	var said string
	if err := step.FromPayload(earlierPayload(t, "ours\x00run/o/p/dev/2", "step"), &said); err == nil {
		t.Errorf("recovery reads what another workflow has had: %q", said)
	}
	own, err := activityOf(t, run, "Step").ToPayload("step")
	must(t, err)
	own.Metadata[placeKey] = []byte("ours\x00" + run)
	if err := step.FromPayload(own, &said); err == nil {
		t.Error("recovery reads a payload that only says that an earlier build has sealed it")
	}
}

func TestAViewerOpensEveryPayloadAndSealsNone(t *testing.T) {
	view := NewViewer(someKeys(t))
	for _, data := range []converter.DataConverter{converterOf(t, "ours", "stack/o/p/dev"),
		activityOf(t, "run/o/p/dev/1", "Step")} {
		payload, err := data.ToPayload("create bucket")
		must(t, err)
		opened, err := view.Decode([]*commonpb.Payload{payload})
		must(t, err)
		if string(opened[0].GetData()) != `"create bucket"` {
			t.Errorf("it shows %s", opened[0].GetData())
		}
		if _, err := view.Encode(opened); err == nil {
			t.Error("it seals")
		}
	}
}

func TestTheInputOfAWorkflowNamesIt(t *testing.T) {
	u := deployments.UpdateName{StackName: deployments.StackName{Organization: "o", Project: "p", Stack: "s"},
		Version: "1"}
	nightly := deployments.Schedule{Name: deployments.ScheduleName{StackName: u.StackName, Name: "nightly"}}
	for input, want := range map[any]string{
		&deployments.StackInput{Stack: u.StackName}:    "stack/o/p/s",
		&deployments.UpdateInput{Update: u}:            "update/o/p/s/1",
		&deployments.RunInput{Update: u}:               "run/o/p/s/1",
		&deployments.ScheduledInput{Schedule: nightly}: "scheduled/o/p/s/nightly",
	} {
		var got string
		switch in := input.(type) {
		case *deployments.StackInput:
			got = nameOf(*in)
		case *deployments.UpdateInput:
			got = nameOf(*in)
		case *deployments.RunInput:
			got = nameOf(*in)
		case *deployments.ScheduledInput:
			got = nameOf(*in)
		}
		if got != want {
			t.Errorf("%T names %q, not %q", input, got, want)
		}
	}
}
