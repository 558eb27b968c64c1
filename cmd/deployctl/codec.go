package main

import (
	"bytes"
	"net/http"

	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/worker"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// newCodec opens sealed payloads for the Web UI, in the browser of whoever may open that. Summaries, details and failures are
// opened; what may hold values is only said to be sealed, so that no secret is ever shown.
func newCodec(keys devserver.Keys) (http.Handler, error) {
	sealing, err := worker.NewCodec(keys.Master)
	if err != nil {
		return nil, err
	}
	return converter.NewPayloadCodecHTTPHandler(blinding{sealing}), nil
}

// blinding opens what is text for people and blinds everything else.
type blinding struct{ converter.PayloadCodec }

var blinded = &commonpb.Payload{
	Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(`"[sealed]"`),
}

func (b blinding) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	opened := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		one, err := b.PayloadCodec.Decode([]*commonpb.Payload{p})
		switch {
		case err != nil: // somebody else's: as it is
			opened[i] = p
		case forPeople(one[0]):
			opened[i] = one[0]
		default:
			opened[i] = blinded
		}
	}
	return opened, nil
}

// forPeople says whether a payload is a summary, details, a table of progress, or what a failure says.
func forPeople(p *commonpb.Payload) bool {
	data := p.GetData()
	return string(p.GetMetadata()[converter.MetadataMessageType]) == "temporal.api.sdk.v1.WorkflowMetadata" ||
		bytes.HasPrefix(data, []byte(`"`)) ||
		bytes.HasPrefix(data, []byte(`{"message":`)) && bytes.Contains(data, []byte(`"stack_trace":`))
}
