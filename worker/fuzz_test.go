package worker

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/deployctl/deployctl/statestore/seal"
)

// FuzzPayloads opens what whoever can write to Temporal puts in the place of payloads: nothing opens.
func FuzzPayloads(f *testing.F) {
	f.Add([]byte(sealedEncoding), []byte("ours\x00stack/o/p/dev\x00"), []byte{1, 2, 3})
	f.Add([]byte(sealedEncoding), []byte{}, make([]byte, 64))
	f.Add([]byte("json/plain"), []byte{}, []byte(`"destroy"`))
	ring, err := seal.NewKeyring(make([]byte, 32))
	if err != nil {
		f.Fatal(err)
	}
	keys := newCodec(ring, "ours")
	opens := keys.WithSerializationContext(converter.WorkflowSerializationContext{Namespace: "ours",
		WorkflowID: "stack/o/p/dev"})
	f.Fuzz(func(t *testing.T, encoding, place, data []byte) {
		p := &commonpb.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: encoding, placeKey: place}, Data: data}
		for name, c := range map[string]converter.PayloadCodec{"the workflow": opens, "a viewer": viewer{keys}} {
			if got, err := c.Decode([]*commonpb.Payload{p}); err == nil {
				t.Errorf("%s opens %q", name, got)
			}
		}
	})
}
