package worker

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/internal/seal"
)

const (
	// sealedEncoding marks a payload that codec has sealed.
	sealedEncoding = "binary/sealed"
	// workflowKey is the metadata key of the workflow to which a sealed payload belongs, for viewers.
	workflowKey = "place"
)

// codec compresses and seals whole payloads for their workflow, and opens them only there. A payload that was copied
// from another workflow, and so from another stack, namespace or schedule, is rejected, and so is one that was not
// sealed with the service's key. So nobody else can make a worker run anything.
type codec struct {
	box       *seal.Box
	namespace string
	workflow  string // empty: not known, and nothing is opened
	earlier   bool   // also open payloads that older releases sealed without their workflow
}

// WithSerializationContext returns the codec of the workflow to which a payload belongs.
func (c codec) WithSerializationContext(at converter.SerializationContext) converter.PayloadCodec {
	switch at := at.(type) {
	case converter.WorkflowSerializationContext:
		c.workflow = at.WorkflowID
	case converter.ActivitySerializationContext:
		c.workflow = at.WorkflowID
	}
	return c
}

// started matches the time that the server appends to the id of a schedule's workflow.
var started = regexp.MustCompile(`-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// binding names the workflow to which payloads are bound. All runs of a schedule have one binding: the server starts
// each with the payload that was sealed for the schedule.
func (c codec) binding() string {
	workflow := c.workflow
	if strings.HasPrefix(workflow, "scheduled/") {
		workflow = started.ReplaceAllString(workflow, "")
	}
	return c.namespace + "\x00" + workflow
}

// sealPurpose returns the purpose with which a payload is sealed.
func sealPurpose(place string) string { return seal.PurposePayload + "\x00" + place }

// Encode seals payloads.
func (c codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encode a payload: %w", err)
		}
		place := c.binding()
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(sealedEncoding), workflowKey: []byte(place)},
			Data:     c.box.Seal(plain, sealPurpose(place)),
		}
	}
	return out, nil
}

// errWrongWorkflow rejects a payload of another workflow.
var errWrongWorkflow = errors.New("a payload was sealed with another key, or for another workflow than this one, " +
	"so it is refused")

// Decode opens payloads.
func (c codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := c.open(p)
		if err != nil {
			return nil, err
		}
		out[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(plain, out[i]); err != nil {
			return nil, fmt.Errorf("a sealed payload is damaged: %w", err)
		}
	}
	return out, nil
}

func (c codec) open(p *commonpb.Payload) ([]byte, error) {
	switch {
	case string(p.GetMetadata()[converter.MetadataEncoding]) != sealedEncoding:
		return nil, errors.New("a payload is not sealed with the service's key, so it is refused")
	case !bound(p) && c.earlier:
		return c.box.Open(p.GetData(), seal.PurposePayload)
	case !bound(p):
		return nil, errors.New("a payload was sealed by an earlier build of deployctl, which did not say where it " +
			"belongs, so it is refused")
	case c.workflow == "":
		return nil, errors.New("a payload is opened outside of the workflow that it belongs to, so it is refused")
	}
	plain, err := c.box.Open(p.GetData(), sealPurpose(c.binding()))
	if err != nil {
		return nil, errWrongWorkflow
	}
	return plain, nil
}

// bound reports whether a payload names its workflow.
func bound(p *commonpb.Payload) bool { return len(p.GetMetadata()[workflowKey]) > 0 }

// unbound reports whether a payload was sealed by a build that did not name the workflow.
func unbound(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == sealedEncoding && !bound(p)
}

// NewCodec returns the payload codec of a service's keys for a namespace.
func NewCodec(keys *seal.Keyring, namespace string) converter.PayloadCodec {
	return newCodec(keys, namespace)
}

func newCodec(keys *seal.Keyring, namespace string) codec {
	return codec{box: keys.Box(seal.PurposePayload), namespace: namespace}
}

// NewViewer returns a codec that opens payloads of every workflow, only for display.
func NewViewer(keys *seal.Keyring) converter.PayloadCodec { return viewer{newCodec(keys, "")} }

type viewer struct{ codec codec }

// Encode seals nothing: a viewer must not be a way to make payloads.
func (viewer) Encode([]*commonpb.Payload) ([]*commonpb.Payload, error) {
	return nil, errors.New("payloads are only opened here")
}

// Decode opens payloads.
func (v viewer) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		there := v.codec
		there.namespace, there.workflow, _ = strings.Cut(string(p.GetMetadata()[workflowKey]), "\x00")
		one, err := there.Decode([]*commonpb.Payload{p})
		if err != nil {
			return nil, err
		}
		out[i] = one[0]
	}
	return out, nil
}

// failures converts failures with a codec that knows the workflow; the SDK's converter does not pass the context on.
type failures struct {
	converter.FailureConverter
	data converter.DataConverter
}

// newFailures returns a failure converter that seals failures with the codec of data.
func newFailures(data converter.DataConverter) converter.FailureConverter {
	return failures{temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: data, EncodeCommonAttributes: true,
	}), data}
}

// WithSerializationContext returns the converter of the workflow to which a failure belongs.
func (f failures) WithSerializationContext(at converter.SerializationContext) converter.FailureConverter {
	return newFailures(converter.WithDataConverterSerializationContext(f.data, at))
}
