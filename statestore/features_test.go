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
		row := "| `" + f.name + "` | " + f.treatment + " | "
		_, shown, there := strings.Cut(string(page), row)
		if !there {
			t.Errorf("docs/compatibility.md does not have %q", row)
		}
		shown, _, _ = strings.Cut(shown, "\n")
		if !strings.Contains(shown, "Test") && !strings.Contains(shown, "engine/testdata/") {
			t.Errorf("docs/compatibility.md names no test of the feature %s", f.name)
		}
	}
}
