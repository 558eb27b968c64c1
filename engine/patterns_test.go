package engine

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

func TestAPatternMatchesWithinPartsOrAcrossThem(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"urn:x::a", "urn:x::a", true},
		{"urn:x::a", "urn:x::ab", false},
		{"", "", true},
		{"*", "", true},
		{"*", "abc", true},
		{"*", "a::b", false},
		{"*::b", "a::b", true},
		{"a*::b*", "abc::bcd", true},
		{"**", "a::b::c", true},
		{"**::c", "a::b::c", true},
		{"*::c", "a::b::c", false},
		{"***b", "a::b", true},
		{"*:b", "a::b", false},
		{"a:*", "a::b", true},
		{"a**b*", "a::xb::y", false},
		{"**b**", "a::xb::y", true},
	} {
		if got := compile([]string{c.pattern}).match(urn.URN(c.text)); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.text, got)
		}
	}
}

// It ends: an expression that is matched by trying would take longer than the universe exists.
func TestAHostilePatternIsMatched(t *testing.T) {
	if compile([]string{strings.Repeat("**a", 200)}).match(urn.URN(strings.Repeat("a", 1000) + "b")) {
		t.Error("it matches")
	}
}

func FuzzPatterns(f *testing.F) {
	f.Add("urn:*::a**:*", "urn:x::a:b::c")
	f.Add("*:*:*", ":::::")
	f.Add("\xff*\\E(", "\xffx\\E(")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		const most = 40
		if len(pattern) > most || len(text) > most || !utf8.ValidString(text) {
			return
		}
		p := compile([]string{pattern}) // of any bytes
		if !utf8.ValidString(pattern) {
			return
		}
		if got, want := p.match(urn.URN(text)), reaches(pattern, text); got != want {
			t.Errorf("%q matches %q: %v", pattern, text, got)
		}
	})
}

// reaches is what patterns.match does, by a table.
func reaches(pattern, s string) bool {
	reached := make([]bool, len(s)+1) // the lengths of s that the pattern matches so far
	reached[0] = true
	for pattern != "" {
		next := make([]bool, len(s)+1)
		if pattern[0] != '*' {
			for i := range len(s) {
				next[i+1] = reached[i] && s[i] == pattern[0]
			}
			pattern, reached = pattern[1:], next
			continue
		}
		deep, open := strings.HasPrefix(pattern, "**"), false
		for i := range next {
			open = open || reached[i]
			next[i] = open
			open = open && (deep || !strings.HasPrefix(s[i:], "::"))
		}
		pattern, reached = strings.TrimLeft(pattern, "*"), next
	}
	return reached[len(s)]
}
