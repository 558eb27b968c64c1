package worker

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/seal"
)

const (
	// sealedEncoding marks a payload that codec has sealed.
	sealedEncoding = "binary/sealed"
	// placeKey is the metadata key of the binding of a sealed payload, for viewers.
	placeKey = "place"
)

// codec compresses and seals whole payloads for their workflow and activity, and opens them only there. A payload that
// was copied from another workflow, and so from another stack, namespace or schedule, is rejected, and so is one of
// another activity, and one that was not sealed with the service's key. So nobody else can make a worker run anything.
// What else a payload is of, typed says.
type codec struct {
	box       *seal.Box
	namespace string
	workflow  string // empty: not known, and nothing is opened
	activity  string // the type of the activity; empty: the payload is of the workflow itself, or a failure
	earlier   bool   // also open payloads that earlier builds sealed for less than that
}

// WithSerializationContext returns the codec of the workflow to which a payload belongs.
func (c codec) WithSerializationContext(at converter.SerializationContext) converter.PayloadCodec {
	switch at := at.(type) {
	case converter.WorkflowSerializationContext:
		c.workflow, c.activity = at.WorkflowID, ""
	case converter.ActivitySerializationContext:
		c.workflow, c.activity = at.WorkflowID, at.ActivityType
	}
	return c
}

// started matches the time that the server appends to the id of a schedule's workflow.
var started = regexp.MustCompile(`-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// binding names the workflow and the activity to which payloads are bound. All runs of a schedule have one binding:
// the server starts each with the payload that was sealed for the schedule.
func (c codec) binding() string { return c.earlierBinding() + "\x00" + c.activity }

// earlierBinding is that of builds which did not name the activity.
func (c codec) earlierBinding() string {
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
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(sealedEncoding), placeKey: []byte(place)},
			Data:     c.box.Seal(plain, sealPurpose(place)),
		}
	}
	return out, nil
}

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

// refused returns the error about a payload that no retry opens.
func refused(why string) error { return deployments.Errorf(deployments.CodeFormat, "%s", why) }

func (c codec) open(p *commonpb.Payload) ([]byte, error) {
	place := string(p.GetMetadata()[placeKey])
	purpose := sealPurpose(c.binding())
	switch {
	case string(p.GetMetadata()[converter.MetadataEncoding]) != sealedEncoding:
		return nil, refused("a payload is not sealed with the service's key, so it is refused")
	case unbound(p) && !c.earlier:
		return nil, refused("a payload was sealed by an earlier build of deployctl, which did not say where it " +
			"belongs, so it is refused")
	case unbound(p) && place == "":
		return c.box.Open(p.GetData(), seal.PurposePayload)
	case unbound(p):
		purpose = sealPurpose(c.earlierBinding())
	}
	if c.workflow == "" {
		return nil, refused("a payload is opened outside of the workflow that it belongs to, so it is refused")
	}
	plain, err := c.box.Open(p.GetData(), purpose)
	if err != nil {
		return nil, refused("a payload was sealed with another key, or for another workflow or activity than this one, " +
			"so it is refused")
	}
	return plain, nil
}

// unbound reports whether a payload was sealed by a build that did not name the activity, or not even the workflow.
// Such a build did not name the type of the value either.
func unbound(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[converter.MetadataEncoding]) == sealedEncoding &&
		bytes.Count(p.GetMetadata()[placeKey], []byte{0}) < 2
}

func newCodec(keys *seal.Keyring, namespace string) codec {
	return codec{box: keys.Box(seal.PurposePayload), namespace: namespace}
}

// NewViewer returns a codec that opens payloads of every workflow, only for display.
func NewViewer(keys *seal.Keyring) converter.PayloadCodec {
	c := newCodec(keys, "")
	c.earlier = true
	return viewer{c}
}

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
		namespace, rest, _ := strings.Cut(string(p.GetMetadata()[placeKey]), "\x00")
		there.namespace = namespace
		there.workflow, there.activity, _ = strings.Cut(rest, "\x00")
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

// WithSerializationContext returns the converter of the workflow to which a failure belongs. That of an activity is one
// of its workflow, which may end with it.
func (f failures) WithSerializationContext(at converter.SerializationContext) converter.FailureConverter {
	if of, ok := at.(converter.ActivitySerializationContext); ok {
		at = converter.WorkflowSerializationContext{Namespace: of.Namespace, WorkflowID: of.WorkflowID}
	}
	return newFailures(converter.WithDataConverterSerializationContext(f.data, at))
}
