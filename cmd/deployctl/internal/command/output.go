package command

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// sayJSON prints a value as indented JSON.
func (s *session) sayJSON(value any) error {
	encoder := json.NewEncoder(s.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// sayTable prints rows in columns; the first is the heading.
func (s *session) sayTable(rows [][]string) error {
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		line := strings.TrimRight(strings.Join(row, "\t"), "\t") + "\n"
		if _, err := w.Write([]byte(line)); err != nil {
			return err
		}
	}
	return w.Flush()
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
