package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/deployctl/deployctl/internal/display"
	"github.com/deployctl/deployctl/internal/safetext"
)

// sayJSON prints a value as indented JSON.
func (s *session) sayJSON(value any) error {
	encoder := json.NewEncoder(s.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// sayTable prints rows in columns; the first row is the heading. If the screen is too narrow, each row is printed as a
// block with a line for each cell.
func (s *session) sayTable(rows [][]string) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = safetext.Line(row[i])
		}
		line := strings.TrimRight(strings.Join(row, "\t"), "\t") + "\n"
		if _, err := w.Write([]byte(line)); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	text := b.String()
	if s.Screen != nil && len(rows) > 1 {
		if columns, _ := s.Screen.Size(); display.Widest(text) > columns {
			text = blocks(rows)
		}
	}
	_, err := fmt.Fprint(s.Out, text)
	return err
}

// blocks returns each row as a block: its first cell, and below it a line for each other cell with its heading.
func blocks(rows [][]string) string {
	widest := 0
	for _, heading := range rows[0][1:] {
		widest = max(widest, len(heading))
	}
	var b strings.Builder
	for _, row := range rows[1:] {
		b.WriteString(row[0] + "\n")
		for i, cell := range row[1:] {
			if cell != "" {
				fmt.Fprintf(&b, "  %-*s  %s\n", widest, strings.ToLower(rows[0][i+1]), cell)
			}
		}
	}
	return b.String()
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
