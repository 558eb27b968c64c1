package redaction

import (
	"regexp"
	"strings"
)

// sequences are the control sequences of terminals: CSI, then the strings (OSC, DCS, APC, PM, SOS), whole or cut off,
// then all others.
var sequences = regexp.MustCompile(
	"(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]?" +
		"|(?:\x1b[\\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)?" +
		"|\x1b[ -/]*[0-~]?")

// colours are the sequences that change how text looks and nothing else.
var colours = regexp.MustCompile("^\x1b\\[[0-9;:]*m$")

// Controls takes out of a text what would make a terminal do something but write: every control character and sequence
// but newlines, tabs and colours.
func Controls(text string) string {
	if !strings.ContainsFunc(text, control) {
		return text
	}
	var b strings.Builder
	rest := text
	for rest != "" {
		at := sequences.FindStringIndex(rest)
		if at == nil {
			break
		}
		b.WriteString(strings.Map(visible, rest[:at[0]]))
		if sequence := rest[at[0]:at[1]]; colours.MatchString(sequence) {
			b.WriteString(sequence)
		}
		rest = rest[at[1]:]
	}
	b.WriteString(strings.Map(visible, rest))
	return b.String()
}

func control(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
}

func visible(r rune) rune {
	if control(r) {
		return -1
	}
	return r
}
