package display

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// width is how many columns a text takes; controls that begin with ESC take none.
func width(text string) int {
	n := 0
	walk(text, func(part string, columns int) bool {
		n += columns
		return true
	})
	return n
}

// Widest is how many columns the widest line of a text takes.
func Widest(text string) int {
	widest := 0
	for _, line := range strings.Split(text, "\n") {
		widest = max(widest, width(line))
	}
	return widest
}

// clip shortens a text to a number of columns, and marks that. Colours end where it does.
func clip(text string, columns int) string {
	if columns < 1 {
		return ""
	}
	if width(text) <= columns {
		return text
	}
	var b strings.Builder
	n, coloured := 0, false
	walk(text, func(part string, w int) bool {
		if w == 0 {
			coloured = coloured || part[0] == '\x1b'
		} else if n+w > columns-1 {
			return false
		}
		n += w
		b.WriteString(part)
		return true
	})
	b.WriteString("…")
	if coloured {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// wrap cuts a text that must be readable whole into lines of a number of columns.
func wrap(text string, columns int) []string {
	if columns < 1 {
		return nil
	}
	lines, n := []string{""}, 0
	walk(text, func(part string, w int) bool {
		if n+w > columns {
			lines, n = append(lines, ""), 0
		}
		lines[len(lines)-1] += part
		n += w
		return true
	})
	return lines
}

// Fold breaks a sentence at spaces so that it fits the screen; nil, which is no terminal, leaves it whole.
func Fold(text string, screen *Screen) string {
	if screen == nil {
		return text
	}
	columns, _ := screen.Size()
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		n := 0
		for j, word := range strings.SplitAfter(line, " ") {
			w := width(strings.TrimRight(word, " "))
			if j > 0 && n+w > columns-1 && n > 0 {
				b.WriteByte('\n')
				n = 0
			}
			b.WriteString(word)
			n += width(word)
		}
	}
	return strings.ReplaceAll(b.String(), " \n", "\n")
}

// walk goes over characters and escape sequences until fn says no.
func walk(text string, fn func(part string, columns int) bool) {
	for len(text) > 0 {
		if strings.HasPrefix(text, "\x1b[") {
			end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
			if end < 0 {
				return
			}
			if !fn(text[:end+3], 0) {
				return
			}
			text = text[end+3:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		columns := runewidth.RuneWidth(r)
		if !fn(text[:size], columns) {
			return
		}
		text = text[size:]
	}
}
