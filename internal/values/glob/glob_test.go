package glob

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPathsMatchSegmentBySegment(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a/b", "a/b", true},
		{"a/b", "a", false},
		{"a", "a/b", false},
		{"**", "a/b", true},
		{"a/**", "a", true},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "a/b/x", false},
		{"**/b/**/c", "b/x/b/c", true},
		{"**/a/b", "a/a/b", true},
		{"*.t?", "x.ts", true},
		{"[a-c]/x", "b/x", true},
		{"[", "[", false},
	} {
		if got := Path(strings.Split(c.pattern, "/"), strings.Split(c.name, "/")); got != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.name, got)
		}
	}
	inside := Inside([]string{"a", "**"})
	if Path(inside, []string{"a"}) || !Path(inside, []string{"a", "b", "c"}) {
		t.Error("a/** is not what is in a")
	}
}

func TestTextsMatchCharacterByCharacter(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"a*", "ab\nc", true}, {"*c", "abcc", true},
		{"a?c", "aüc", true}, {"?", "", false}, {"a*b*c", "a-c-b", false}, {"a.c", "abc", false},
		{"a*b?d*e", "abbcdbxde", true},
		{"ab*ba", "aba", false}, {"*?*", "x", true}, {"*b?*b?", "abcb", false}, {"**a", "a", true},
	} {
		if got := Text(c.pattern, c.text); got != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.text, got)
		}
		if got := Compile(c.pattern).Match(c.text); got != c.want && c.text != "aüc" {
			t.Errorf("%s matches %s once it is compiled: %v", c.pattern, c.text, got)
		}
	}
}

// most bounds what a fuzz target compares.
const most = 40

func FuzzText(f *testing.F) {
	f.Add("a*b?c", "aaabxc")
	f.Add(strings.Repeat("*a", most/2), strings.Repeat("a", most-1)+"b")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > most || len(text) > most {
			return
		}
		isStar := func(p rune) bool { return p == '*' }
		want := matched([]rune(pattern), []rune(text), isStar, func(p, r rune) bool { return p == '?' || p == r })
		if got := Text(pattern, text); got != want {
			t.Errorf("%q matches %q: %v", pattern, text, got)
		}
		ascii := func(r rune) bool { return r < utf8.RuneSelf }
		if got := Compile(pattern).Match(text); got != want && !strings.ContainsFunc(text+pattern, func(r rune) bool {
			return !ascii(r)
		}) {
			t.Errorf("%q matches %q once it is compiled: %v", pattern, text, got)
		}
	})
}

func FuzzPath(f *testing.F) {
	f.Add("**/a/*/b", "x/a/c/b")
	f.Add(strings.Repeat("**/a/", most/5)+"z", strings.Repeat("a/", most/2))
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > most || len(name) > most {
			return
		}
		segments, names := strings.Split(pattern, "/"), strings.Split(name, "/")
		isStar := func(segment string) bool { return segment == "**" }
		want := matched(segments, names, isStar, func(segment, name string) bool {
			return Path([]string{segment}, []string{name})
		})
		if got := Path(segments, names); got != want {
			t.Errorf("%q matches %q: %v", pattern, name, got)
		}
	})
}

// matched is match by a table: which lengths of the text each part of the pattern can reach.
func matched[P, E any](pattern []P, text []E, isStar func(P) bool, isOne func(P, E) bool) bool {
	reached := make([]bool, len(text)+1)
	reached[0] = true
	for _, p := range pattern {
		next := make([]bool, len(text)+1)
		for i := range next {
			if isStar(p) {
				next[i] = reached[i] || i > 0 && next[i-1]
			} else {
				next[i] = i > 0 && reached[i-1] && isOne(p, text[i-1])
			}
		}
		reached = next
	}
	return reached[len(text)]
}

func TestTheWorkIsBoundedByTheProductOfTheLengths(t *testing.T) {
	steps := 0 // comparisons of one element
	isStar := func(p byte) bool { return p == '*' }
	isOne := func(p, r byte) bool { steps++; return p == r }
	for _, pattern := range []string{strings.Repeat("*a", 100), "*" + strings.Repeat("a", 200) + "b"} {
		text := strings.Repeat("a", 1000) + "c"
		if match([]byte(pattern), []byte(text), isStar, isOne) || steps > 2*len(pattern)*len(text) {
			t.Errorf("%s: %d comparisons", pattern, steps)
		}
	}
}
