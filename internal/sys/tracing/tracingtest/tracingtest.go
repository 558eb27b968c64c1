// Package tracingtest checks spans that were exported.
package tracingtest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/testkit/collectortest"
)

// placeholder is a word of a name in tracing.Table that stands for any text.
var placeholder = regexp.MustCompile(`[A-Z]{2,}`)

// rowOf returns the first row of the table to which a name belongs.
func rowOf(name string) (tracing.Row, bool) {
	for _, row := range tracing.Table {
		pattern := placeholder.ReplaceAllString(regexp.QuoteMeta(row.Name), ".+")
		if regexp.MustCompile("^" + pattern + "$").MatchString(name) {
			return row, true
		}
	}
	return tracing.Row{}, false
}

// Check fails the test if a span has another name than those of tracing.Table, or an attribute that is not of its row.
func Check(t testing.TB, spans []collectortest.Span) {
	t.Helper()
	for _, span := range spans {
		row, known := rowOf(span.Name)
		if !known {
			t.Errorf("no row of the table has the span %s", span.Name)
			continue
		}
		for key := range span.Attributes {
			if !slices.Contains(row.Attributes, tracing.Key(key)) {
				t.Errorf("the row %s of the table has no attribute %s", row.Name, key)
			}
		}
	}
}

// Of returns the spans of a trace.
func Of(spans []collectortest.Span, trace string) []collectortest.Span {
	return slices.DeleteFunc(spans, func(s collectortest.Span) bool { return s.Trace != trace })
}

// Has reports whether a span has a name.
func Has(spans []collectortest.Span, name string) bool {
	return slices.ContainsFunc(spans, func(s collectortest.Span) bool { return s.Name == name })
}

// Lines returns the keys of a map, sorted, one a line.
func Lines(of map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(of)), "\n") }
