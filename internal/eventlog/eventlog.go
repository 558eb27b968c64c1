// Package eventlog writes and reads the event log of an update: what happened, what the program and its plugins print,
// and how the update ended.
//
// A log has several streams, and a stream has numbered parts. A part is a JSON array of deployments.WatchEvent; Encode
// and Decode convert it. The store keeps the parts in order and sealed.
package eventlog

import (
	"context"
	"encoding/json"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// Appender stores the parts of event logs.
type Appender interface {
	// AppendEvents stores one part, as Encode returns it.
	AppendEvents(ctx context.Context, p statestore.Part, data []byte) error
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

// Decode returns the events of one part.
func Decode(data []byte) ([]deployments.WatchEvent, error) {
	var events []deployments.WatchEvent
	if err := json.Unmarshal(data, &events); err != nil {
		return nil, deployments.Errorf(deployments.CodeFormat, "an event log is damaged: %w", err)
	}
	return events, nil
}
