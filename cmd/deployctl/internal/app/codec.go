package app

import (
	"bytes"
	"net/http"

	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/statestore/seal"
	"github.com/deployctl/deployctl/worker"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// uiCodec opens sealed payloads for the Web UI, whose users may read them. It opens summaries, details and failures;
// other payloads may have property values, and are shown as "[sealed]".
type uiCodec struct{ keys *seal.Keyring }

// handler returns the codec's HTTP handler. It uses the keys of a home until follow is called.
func (c *uiCodec) handler(keys devserver.Keys) (http.Handler, error) {
	var err error
	if c.keys, err = seal.NewKeyring(keys.Master); err != nil {
		return nil, err
	}
	return converter.NewPayloadCodecHTTPHandler(redactingCodec{worker.NewViewer(c.keys)}), nil
}

// follow switches to the keys of the bucket.
func (c *uiCodec) follow(keys *seal.Keyring) {
	c.keys.Replace(keys.Keys())
	c.keys.OnUnknown(func() error {
		c.keys.Replace(keys.Keys())
		return nil
	})
}

// redactingCodec opens texts for users and replaces all other payloads by sealedText.
type redactingCodec struct{ converter.PayloadCodec }

var sealedText = &commonpb.Payload{
	Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)},
	Data:     []byte(`"[sealed]"`),
}

func (b redactingCodec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	opened := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		one, err := b.PayloadCodec.Decode([]*commonpb.Payload{p})
		switch {
		case err != nil: // a payload that is not ours: unchanged
			opened[i] = p
		case forPeople(one[0]):
			opened[i] = one[0]
		default:
			opened[i] = sealedText
		}
	}
	return opened, nil
}

// forPeople reports whether a payload is a summary, details, a table of progress, or a failure's message.
func forPeople(p *commonpb.Payload) bool {
	data := p.GetData()
	return string(p.GetMetadata()[converter.MetadataMessageType]) == "temporal.api.sdk.v1.WorkflowMetadata" ||
		bytes.HasPrefix(data, []byte(`"`)) ||
		bytes.HasPrefix(data, []byte(`{"message":`)) && bytes.Contains(data, []byte(`"stack_trace":`))
}
