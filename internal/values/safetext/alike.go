package safetext

import (
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// Apart returns two texts so that a reader sees how they differ: if they look the same and are not, because characters
// are composed in another way or are those of another script, everything beyond ASCII is escaped.
func Apart(a, b string) (string, string) {
	if a == b || look(a) != look(b) {
		return a, b
	}
	return escaped(a), escaped(b)
}

// look is the same for texts that look the same.
func look(text string) string { return twins.Replace(norm.NFKC.String(text)) }

// twins are letters that look as Latin ones do: Cyrillic and Greek. Source: Unicode's confusables.txt.
var twins = strings.NewReplacer(
	"а", "a", "е", "e", "і", "i", "ј", "j", "о", "o", "р", "p", "с", "c", "ѕ", "s", "у", "y", "х", "x", "һ", "h", "ԁ", "d",
	"ԛ", "q", "ԝ", "w", "А", "A", "В", "B", "Е", "E", "З", "3", "І", "I", "Ј", "J", "К", "K", "М", "M", "Н", "H", "О", "O",
	"Р", "P", "С", "C", "Ѕ", "S", "Т", "T", "У", "Y", "Х", "X",
	"ο", "o", "ν", "v", "ρ", "p", "ι", "i", "Α", "A", "Β", "B", "Ε", "E", "Ζ", "Z", "Η", "H", "Ι", "I", "Κ", "K", "Μ", "M",
	"Ν", "N", "Ο", "O", "Ρ", "P", "Τ", "T", "Υ", "Y", "Χ", "X",
)

func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r <= '~' {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
