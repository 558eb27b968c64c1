package safetext

import (
	"strings"
	"testing"
)

func TestEscapeSequencesOfOthersAreTakenOutWhole(t *testing.T) {
	for given, want := range map[string]string{
		"\x1b[31mError\x1b[0m: no":              "Error: no",
		"\x1b[1;4mx\x1b[m\x1b[2J\x1b[10;20Hy":   "xy",
		"\x1b]0;PWNED\x07title":                 "title",
		"\x1b]8;;http://evil\x1b\\link\x1b]8;;": "link",
		"\x1bPq#0;2;0;0;0\x1b\\picture":         "picture",
		"\u009b31mred\u009c":                    "red",
		"\u009d0;PWNED\u009cafter":              "after",
		"\x1b\x1b[0mnested":                     "nested",
		"half \x1b[31":                          "half ",
		"a\r\nb\x07\tc":                         "a\nb    c",
		"\u202eevil\u2066":                      "evil",
		"<{%fg 1%}>tag<{%reset%}>\n\n":          "tag",
		"Grüße 世界 🎉":                            "Grüße 世界 🎉",
	} {
		if got := Message(given); got != want {
			t.Errorf("%q is shown as %q, want %q", given, got, want)
		}
	}
}

func TestAValueIsShownWithTheControlsInIt(t *testing.T) {
	if got, want := Visible("a\x1b[0m\u009b\u202e\r"), `a\x1b[0m\u009b\u202e\r`; got != want {
		t.Errorf("%q", got)
	}
}

func TestWhatCannotBeSeenInAValueIsEscaped(t *testing.T) {
	ranges := [][2]rune{
		{0xa0, 0xa0}, {0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c}, {0x115f, 0x1160}, {0x1680, 0x1680},
		{0x17b4, 0x17b5}, {0x180b, 0x180f},
		{0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164},
		{0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
		{0xe0000, 0xe0fff},
	}
	for _, span := range ranges {
		for r := span[0]; r <= span[1]; r++ {
			if got := Visible("ad" + string(r) + "min"); !strings.HasPrefix(got, `ad\`) ||
				strings.ContainsRune(got, r) {
				t.Errorf("%U is shown as %q", r, got)
			}
		}
	}
	for given, want := range map[string]string{
		"ad\u200bmin": `ad\u200bmin`, "x\ufe0f": `x\ufe0f`, "\U000e0041": `\U000e0041`, "👩\u200d💻": `👩\u200d💻`,
		"Grüße 世界 🎉 e\u0301 ع": "Grüße 世界 🎉 e\u0301 ع",
	} {
		if got := Visible(given); got != want {
			t.Errorf("%+q is shown as %q, want %q", given, got, want)
		}
	}
}

func FuzzNothingThatATerminalObeysIsLeft(f *testing.F) {
	for _, seed := range []string{"\x1b[31m", "\x1b]0;x\a", "\u009b\x1bP", "\x1b\x1b[[", "<{%fg 1%}>", "<{%",
		"\xff\x9b\x1b", "a\n\tb"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, shown := range []string{Message(text), Text(text), Visible(text), Line(text)} {
			if bad := strings.ReplaceAll(shown, "\n", ""); !printable(bad) {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
	})
}
