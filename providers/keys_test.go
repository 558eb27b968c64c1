package providers_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/providers"
)

// TestEveryKeyOfTheProviderIsKnown compares what the client takes for configuration of the provider with its schema.
func TestEveryKeyOfTheProviderIsKnown(t *testing.T) {
	pkg := providers.Package(providers.Defaults{})
	text, err := pkg.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Config struct{ Variables map[string]any }
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(schema.Config.Variables)) {
		keys = append(keys, stackkeys.Namespace+name)
	}
	if known := stackkeys.OfProvider(); !slices.Equal(known, keys) {
		t.Errorf("the provider has %q, and known are %q", keys, known)
	}
	for _, own := range stackkeys.All() {
		if slices.Contains(keys, own) {
			t.Errorf("%s is of the provider, too", own)
		}
	}
}
