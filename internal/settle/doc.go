// Package settle is the room of failed calls to providers: what may have happened, and how that is found out.
//
// Patterns of errors and settle rules are data. The rules for public providers are in catalogue, and activities carry
// them out.
//
//   - errorclass: classes of providers' errors, by a table of patterns; a class is a constant of engine (ADR 0049)
//   - stackkeys: the keys of a stack's configuration that say how its steps are made
//   - settlerule: the language of settle rules: reads them, and renders their templates (ADR 0051)
package settle
