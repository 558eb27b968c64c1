package engine

import (
	"strings"
	"testing"
	"time"
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
		if got := glob(c.pattern, c.text); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.text, got)
		}
	}
}

func TestAHostilePatternIsMatchedInBoundedTime(t *testing.T) {
	done := make(chan bool, 1)
	go func() { done <- glob(strings.Repeat("**a", 200), strings.Repeat("a", 1000)+"b") }()
	select {
	case matched := <-done:
		if matched {
			t.Error("it matches")
		}
	case <-time.After(time.Minute): // it would take longer than the universe exists
		t.Fatal("it does not end")
	}
}
