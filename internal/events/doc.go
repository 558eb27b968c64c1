// Package events is the room of update events: how they are stored, and what they say.
//
// How they are drawn is in internal/terminal; secrets are removed before, by internal/values/redaction.
//
//   - eventlog: the event log of an update: its format, and writing the output of programs and plugins
//   - projection: what an update's events say so far: rows, changes, outputs, drift; draws nothing
package events
