package temporal

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Duration is a time span as text, in one form: 72h, not 3d or 4320m.
type Duration string

const day = 24 * time.Hour

// PropertySchema is that of a text.
func (d *Duration) PropertySchema() map[string]any { return map[string]any{"type": "string"} }

// MarshalProperty is the text.
func (d *Duration) MarshalProperty() (resource.PropertyValue, error) {
	return resource.NewProperty(string(*d)), nil
}

// UnmarshalProperty accepts days, too.
func (d *Duration) UnmarshalProperty(v resource.PropertyValue) error {
	if !v.IsString() {
		return errors.New("must be a time span such as 72h or 3d")
	}
	span, err := parseSpan(v.StringValue())
	*d = durationOf(span)
	return err
}

func parseSpan(text string) (time.Duration, error) {
	count, isDays := strings.CutSuffix(text, "d")
	if n, err := strconv.Atoi(count); isDays && err == nil && n >= 0 && n <= int(maxSpan/day) {
		return time.Duration(n) * day, nil
	}
	span, err := time.ParseDuration(text)
	if err != nil || span < 0 || span > maxSpan {
		return 0, errors.New("must be a time span such as 72h or 3d")
	}
	return span, nil
}

const maxSpan = 36500 * day

// durationOf returns the text of a time span, empty for none.
func durationOf(span time.Duration) Duration {
	if span == 0 {
		return ""
	}
	text := span.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return Duration(text)
}

func (d Duration) span() time.Duration {
	span, _ := parseSpan(string(d)) // "" is none
	return span
}

// proto is nil for none.
func (d Duration) proto() *durationpb.Duration {
	if d.span() == 0 {
		return nil
	}
	return durationpb.New(d.span())
}

// Interval is a Duration, and after a slash the Duration by which it is shifted.
type Interval struct{ Every, Phase Duration }

// PropertySchema is that of a text.
func (i *Interval) PropertySchema() map[string]any { return map[string]any{"type": "string"} }

// MarshalProperty is the text.
func (i *Interval) MarshalProperty() (resource.PropertyValue, error) {
	text := string(i.Every)
	if i.Phase != "" {
		text += "/" + string(i.Phase)
	}
	return resource.NewProperty(text), nil
}

// UnmarshalProperty reads both.
func (i *Interval) UnmarshalProperty(v resource.PropertyValue) error {
	wrong := errors.New("must be an interval such as 6h, or 6h/15m for quarter past")
	if !v.IsString() {
		return wrong
	}
	every, phase, shifted := strings.Cut(v.StringValue(), "/")
	span, err := parseSpan(every)
	if err != nil || span < time.Second {
		return wrong
	}
	*i = Interval{Every: durationOf(span)}
	if !shifted {
		return nil
	}
	shift, err := parseSpan(phase)
	if err != nil || shift >= span {
		return wrong
	}
	i.Phase = durationOf(shift)
	return nil
}

// payload is a value as the SDKs of Temporal encode it by default.
func payload(value any) (*common.Payload, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	return &common.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: data}, nil
}

// valueOf is the value of a payload. One in another encoding is shown as that, so that it differs from every JSON.
func valueOf(p *common.Payload) any {
	var value any
	if encoding := string(p.GetMetadata()["encoding"]); encoding != "json/plain" {
		return map[string]any{"encoding": encoding, "data": p.GetData()}
	}
	if json.Unmarshal(p.GetData(), &value) != nil {
		return string(p.GetData())
	}
	return value
}
