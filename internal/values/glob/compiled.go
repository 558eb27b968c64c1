package glob

import "strings"

// Compiled is a pattern of Text for many texts of bytes, such as names. Its time is that of a few searches in a text,
// and it takes no memory.
type Compiled struct {
	parts []string // between the stars
}

// Compile prepares a pattern in which * stands for any text, and ? for one byte.
func Compile(pattern string) Compiled {
	parts := strings.Split(pattern, "*")
	kept := parts[:0]
	for i, part := range parts { // stars in a row are one
		if part != "" || i == 0 || i == len(parts)-1 {
			kept = append(kept, part)
		}
	}
	return Compiled{kept}
}

// Match reports whether a text matches.
func (c Compiled) Match(text string) bool {
	first, last := c.parts[0], c.parts[len(c.parts)-1]
	if len(c.parts) == 1 {
		return len(text) == len(first) && begins(text, first)
	}
	if len(text) < len(first)+len(last) || !begins(text, first) || !begins(text[len(text)-len(last):], last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range c.parts[1 : len(c.parts)-1] {
		at := index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// begins reports whether a text begins with a part of a pattern, which has no star.
func begins(text, part string) bool {
	if len(text) < len(part) {
		return false
	}
	for i := range len(part) {
		if part[i] != '?' && part[i] != text[i] {
			return false
		}
	}
	return true
}

// index returns where a part of a pattern is first in a text; -1 when it is not there.
func index(text, part string) int {
	if !strings.Contains(part, "?") {
		return strings.Index(text, part)
	}
	for at := 0; at+len(part) <= len(text); at++ {
		if begins(text[at:], part) {
			return at
		}
	}
	return -1
}
