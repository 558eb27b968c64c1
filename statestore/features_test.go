package statestore

import (
	"os"
	"strings"
	"testing"
)

// FeatureNames are the names of the features that are known.
func FeatureNames() (names []string) {
	for _, f := range knownFeatures {
		names = append(names, f.name)
	}
	return names
}

func TestTheDocumentationSaysWhatBecomesOfEachFeature(t *testing.T) {
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range knownFeatures {
		if row := "| `" + f.name + "` | " + f.treatment; !strings.Contains(string(page), row) {
			t.Errorf("docs/compatibility.md does not have %q", row)
		}
	}
}
