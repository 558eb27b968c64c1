package engine

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// patterns are what an option names: URNs, and patterns of them. They are compiled once for an update, because they are
// asked about for each resource and each of its references.
type patterns struct {
	urns  map[urn.URN]bool
	globs []*regexp.Regexp
}

func compile(texts []string) patterns {
	p := patterns{urns: map[urn.URN]bool{}}
	for _, text := range texts {
		if isPattern(text) {
			p.globs = append(p.globs, expression(text))
		} else {
			p.urns[urn.URN(text)] = true
		}
	}
	return p
}

// match reports whether a URN is named.
func (p patterns) match(u urn.URN) bool {
	return p.urns[u] || slices.ContainsFunc(p.globs, func(g *regexp.Regexp) bool { return g.MatchString(string(u)) })
}

// isPattern reports whether a text may name several URNs.
func isPattern(text string) bool { return strings.Contains(text, "*") }

// expression returns the regular expression of a pattern: "**" stands for any text, "*" for any within a part between
// "::". Its time to match is linear, whatever the pattern: that is what a user has written.
func expression(pattern string) *regexp.Regexp {
	var e strings.Builder
	e.WriteString(`\A(?s:`)
	for pattern != "" {
		literal, _, _ := strings.Cut(pattern, "*")
		e.WriteString(regexp.QuoteMeta(literal))
		pattern = pattern[len(literal):]
		rest := strings.TrimLeft(pattern, "*")
		switch len(pattern) - len(rest) {
		case 0:
		case 1:
			e.WriteString(`(?::?[^:])*`)
			if !strings.HasPrefix(rest, ":") { // the part may end with a colon, but that is not half of "::"
				e.WriteString(`:?`)
			}
		default:
			e.WriteString(`.*`)
		}
		pattern = rest
	}
	e.WriteString(`)\z`)
	return regexp.MustCompile(strings.ToValidUTF8(e.String(), "\uFFFD")) // all else is quoted
}
