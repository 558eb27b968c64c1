package policies

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

func info() plugin.AnalyzerInfo {
	return plugin.AnalyzerInfo{
		Policies: []plugin.AnalyzerPolicyInfo{
			{Name: "tags", EnforcementLevel: apitype.Remediate},
			{Name: "size", EnforcementLevel: apitype.Mandatory, ConfigSchema: &plugin.AnalyzerPolicyConfigSchema{
				Properties: map[string]plugin.JSONSchema{
					"max": {"type": "integer", "default": 3.0}, "unit": {"type": "string"},
				},
				Required: []string{"unit"},
			}},
			{Name: "count", EnforcementLevel: apitype.Advisory, Type: plugin.AnalyzerPolicyTypeStack},
		},
		InitialConfig: Config{"size": {Properties: map[string]any{"unit": "GiB"}}},
	}
}

func complete(t *testing.T, text string) (Config, error) {
	t.Helper()
	given, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return Complete(info(), given)
}

func TestAConfigurationIsPutOverTheDefaultsOfThePolicies(t *testing.T) {
	none := map[string]any{}
	for text, want := range map[string]Config{
		"": {
			"tags":  {EnforcementLevel: "remediate", Properties: none},
			"size":  {EnforcementLevel: "mandatory", Properties: map[string]any{"max": 3.0, "unit": "GiB"}},
			"count": {EnforcementLevel: "advisory", Properties: none},
		},
		`{"all": "disabled", "size": {"enforcementLevel": "advisory", "max": 5}, "tags": {}}`: {
			"tags":  {EnforcementLevel: "disabled", Properties: none},
			"size":  {EnforcementLevel: "advisory", Properties: map[string]any{"max": 5.0, "unit": "GiB"}},
			"count": {EnforcementLevel: "disabled", Properties: none},
			"all":   {EnforcementLevel: "disabled", Properties: none},
		},
	} {
		got, err := complete(t, text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

func TestWhatASchemaDoesNotAcceptIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"size": {"max": "many"}}`: "the configuration of size: max: expected integer",
		`{"sise": {"max": 1}}`:      `the pack has no policy "sise"`,
	} {
		if _, err := complete(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	bare := info()
	bare.InitialConfig = nil
	if _, err := Complete(bare, nil); err == nil || !strings.Contains(err.Error(), "unit") {
		t.Errorf("a required property is missing: %v", err)
	}
}

func TestASchemaReadsNoOtherDocument(t *testing.T) {
	hostile := info()
	hostile.Policies[1].ConfigSchema.Properties["max"] = plugin.JSONSchema{"$ref": "file:///etc/passwd"}
	if _, err := Complete(hostile, nil); err == nil || !strings.Contains(err.Error(), "another document") {
		t.Error(err)
	}
}

func TestAConfigurationThatCannotBeReadIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[]`: "must be a JSON object", `{"size": "never"}`: "never is not an enforcement level",
		`{"size": {"enforcementLevel": 1}}`: "1 is not an enforcement level", `{"size": 1}`: "neither",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestASummaryNamesWhatPassedAndWhatFailed(t *testing.T) {
	passed, failed := Summarize(info(), plugin.AnalyzerPolicyTypeResource, []string{"tags", "tags"},
		[]plugin.PolicyNotApplicable{{PolicyName: "size"}})
	if len(passed) != 0 || !slices.Equal(failed, []string{"tags"}) {
		t.Errorf("passed %q, failed %q", passed, failed)
	}
	if passed, _ = Summarize(info(), plugin.AnalyzerPolicyTypeStack, nil, nil); !slices.Equal(passed,
		[]string{"count", "size", "tags"}) {
		t.Errorf("of the stack passed %q", passed)
	}
}
