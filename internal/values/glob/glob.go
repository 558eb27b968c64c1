// Package glob matches texts and paths with patterns that users write. Its time is bounded by the product of the
// lengths of both, whatever the pattern is.
package glob

import "path"

// Text reports whether a text matches a pattern, in which * stands for any text, and ? for one character.
func Text(pattern, text string) bool {
	isStar := func(p rune) bool { return p == '*' }
	return match([]rune(pattern), []rune(text), isStar, func(p, r rune) bool { return p == '?' || p == r })
}

// Path reports whether the names in a path match the segments of a pattern: ** stands for any number of names, and
// another segment for one, as in path.Match. A segment that path.Match rejects matches nothing.
func Path(segments, names []string) bool {
	isStar := func(segment string) bool { return segment == "**" }
	return match(segments, names, isStar, func(segment, name string) bool {
		ok, err := path.Match(segment, name)
		return ok && err == nil
	})
}

// match reports whether all elements of a text match a pattern, in which a star stands for any number of elements.
//
// Of the stars, only the last one that was reached is ever tried with more elements. Those before it took as few as
// they can, and what could follow if they took more can follow the last one, too.
func match[P, E any](pattern []P, text []E, isStar func(P) bool, isOne func(P, E) bool) bool {
	p, t := 0, 0
	afterStar, ends := -1, 0 // what follows the last star in the pattern, and where its elements end in the text
	for t < len(text) {
		switch {
		case p < len(pattern) && isStar(pattern[p]):
			p++
			afterStar, ends = p, t
		case p < len(pattern) && isOne(pattern[p], text[t]):
			p, t = p+1, t+1
		case afterStar >= 0:
			ends++
			p, t = afterStar, ends
		default:
			return false
		}
	}
	for p < len(pattern) && isStar(pattern[p]) {
		p++
	}
	return p == len(pattern)
}

// Inside returns the segments of a pattern of which a ** at the end stands for at least one name, as in gitignore: a/**
// is what is in a, and not a itself.
func Inside(segments []string) []string {
	if last := len(segments) - 1; last >= 0 && segments[last] == "**" {
		return append(segments[:last:last], "*", "**")
	}
	return segments
}
