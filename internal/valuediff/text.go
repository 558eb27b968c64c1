package valuediff

import "strings"

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

// Differing cuts two texts of one line to what differs, with some characters around it, if they are longer than max. What is cut
// is counted.
func Differing(old, now string, max int) (string, string) {
	a, b := []rune(old), []rune(now)
	if len(a) <= max && len(b) <= max {
		return old, now
	}
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	const around = 12
	from, rest := head-around, tail-around
	return excerpt(a, from, rest), excerpt(b, from, rest)
}

// excerpt leaves out the first and last characters of a text, if they are more than what says so takes.
func excerpt(text []rune, first, last int) string {
	const worth = 24
	begin, end := "", ""
	if first < worth {
		first = 0
	} else {
		begin = cut(first)
	}
	if last < worth {
		last = 0
	} else {
		end = cut(last)
	}
	return begin + string(text[first:len(text)-last]) + end
}
