package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// maxEvent bounds the JSON of an engine event: with what is around it, it fits into a message.
const maxEvent = 12 << 20

// cutTo are what values of an event that is too large are cut to, one after the other until it fits: bytes of a text; a
// list or an object keeps an eighth as many elements.
var cutTo = []int{1 << 20, 64 << 10, 4 << 10, 256}

// eventJSON gives an engine event as JSON. In one that no message can carry, long values are cut, and say so.
func eventJSON(e *apitype.EngineEvent) ([]byte, error) {
	text, err := json.Marshal(e)
	if err != nil || len(text) <= maxEvent {
		return text, err
	}
	short := *e
	for _, bound := range cutTo {
		short = cutEvent(short, bound)
		cut, err := json.Marshal(&short)
		if err != nil || len(cut) <= maxEvent {
			return cut, err
		}
	}
	return json.Marshal(&apitype.EngineEvent{Sequence: e.Sequence, Timestamp: e.Timestamp,
		DiagnosticEvent: &apitype.DiagnosticEvent{
			Message: fmt.Sprintf("An event of %d MiB is too large to be shown.\n", len(text)>>20), Color: "never",
			Severity: "warning",
		}})
}

func cutEvent(e apitype.EngineEvent, bound int) apitype.EngineEvent {
	if e.DiagnosticEvent != nil {
		d := *e.DiagnosticEvent
		d.Message = cutText(d.Message, bound)
		e.DiagnosticEvent = &d
	}
	if e.StdoutEvent != nil {
		e.StdoutEvent = &apitype.StdoutEngineEvent{Message: cutText(e.StdoutEvent.Message, bound),
			Color: e.StdoutEvent.Color}
	}
	if e.ResourcePreEvent != nil {
		r := *e.ResourcePreEvent
		r.Metadata, e.ResourcePreEvent = cutStep(r.Metadata, bound), &r
	}
	if e.ResOutputsEvent != nil {
		r := *e.ResOutputsEvent
		r.Metadata, e.ResOutputsEvent = cutStep(r.Metadata, bound), &r
	}
	if e.ResOpFailedEvent != nil {
		r := *e.ResOpFailedEvent
		r.Metadata, e.ResOpFailedEvent = cutStep(r.Metadata, bound), &r
	}
	return e
}

func cutStep(m apitype.StepEventMetadata, bound int) apitype.StepEventMetadata {
	m.Old, m.New = cutState(m.Old, bound), cutState(m.New, bound)
	most := bound / 8
	m.Keys, m.Diffs = m.Keys[:min(len(m.Keys), most)], m.Diffs[:min(len(m.Diffs), most)]
	if len(m.DetailedDiff) > most {
		kept := make(map[string]apitype.PropertyDiff, most)
		for _, key := range slices.Sorted(maps.Keys(m.DetailedDiff))[:most] {
			kept[key] = m.DetailedDiff[key]
		}
		m.DetailedDiff = kept
	}
	return m
}

func cutState(s *apitype.StepEventStateMetadata, bound int) *apitype.StepEventStateMetadata {
	if s == nil {
		return nil
	}
	short := *s
	short.Inputs, _ = cutValue(s.Inputs, bound).(map[string]any)
	short.Outputs, _ = cutValue(s.Outputs, bound).(map[string]any)
	return &short
}

// cutValue cuts a value of JSON, and all in it.
func cutValue(v any, bound int) any {
	switch v := v.(type) {
	case string:
		return cutText(v, bound)
	case []any:
		return cutList(v, bound)
	case map[string]any:
		return cutObject(v, bound)
	}
	return v
}

func cutList(v []any, bound int) []any {
	most := bound / 8
	short := make([]any, 0, min(len(v), most+1))
	for _, element := range v[:min(len(v), most)] {
		short = append(short, cutValue(element, bound))
	}
	if left := len(v) - most; left > 0 {
		short = append(short, fmt.Sprintf("… (%d more are left out)", left))
	}
	return short
}

func cutObject(v map[string]any, bound int) map[string]any {
	if v == nil {
		return v
	}
	most := bound / 8
	short := make(map[string]any, min(len(v), most+1))
	keys := slices.Sorted(maps.Keys(v))
	for _, key := range keys[:min(len(keys), most)] {
		short[cutText(key, bound)] = cutValue(v[key], bound)
	}
	if left := len(v) - most; left > 0 {
		short["…"] = fmt.Sprintf("(%d more are left out)", left)
	}
	return short
}

// cutText cuts a text to a number of bytes, and says how many it leaves out.
func cutText(text string, bound int) string {
	if len(text) <= bound {
		return text
	}
	end := bound
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes are left out)", text[:end], len(text)-end)
}
