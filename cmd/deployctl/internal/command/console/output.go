package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/values/safetext"
)

// SayJSON prints a value as indented JSON.
func (s *Session) SayJSON(value any) error {
	if list := reflect.ValueOf(value); list.Kind() == reflect.Slice && list.IsNil() {
		value = []any{} // an empty list is one, too
	}
	encoder := json.NewEncoder(s.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// SayTable prints rows in columns; the first row is the heading. What is too wide for the screen is left to the
// terminal to wrap if only the last cell of a row is; else each row is printed as a block with a line for each cell.
func (s *Session) SayTable(rows [][]string) error {
	for _, row := range rows {
		for i := range row {
			row[i] = safetext.Line(row[i])
		}
	}
	text, lead := table(rows)
	if s.Screen != nil && len(rows) > 1 {
		columns, _ := s.Screen.Size()
		if display.Widest(text) > columns && lead > columns-leastCell {
			text = blocks(rows)
		}
	}
	_, err := fmt.Fprint(s.Out, text)
	return err
}

const (
	cellGap = 3
	// widestCell is up to which width a cell widens its column; one that is wider moves only its own row.
	widestCell = 64
	// leastCell is the room for the last cell of a row, from which a table is readable.
	leastCell = 24
)

// table returns rows in columns, and where the last cell of a row begins, of that where it begins last.
func table(rows [][]string) (text string, lead int) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if w := display.Widest(cell); w <= widestCell {
				widths[i] = max(widths[i], w)
			}
		}
	}
	var b strings.Builder
	for _, row := range rows {
		line, last := "", 0
		for i, cell := range row {
			if cell != "" {
				last = display.Widest(line)
			}
			line += cell + strings.Repeat(" ", max(0, widths[i]-display.Widest(cell))+cellGap)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		lead = max(lead, last)
	}
	return b.String(), lead
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

// Sorted returns the keys of a map in their order.
func Sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
