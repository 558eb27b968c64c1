package policies

import (
	"encoding/json"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// FuzzConfigurations puts configurations of strangers into policy packs of strangers: it ends soon, with a sentence.
func FuzzConfigurations(f *testing.F) {
	f.Add(`{"all": "mandatory", "p": {"enforcementLevel": "advisory", "n": 3}}`, `{"n": {"type": "integer"}}`)
	f.Add(`{"p": {"n": "aaaa"}}`, `{"n": {"pattern": "(a*)*b", "default": [[]]}}`)
	f.Add(`{"p": {"n": 1}}`, `{"n": {"$ref": "file:///etc/passwd"}}`)
	f.Add(`{"p": {"n": [1, 2]}}`, `{"n": {"uniqueItems": true, "items": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}`)
	f.Fuzz(func(t *testing.T, given, properties string) {
		config, err := Parse(given)
		var schema map[string]plugin.JSONSchema
		if err != nil || json.Unmarshal([]byte(properties), &schema) != nil {
			return
		}
		whole, err := Complete(plugin.AnalyzerInfo{Policies: []plugin.AnalyzerPolicyInfo{{Name: "p",
			EnforcementLevel: "advisory", ConfigSchema: &plugin.AnalyzerPolicyConfigSchema{Properties: schema}}}}, config)
		if err == nil && !whole["p"].EnforcementLevel.IsValid() {
			t.Errorf("%s and %s make %+v", given, properties, whole)
		}
	})
}
