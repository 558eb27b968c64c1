package safetext

import "testing"

func TestTextsThatLookTheSameAreShownApart(t *testing.T) {
	for _, c := range [][4]string{
		{"\u00e9", "e\u0301", `\u00e9`, `e\u0301`},
		{"p\u0430y", "pay", `p\u0430y`, "pay"},
		{"\uff21", "A", `\uff21`, "A"},
		{"\ufb01x", "fix", `\ufb01x`, "fix"},
		{"é", "è", "é", "è"},
		{"café", "café", "café", "café"},
		{"a", "b", "a", "b"},
	} {
		if a, b := Apart(c[0], c[1]); a != c[2] || b != c[3] {
			t.Errorf("%q and %q are shown as %s and %s", c[0], c[1], a, b)
		}
	}
}
