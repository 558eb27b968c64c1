package worker

import (
	"fmt"
	"reflect"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// typed writes into each payload, before it is sealed, which type of value it is, and reads it as that type alone. In a
// workflow each type is of one kind of payload (deployments, a test compares them), so none serves as another one: a
// request not as a signal, an answer not as an input. Names of types are part of what running workflows have stored.
type typed struct {
	converter.DataConverter
	earlier bool // also read payloads that do not say their type
}

// typeKey is the metadata key of the type of a value.
const typeKey = "type"

// newDataConverter returns the converter of payloads that a codec seals.
func newDataConverter(c codec) converter.DataConverter {
	return converter.NewCodecDataConverter(typed{converter.GetDefaultDataConverter(), c.earlier}, c)
}

// typeOf returns the name of the type of a value, or of that to which it points.
func typeOf(value any) string {
	t := reflect.TypeOf(value)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "nil"
	}
	return t.String()
}

// ToPayload converts a value.
func (c typed) ToPayload(value any) (*commonpb.Payload, error) {
	p, err := c.DataConverter.ToPayload(value)
	if err != nil {
		return nil, err
	}
	if p.Metadata == nil {
		p.Metadata = map[string][]byte{}
	}
	p.Metadata[typeKey] = []byte(typeOf(value))
	return p, nil
}

// FromPayload converts a payload to a value.
func (c typed) FromPayload(p *commonpb.Payload, to any) error {
	is, ok := p.GetMetadata()[typeKey]
	if want := typeOf(to); string(is) != want && (ok || !c.earlier) {
		return fmt.Errorf("a payload is of type %q and not %q, so it is refused", is, want)
	}
	return c.DataConverter.FromPayload(p, to)
}

// ToPayloads converts values.
func (c typed) ToPayloads(values ...any) (*commonpb.Payloads, error) {
	if len(values) == 0 {
		return nil, nil
	}
	all := &commonpb.Payloads{}
	for i, value := range values {
		p, err := c.ToPayload(value)
		if err != nil {
			return nil, fmt.Errorf("values[%d]: %w", i, err)
		}
		all.Payloads = append(all.Payloads, p)
	}
	return all, nil
}

// FromPayloads converts payloads to values. Each value must have been sealed: whoever can use the namespace can send
// less, which would read as the zero value, such as a state without resources.
func (c typed) FromPayloads(all *commonpb.Payloads, to ...any) error {
	if have := len(all.GetPayloads()); have < len(to) {
		return refused(fmt.Sprintf("of %d values there are %d, so this is refused", len(to), have))
	}
	for i, p := range all.GetPayloads() {
		if i >= len(to) {
			break
		}
		if err := c.FromPayload(p, to[i]); err != nil {
			return fmt.Errorf("payload item %d: %w", i, err)
		}
	}
	return nil
}
