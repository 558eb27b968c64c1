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
	// placeKey is where a sealed payload says which workflow it belongs to, for whoever only looks at it.
	placeKey = "place"
)

// codec seals whole payloads, compressed first, for the workflow that they are of, and opens them there only: one
// that was copied from another workflow, and so from another stack, another namespace or a schedule, is refused, as
// is what was not sealed with the service's key. So nobody else can make a worker run anything.
type codec struct {
	box       *seal.Box
	namespace string
	workflow  string // empty: not known, and nothing is opened
	earlier   bool   // what builds have sealed that did not say where it belongs is opened, too
}

// WithSerializationContext gives the codec of the workflow that a payload is of.
func (c codec) WithSerializationContext(at converter.SerializationContext) converter.PayloadCodec {
	switch at := at.(type) {
	case converter.WorkflowSerializationContext:
		c.workflow = at.WorkflowID
	case converter.ActivitySerializationContext:
		c.workflow = at.WorkflowID
	}
	return c
}

// started is the time that the server adds to the name of a schedule's workflow.
var started = regexp.MustCompile(`-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// place is where payloads of the codec's workflow belong. All runs of a schedule are one place: the server starts
// each with the payload that was sealed for the schedule.
func (c codec) place() string {
	workflow := c.workflow
	if strings.HasPrefix(workflow, "scheduled/") {
		workflow = started.ReplaceAllString(workflow, "")
	}
	return c.namespace + "\x00" + workflow
}

// about is what a payload is sealed as.
func about(place string) string { return seal.PurposePayload + "\x00" + place }

// Encode seals payloads.
func (c codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encode a payload: %w", err)
		}
		place := c.place()
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(sealedEncoding), placeKey: []byte(place)},
			Data:     c.box.Seal(plain, about(place)),
		}
	}
	return out, nil
}

// errElsewhere is the refusal of a payload of another place.
var errElsewhere = errors.New("a payload was sealed with another key, or for another workflow than this one, so it " +
	"is refused")

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
	plain, err := c.box.Open(p.GetData(), about(c.place()))
	if err != nil {
		return nil, errElsewhere
	}
	return plain, nil
}

// bound reports whether a payload says where it belongs.
func bound(p *commonpb.Payload) bool { return len(p.GetMetadata()[placeKey]) > 0 }

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

// NewViewer returns a codec that opens payloads of every workflow, each as what it says it is of: only to be looked at.
func NewViewer(keys *seal.Keyring) converter.PayloadCodec { return viewer{newCodec(keys, "")} }

type viewer struct{ codec codec }

// Encode seals nothing: nobody is to make a payload by way of a viewer.
func (viewer) Encode([]*commonpb.Payload) ([]*commonpb.Payload, error) {
	return nil, errors.New("payloads are only opened here")
}

// Decode opens payloads.
func (v viewer) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		there := v.codec
		there.namespace, there.workflow, _ = strings.Cut(string(p.GetMetadata()[placeKey]), "\x00")
		one, err := there.Decode([]*commonpb.Payload{p})
		if err != nil {
			return nil, err
		}
		out[i] = one[0]
	}
	return out, nil
}

// failures converts failures with a codec that knows the workflow: the SDK's own converter does not pass that on.
type failures struct {
	converter.FailureConverter
	data converter.DataConverter
}

func newFailures(data converter.DataConverter) converter.FailureConverter {
	return failures{temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: data, EncodeCommonAttributes: true,
	}), data}
}

// WithSerializationContext gives the converter of the workflow that a failure is of.
func (f failures) WithSerializationContext(at converter.SerializationContext) converter.FailureConverter {
	return newFailures(converter.WithDataConverterSerializationContext(f.data, at))
}
