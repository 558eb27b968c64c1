// Package eventlog writes and reads the event log of an update: what happened, what the program and its plugins print,
// and how the update ended.
//
// A log has several streams, and a stream has numbered parts. A part is a JSON array of deployments.WatchEvent; Encode
// and Decode convert it. The store keeps the parts in order and sealed.
package eventlog

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Appender stores the parts of event logs.
type Appender interface {
	// AppendEvents stores one part, as Encode returns it.
	AppendEvents(ctx context.Context, p updates.Part, data []byte) error
}

// RunStream is the stream that the Run of an update writes: part N is written by its save number N. The part after the
// last save ends the log.
const RunStream = "run"

// Encode returns the content of one part. Events that are too large for a message to a client are shortened.
func Encode(events []deployments.WatchEvent) ([]byte, error) {
	data, err := json.Marshal(events)
	if err == nil && len(data) > maxEvent { // rare: most events are small, so all are measured at once first
		fitting := make([]deployments.WatchEvent, len(events))
		for i, e := range events {
			fitting[i] = fit(e)
		}
		data, err = json.Marshal(fitting)
	}
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInternal, "encode events: %w", err)
	}
	return data, nil
}

// EncodeRaw returns one element of a part, for an event of a client whose JSON is known, and which was decoded.
func EncodeRaw(raw []byte, e *apitype.EngineEvent) ([]byte, error) {
	if len(raw) <= maxEvent {
		return slices.Concat([]byte(`{"event":`), raw, []byte("}")), nil
	}
	data, err := json.Marshal(fit(deployments.WatchEvent{Event: e}))
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInternal, "encode an event: %w", err)
	}
	return data, nil
}

// Each calls f for each event of one part, and decodes one at a time: a large part takes little memory.
func Each(data []byte, f func(deployments.WatchEvent) error) error {
	if !json.Valid(data) {
		_, err := Decode(data)
		return err
	}
	for raw := range rawjson.Elements(data) {
		var e deployments.WatchEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			return damaged(err)
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// Decode returns the events of one part.
func Decode(data []byte) ([]deployments.WatchEvent, error) {
	var events []deployments.WatchEvent
	if err := json.Unmarshal(data, &events); err != nil {
		return nil, damaged(err)
	}
	return events, nil
}

func damaged(err error) error {
	return deployments.Errorf(deployments.CodeFormat, "an event log is damaged: %w", err)
}
