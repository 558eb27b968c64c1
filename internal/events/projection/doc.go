// Package projection computes what an update's events say so far: a State with a row for each resource, the changes of
// each row, the outputs of the stack, and the drift that a refresh found. It draws nothing: internal/terminal/display
// draws a State on a terminal, and the report of a drift check is made of one. Texts in it are safe to show; see
// internal/values/safetext. Values are as the events have them; Readable and FormatValue return what a person reads. A
// State is not safe for concurrent use.
package projection
