package autonaming

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// wide is a reader of patterns that a configuration value makes long.
var wide = &reader{
	stack: Stack{Organization: "acme", Project: "web", Stack: "dev"},
	config: map[string]deployments.ConfigValue{
		"web:a": {Value: strings.Repeat("a", 1000)}, "web:s": {Value: "s", Secret: true},
	},
}

func TestAPatternMakesNamesOfABoundedLength(t *testing.T) {
	for _, text := range []string{strings.Repeat("${config.a}", 5), strings.Repeat("${hex(256)}", 17),
		strings.Repeat("${name}", 33), strings.Repeat("${config.a}", 1_000_000), strings.Repeat("x", longestFixed+1)} {
		if _, err := wide.read(text); err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("%.30s... is read with %v", text, err)
		}
	}
	if _, err := wide.read(strings.Repeat("${config.a}", 4)); err != nil {
		t.Error(err)
	}
}

func FuzzPatterns(f *testing.F) {
	for _, text := range []string{
		"${name}-${hex(8)}", "${stack}${config.a}", "${config.s}", "${", "${}", "${num(999999999999)}",
		strings.Repeat("${uuid}", 40), "$${name}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := wide.read(text)
		if err != nil {
			return
		}
		name := p.name("of", []byte("seed"))
		if len(name) > longestFixed+mostParts*36 {
			t.Errorf("%q makes a name of %d characters", text, len(name))
		}
		if again := p.name("of", []byte("seed")); again != name {
			t.Errorf("%q makes %q, and then %q", text, name, again)
		}
	})
}
