package valuediff

import (
	"strings"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// Line is one line of a comparison of texts.
type Line struct {
	Kind Kind // Added, Removed; Changed is context, which both texts have
	Text string
	// Skipped counts the common lines that are left out here; then there is no Text.
	Skipped int
}

// context is how many common lines are shown around those that differ.
const context = 2

func multiline(text string) bool { return strings.Contains(strings.TrimSuffix(text, "\n"), "\n") }

// lines compares two texts line by line.
func lines(old, now string) []Line {
	was, is := splitLines(old), splitLines(now)
	var list []Line
	done := 0 // lines of old that are in the list, or left out
	found := blocks(was, is)
	for n, b := range found {
		list = append(list, common(was[done:b.oldFrom], n > 0, true)...)
		for _, text := range was[b.oldFrom:b.oldTo] {
			list = append(list, Line{Kind: Removed, Text: text})
		}
		for _, text := range is[b.newFrom:b.newTo] {
			list = append(list, Line{Kind: Added, Text: text})
		}
		done = b.oldTo
	}
	return append(list, common(was[done:], len(found) > 0, false)...)
}

// common gives the lines between two differences, without those that are far from both.
func common(texts []string, after, before bool) []Line {
	head, tail := 0, 0
	if after {
		head = context
	}
	if before {
		tail = context
	}
	var list []Line
	for i, text := range texts {
		switch {
		case len(texts) <= head+tail+1 || i < head || i >= len(texts)-tail:
			list = append(list, Line{Text: text})
		case i == head:
			list = append(list, Line{Skipped: len(texts) - head - tail})
		}
	}
	return list
}

// noNewline marks a text whose last line does not end.
const noNewline = `\ no newline at the end`

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	if body, ended := strings.CutSuffix(text, "\n"); ended {
		return strings.Split(body, "\n")
	}
	return append(strings.Split(text, "\n"), noNewline)
}

// Differing cuts two texts of one line to what differs, with some characters around it, if they are longer than max.
// What they have in common between two differences is cut, too, and at last what differs, if it is much longer than
// max. What is cut is counted.
func Differing(old, now string, max int) (string, string) {
	a, b := []rune(old), []rune(now)
	if len(a) <= max && len(b) <= max {
		return old, now
	}
	engine := diffmatchpatch.New()
	engine.DiffTimeout = patience / 10 // a screen is drawn again and again
	edits := engine.DiffMainRunes(a, b, false)
	if len(edits) <= max {
		edits = engine.DiffCleanupSemantic(edits)
	} // else nearly all differs, and is cut
	var was, is strings.Builder
	for i, edit := range edits {
		switch edit.Type {
		case diffmatchpatch.DiffDelete:
			was.WriteString(edit.Text)
		case diffmatchpatch.DiffInsert:
			is.WriteString(edit.Text)
		default:
			text := sparse([]rune(edit.Text), i > 0, i < len(edits)-1)
			was.WriteString(text)
			is.WriteString(text)
		}
	}
	const much = 4
	return Cut(was.String(), much*max), Cut(is.String(), much*max)
}

// sparse leaves out of what two texts have in common all but some characters beside a difference before and after it.
func sparse(text []rune, after, before bool) string {
	const around = 12
	first, last := 0, 0
	if after {
		first = around
	}
	if before {
		last = around
	}
	n := len(text) - first - last
	if n < worth {
		return string(text)
	}
	return string(text[:first]) + cut(n) + string(text[len(text)-last:])
}
