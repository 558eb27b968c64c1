package worker

import (
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/seal"
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
	data := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), NewCodec(someKeys(t), namespace))
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
	forged.Metadata[workflowKey] = []byte("ours\x00stack/o/p/prod")
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

func TestAnActivityOpensWhatItsWorkflowSealed(t *testing.T) {
	data := converterOf(t, "ours", "run/o/p/dev/1")
	payload, err := data.ToPayload("step")
	must(t, err)
	there := converter.WithDataConverterSerializationContext(converterOf(t, "ours", ""),
		converter.ActivitySerializationContext{Namespace: "ours", WorkflowID: "run/o/p/dev/1"})
	var said string
	must(t, there.FromPayload(payload, &said))
}

func TestAFailureIsReadOnlyInItsWorkflow(t *testing.T) {
	at := converter.WorkflowSerializationContext{Namespace: "ours", WorkflowID: "run/o/p/dev/1"}
	any := newFailures(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(),
		NewCodec(someKeys(t), "ours")))
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

// unboundPayload is a payload as earlier builds have sealed it.
func unboundPayload(t *testing.T, v any) *commonpb.Payload {
	t.Helper()
	keys := someKeys(t)
	plain, err := converter.GetDefaultDataConverter().ToPayload(v)
	must(t, err)
	data, err := proto.Marshal(plain)
	must(t, err)
	return &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(sealedEncoding)},
		Data:     keys.Box(seal.PurposePayload).Seal(data, seal.PurposePayload),
	}
}

func TestAPayloadOfAnEarlierBuildIsRefusedWithASentenceAndRecovered(t *testing.T) {
	payload := unboundPayload(t, "step")
	var said string
	err := converterOf(t, "ours", "run/o/p/dev/1").FromPayload(payload, &said)
	if err == nil || !strings.Contains(err.Error(), "earlier build") {
		t.Errorf("it says %q, %v", said, err)
	}
	recovering := newCodec(someKeys(t), "ours")
	recovering.earlier = true
	must(t, converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), recovering).FromPayload(payload,
		&said))
	if said != "step" {
		t.Errorf("recovery reads %q", said)
	}
}

func TestAViewerOpensEveryPayloadAndSealsNone(t *testing.T) {
	view := NewViewer(someKeys(t))
	for _, workflow := range []string{"stack/o/p/dev", "run/o/p/dev/1"} {
		payload, err := converterOf(t, "ours", workflow).ToPayload("create bucket")
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
