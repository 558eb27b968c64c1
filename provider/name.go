package provider

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

const suffixLength = 7

// Naming are the rules for physical names of a type.
type Naming struct {
	// MaxLen is the longest legal name; 0 is no limit.
	MaxLen int
	// Alphabet are the legal characters. Upper case letters become lower case when only that is legal, all else becomes
	// a hyphen where that is legal and vanishes where it is not. Empty allows everything.
	Alphabet string
}

// Name makes a physical name of a logical one and the engine's seed: the same for the same arguments, so that every
// attempt at a create asks for the same name, and different for each create. An empty seed makes a random name.
func Name(seed []byte, logical string, n Naming) (string, error) {
	prefix := strings.Trim(n.legal(logical), "-.")
	if limit := n.MaxLen - suffixLength - 1; n.MaxLen > 0 && len(prefix) > limit {
		prefix = strings.TrimRight(prefix[:max(limit, 0)], "-.")
	}
	if prefix != "" && n.allows('-') {
		prefix += "-"
	}
	return resource.NewUniqueName(seed, prefix, suffixLength, n.MaxLen, n.suffixAlphabet())
}

func (n Naming) allows(r rune) bool {
	return n.Alphabet == "" || strings.ContainsRune(n.Alphabet, r)
}

func (n Naming) legal(logical string) string {
	return strings.Map(func(r rune) rune {
		lower := []rune(strings.ToLower(string(r)))[0]
		switch {
		case n.allows(r):
			return r
		case n.allows(lower):
			return lower
		case n.allows('-'):
			return '-'
		}
		return -1
	}, logical)
}

// suffixAlphabet prefers hexadecimal digits, which are legal nearly everywhere.
func (n Naming) suffixAlphabet() []rune {
	const hexadecimal = "0123456789abcdef"
	for _, r := range hexadecimal {
		if !n.allows(r) {
			return []rune(n.Alphabet)
		}
	}
	return []rune(hexadecimal)
}
