package worker

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/internal/seal"
)

// sealedEncoding marks a payload that codec has sealed.
const sealedEncoding = "binary/sealed"

// codec seals whole payloads, compressed first, and refuses what was not sealed with the service's key: nobody else
// can make a worker run anything.
type codec struct{ box *seal.Box }

// Encode seals payloads.
func (c codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encode a payload: %w", err)
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(sealedEncoding)},
			Data:     c.box.Seal(plain, seal.PurposePayload),
		}
	}
	return out, nil
}

// Decode opens payloads.
func (c codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != sealedEncoding {
			return nil, fmt.Errorf("a payload is not sealed with the service's key, so it is refused")
		}
		plain, err := c.box.Open(p.GetData(), seal.PurposePayload)
		if err != nil {
			return nil, fmt.Errorf("a payload was sealed with another key, so it is refused: %w", err)
		}
		out[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(plain, out[i]); err != nil {
			return nil, fmt.Errorf("a sealed payload is damaged: %w", err)
		}
	}
	return out, nil
}

// NewCodec gives the payload codec of a service's keys.
func NewCodec(keys *seal.Keyring) converter.PayloadCodec { return codec{keys.Box(seal.PurposePayload)} }
