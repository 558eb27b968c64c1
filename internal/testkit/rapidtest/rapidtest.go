// Package rapidtest checks properties with pgregory.net/rapid so that every run draws the same values: the same tree
// gives the same verdict. `-rapid.seed` and RAPID_SEED choose others; `-rapid.seed 0` draws at random.
package rapidtest

import (
	"flag"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Check is rapid.Check with a fixed seed.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	fixSeed()
	rapid.Check(t, property)
}

// fixSeed happens when flags have been parsed.
var fixSeed = sync.OnceFunc(func() {
	const name = "rapid.seed"
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if seed := flag.Lookup(name).Value; !given && seed.String() == "0" {
		_ = seed.Set("1") // a number
	}
})
