package policies

import (
	"fmt"
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
	if _, err := Complete(hostile, nil); err == nil || !strings.Contains(err.Error(), "refers to another one") {
		t.Error(err)
	}
}

// validated completes the configuration of one policy.
func validated(schemas map[string]plugin.JSONSchema, values map[string]any) error {
	pack := plugin.AnalyzerInfo{Policies: []plugin.AnalyzerPolicyInfo{{
		Name: "p", EnforcementLevel: apitype.Advisory, ConfigSchema: &plugin.AnalyzerPolicyConfigSchema{Properties: schemas},
	}}}
	_, err := Complete(pack, Config{"p": {Properties: values}})
	return err
}

func TestASchemaThatDoublesTheWorkAtEachLevelIsRefused(t *testing.T) {
	const levels = 40
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		schemas := map[string]plugin.JSONSchema{}
		for i := range levels {
			next := map[string]any{"$ref": fmt.Sprint("#/properties/p", i+1)}
			schemas[fmt.Sprint("p", i)] = plugin.JSONSchema{keyword: []any{next, next}}
		}
		schemas[fmt.Sprint("p", levels)] = plugin.JSONSchema{"type": "integer"}
		if err := validated(schemas, map[string]any{"p0": "x"}); err == nil || !strings.Contains(err.Error(), "$ref") {
			t.Errorf("%s: %v", keyword, err)
		}
	}
}

func TestWhatWouldTakeLongToValidateIsRefusedBeforeIt(t *testing.T) {
	any1000 := make([]any, 1000)
	for i := range any1000 {
		any1000[i] = map[string]any{"pattern": "(x+x+)+y"}
	}
	many := make([]any, 100_000)
	for i := range many {
		many[i] = float64(i)
	}
	large := make([]any, 50_000)
	for i := range large {
		large[i] = map[string]any{}
	}
	for what, c := range map[string]struct {
		schema plugin.JSONSchema
		value  any
	}{
		"many patterns over a long text": {plugin.JSONSchema{"allOf": any1000}, strings.Repeat("x", 1<<20)},
		"unique items of a long list":    {plugin.JSONSchema{"uniqueItems": true}, many},
		"a pattern of many repetitions":  {plugin.JSONSchema{"pattern": "((x*|y){30}z*){30}"}, strings.Repeat("x", 1<<18)},
		"a schema of many parts":         {plugin.JSONSchema{"allOf": large}, "x"},
	} {
		err := validated(map[string]plugin.JSONSchema{"v": c.schema}, map[string]any{"v": c.value})
		if err == nil || !strings.Contains(err.Error(), "takes too long") {
			t.Errorf("%s: %.200v", what, err)
		}
	}
}

func TestAPatternThatIsNoneIsNamed(t *testing.T) {
	for _, schema := range []plugin.JSONSchema{
		{"pattern": "("}, {"patternProperties": map[string]any{"(": map[string]any{}}},
	} {
		err := validated(map[string]plugin.JSONSchema{"v": schema}, map[string]any{"v": "x"})
		if err == nil || !strings.Contains(err.Error(), `the pattern "(" cannot be read`) {
			t.Error(err)
		}
	}
}

func TestAnOrdinaryListIsValidatedAndFewOfItsFaultsAreNamed(t *testing.T) {
	images := make([]any, 500)
	for i := range images {
		images[i] = fmt.Sprintf("ami-%017d", i)
	}
	schema := plugin.JSONSchema{"type": "array", "uniqueItems": true, "items": map[string]any{
		"anyOf": []any{map[string]any{"pattern": "^ami-"}, map[string]any{"const": "none"}}}}
	if err := validated(map[string]plugin.JSONSchema{"v": schema}, map[string]any{"v": images}); err != nil {
		t.Error(err)
	}
	for i := range images {
		images[i] = strings.Repeat("x", 5000)
	}
	err := validated(map[string]plugin.JSONSchema{"v": {"items": map[string]any{"type": "integer"}}},
		map[string]any{"v": images[:100]})
	if err == nil || strings.Count(err.Error(), "expected integer") != maxMessages {
		t.Errorf("%v", err)
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
