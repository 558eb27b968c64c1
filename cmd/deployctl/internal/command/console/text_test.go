package console

import "testing"

func TestAGuessSharesHalfOfTheLetters(t *testing.T) {
	candidates := []string{"dev", "stack", "--json", "--home", "--config", "--yes", "up"}
	for word, want := range map[string]string{"new": "", "org": "", "--plan": "", "--page": "", "--yse": "--yes",
		"stakc": "stack"} {
		if got := nearest(word, candidates); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
