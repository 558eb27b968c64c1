package display

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// width returns how many columns a text takes; escape sequences take none.
func width(text string) int {
	n := 0
	walk(text, func(part string, columns int) bool {
		n += columns
		return true
	})
	return n
}

// Widest returns how many columns the widest line of a text takes.
func Widest(text string) int {
	widest := 0
	for _, line := range strings.Split(text, "\n") {
		widest = max(widest, width(line))
	}
	return widest
}

// clip shortens a text to a number of columns, and marks the cut with "…". It resets colours at the end.
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

// wrap cuts a text into lines of a number of columns, also within words.
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

// Fold wraps sentences to the width of the screen; with a nil screen it returns them unchanged.
func Fold(text string, screen *Screen) string {
	if screen == nil {
		return text
	}
	columns, _ := screen.Size()
	return strings.Join(fold(text, columns-1), "\n")
}

// fold wraps sentences at spaces into lines of a number of columns, and words that are longer, such as paths, after
// separators. A longer part stays whole, and so do URNs and URLs, because users copy them.
func fold(text string, columns int) (lines []string) {
	for _, whole := range strings.Split(text, "\n") {
		line, n := "", 0
		for _, part := range breakable(whole, columns) {
			if n+width(strings.TrimRight(part, " ")) > columns && strings.TrimSpace(line) != "" {
				lines = append(lines, strings.TrimRight(line, " "))
				line, n = "", 0
			}
			line += part
			n += width(part)
		}
		lines = append(lines, line)
	}
	return lines
}

// separators are where long words may be broken; a word that matches copied is never broken.
var separators, copied = regexp.MustCompile(`/+|::|\.+`), regexp.MustCompile(`urn:|://`)

// breakable splits a line where it may be wrapped: after spaces and, in words that are longer than a number of columns,
// after separators.
func breakable(line string, columns int) (parts []string) {
	for _, word := range strings.SplitAfter(line, " ") {
		if width(strings.TrimRight(word, " ")) > columns && !copied.MatchString(word) {
			parts = append(parts, strings.Split(separators.ReplaceAllString(word, "$0\x00"), "\x00")...)
		} else {
			parts = append(parts, word)
		}
	}
	return parts
}

// walk calls fn for each character and each escape sequence, until fn returns false.
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
