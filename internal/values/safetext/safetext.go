// Package safetext makes text of others safe to show: it removes or escapes what a terminal would obey, and what a
// reader cannot see.
package safetext

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag/colors"
)

// Message returns a message of others that is safe to print: without colour tags, without whole escape sequences, and
// without anything else that moves the cursor or changes the direction of writing. Line feeds stay, except at the end.
func Message(text string) string {
	return strings.TrimRight(Text(colors.Never.Colorize(text)), "\n")
}

// Text takes out of a text of others everything that a terminal obeys: escape sequences (ECMA-48) as a whole,
// whichever way they are introduced, all other controls but line feeds, and marks that turn the direction of writing. A
// tab becomes spaces.
func Text(text string) string {
	if printable(text) {
		return text
	}
	for {
		stripped := ansi.Strip(introduced.Replace(text))
		if stripped == text {
			break
		}
		text = stripped // what a sequence stood in the middle of may be one now
	}
	text = strings.ReplaceAll(text, "\t", "    ")
	return strings.Map(func(r rune) rune {
		if r != '\n' && unprintable(r) {
			return -1
		}
		return r
	}, text)
}

// Line is Text for what stands on one line: line feeds become spaces.
func Line(text string) string { return strings.ReplaceAll(Text(text), "\n", " ") }

// introduced writes the 8-bit introducers of sequences as they are in UTF-8 the 7-bit way.
var introduced = strings.NewReplacer(
	"\u0090", "\x1bP", "\u0098", "\x1bX", "\u009b", "\x1b[", "\u009c", "\x1b\\", "\u009d", "\x1b]", "\u009e", "\x1b^",
	"\u009f", "\x1b_",
)

// Visible shows, escaped, what Text would take out and what a reader cannot see or tell from a space: a value is
// shown with all that is in it, so that two that differ never look the same. Emoji that are joined by such characters
// come apart.
func Visible(text string) string {
	if !strings.ContainsFunc(text, unseen) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unseen(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unseen are what is unprintable, formats, what Unicode lets fonts ignore, and what is blank without being the usual
// space.
func unseen(r rune) bool {
	const brailleBlank = '\u2800'
	return r > '~' && unicode.In(r, unicode.Cf, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point,
		unicode.Variation_Selector) ||
		r == brailleBlank || unprintable(r)
}

func printable(text string) bool { return !strings.ContainsFunc(text, unprintable) }

// unprintable are controls, what turns the direction of writing, and what is no character.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' ||
		r == unicode.ReplacementChar
}
