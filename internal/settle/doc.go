// Package settle is the room of failed calls to providers: what may have happened, and how that is found out.
//
// Both are data. The rules for public providers are in catalogue, and activities carry them out.
//
//   - errorclass: what the errors of providers tell about the effect of a call, by a table of patterns (ADR 0049)
//   - settlerule: the language of settle rules: reads them, and renders their templates (ADR 0051)
package settle
