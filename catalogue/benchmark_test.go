package catalogue

import "testing"

// A worker's start costs nothing: files are read when a type of theirs is asked for. This is what all of them cost.
func BenchmarkReadingAllPackages(b *testing.B) {
	names := packages(b)
	for b.Loop() {
		for _, pkg := range names {
			text, err := embedded.ReadFile(pkg + ".yaml")
			if err == nil {
				_, err = parse(string(text))
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		New()
	}
}

func BenchmarkRulesOfAType(b *testing.B) {
	c := New()
	for b.Loop() {
		if _, ok, err := c.Rules(b.Context(), "gcp:pubsub/topic:Topic", "", nil); !ok || err != nil {
			b.Fatal(err)
		}
	}
}
