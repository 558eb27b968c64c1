// Package rawjson takes JSON apart without copies: what it returns are parts of the text. So a large text, whose size
// and form others choose, costs no more memory than its length.
package rawjson

import (
	"encoding/json"
	"iter"
)

// Members returns the members of an object by their names, in order; nothing when the text is no object. A name that
// appears twice is returned twice. The text must be valid JSON (json.Valid).
func Members(text []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := cursor{text: text}
		for more := c.enter('{'); more; more = c.next('}') {
			var name string
			_ = json.Unmarshal(c.value(), &name) // a valid text has a string here
			c.at = c.space(c.at) + 1             // the colon
			if !yield(name, c.value()) {
				return
			}
		}
	}
}

// Elements returns the elements of an array, in order; nothing when the text is no array. The text must be valid JSON.
func Elements(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := cursor{text: text}
		for more := c.enter('['); more; more = c.next(']') {
			if !yield(c.value()) {
				return
			}
		}
	}
}

// Member returns the last member of an object with a name; nil when there is none.
func Member(text []byte, name string) (value []byte) {
	for n, v := range Members(text) {
		if n == name {
			value = v
		}
	}
	return value
}

// With returns the JSON of an object, in parts, to which a member is added whose value is a text in parts:
// encoding/json would copy that several times. Without a value nothing is added.
func With(object any, name string, value ...[]byte) ([][]byte, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if len(value) == 0 || len(value) == 1 && len(value[0]) == 0 {
		return [][]byte{text}, nil
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	before := text[:len(text)-1]
	if len(before) > len("{") {
		before = append(before, ',')
	}
	parts := append([][]byte{append(append(before, quoted...), ':')}, value...)
	return append(parts, []byte("}")), nil
}

// IsArray reports whether a valid text is an array.
func IsArray(text []byte) bool { c := cursor{text: text}; return c.peek() == '[' }

// IsObject reports whether a valid text is an object.
func IsObject(text []byte) bool { c := cursor{text: text}; return c.peek() == '{' }

// cursor is a position in a valid text.
type cursor struct {
	text []byte
	at   int
}

// space returns the position of what follows white space.
func (c *cursor) space(at int) int {
	for at < len(c.text) && (c.text[at] == ' ' || c.text[at] == '\n' || c.text[at] == '\r' || c.text[at] == '\t') {
		at++
	}
	return at
}

// peek returns the next byte that is no white space; 0 at the end.
func (c *cursor) peek() byte {
	if c.at = c.space(c.at); c.at < len(c.text) {
		return c.text[c.at]
	}
	return 0
}

// enter enters an object or an array, and reports whether it has anything.
func (c *cursor) enter(open byte) bool {
	if c.peek() != open {
		return false
	}
	c.at++
	return c.peek() != open+2 // '{' and '}', '[' and ']'
}

// next goes on to what follows a value, and reports whether there is more before the end.
func (c *cursor) next(end byte) bool {
	if c.peek() == end || c.at >= len(c.text) {
		return false
	}
	c.at++ // the comma
	return true
}

// value returns the next value.
func (c *cursor) value() []byte {
	from := c.space(c.at)
	c.at = from
	depth := 0
	for c.at < len(c.text) {
		switch c.text[c.at] {
		case '"':
			c.skipString()
			if depth == 0 {
				return c.text[from:c.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // after a number or a word
				return c.text[from:c.at]
			}
			if depth--; depth == 0 {
				c.at++
				return c.text[from:c.at]
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return c.text[from:c.at]
			}
		}
		c.at++
	}
	return c.text[from:c.at]
}

// skipString goes behind a string.
func (c *cursor) skipString() {
	for c.at++; c.at < len(c.text); c.at++ {
		switch c.text[c.at] {
		case '\\':
			c.at++
		case '"':
			c.at++
			return
		}
	}
	c.at = min(c.at, len(c.text))
}

// What values of a text become, as encoding/json makes them of any type: a map or a struct of an object, and an element
// of an array or a member (measured; see TestWhatATextCostsInMemory).
const (
	objectCost, valueCost = 448, 64
)

// Cost returns how much memory a text takes at most, in bytes, once encoding/json has made values of it. The text may
// be any.
func Cost(text []byte) int64 {
	objects, values := int64(0), int64(1)
	c := cursor{text: text}
	for c.at < len(text) {
		switch text[c.at] {
		case '"':
			c.skipString()
			continue
		case '{':
			objects++
			values++
		case '[', ',':
			values++
		}
		c.at++
	}
	return 2*int64(len(text)) + objects*objectCost + values*valueCost
}
