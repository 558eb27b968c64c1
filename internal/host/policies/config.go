// Package policies runs policy packs, configures them, and sums up what their policies have found out.
package policies

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// Config is the configuration of a policy pack, by policy.
type Config = map[string]plugin.AnalyzerPolicyConfig

// all is the name under which a configuration sets the enforcement level of every policy.
const all = "all"

// levelKey is the property that holds the enforcement level of a policy.
const levelKey = "enforcementLevel"

// Parse reads the configuration of a policy pack. Each policy has an enforcement level, or an object with the property
// enforcementLevel and others. An empty text is no configuration.
func Parse(text string) (Config, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var given map[string]any
	if err := rawjson.Unmarshal([]byte(text), &given); err != nil {
		return nil, fmt.Errorf("the configuration must be a JSON object: %w", err)
	}
	config := Config{}
	for _, policy := range slices.Sorted(maps.Keys(given)) {
		c, err := parsePolicy(given[policy])
		if err != nil {
			return nil, fmt.Errorf("the configuration of %s: %w", policy, err)
		}
		if c.EnforcementLevel != "" || len(c.Properties) > 0 {
			config[policy] = c
		}
	}
	return config, nil
}

func parsePolicy(v any) (c plugin.AnalyzerPolicyConfig, err error) {
	switch v := v.(type) {
	case string:
		c.EnforcementLevel, err = level(v)
	case map[string]any:
		if given, ok := v[levelKey]; ok {
			if c.EnforcementLevel, err = level(given); err != nil {
				return c, err
			}
		}
		delete(v, levelKey)
		c.Properties = v
	default:
		err = fmt.Errorf("%v is neither an enforcement level nor an object", v)
	}
	return c, err
}

func level(v any) (apitype.EnforcementLevel, error) {
	text, _ := v.(string)
	if l := apitype.EnforcementLevel(text); l.IsValid() {
		return l, nil
	}
	return "", fmt.Errorf("%v is not an enforcement level: use advisory, mandatory, remediate or disabled", v)
}

// Complete returns the whole configuration of a policy pack: the defaults of its policies, then its own initial
// configuration, then what is given. What a policy's schema does not accept is an error.
func Complete(info plugin.AnalyzerInfo, given Config) (Config, error) {
	config := Config{}
	for _, p := range info.Policies {
		config[p.Name] = plugin.AnalyzerPolicyConfig{EnforcementLevel: p.EnforcementLevel, Properties: defaults(p)}
	}
	apply(config, info.InitialConfig)
	apply(config, given)
	var invalid []error
	left := work(maxWork)
	for _, p := range info.Policies {
		if err := validate(p, config[p.Name], &left); err != nil {
			invalid = append(invalid, fmt.Errorf("the configuration of %s: %w", p.Name, err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(config)) {
		if !config[name].EnforcementLevel.IsValid() {
			invalid = append(invalid, fmt.Errorf("the pack has no policy %q: correct its configuration", name))
		}
	}
	return config, errors.Join(invalid...)
}

// apply puts a configuration over another one. Levels and properties that it does not name stay.
func apply(config, over Config) {
	if every := over[all].EnforcementLevel; every.IsValid() {
		for name, c := range config {
			c.EnforcementLevel = every
			config[name] = c
		}
	}
	for name, o := range over {
		c := config[name]
		if o.EnforcementLevel.IsValid() {
			c.EnforcementLevel = o.EnforcementLevel
		}
		properties := maps.Clone(c.Properties)
		if properties == nil {
			properties = map[string]any{}
		}
		maps.Copy(properties, o.Properties)
		c.Properties = properties
		config[name] = c
	}
}

// validate checks the properties of a policy with its schema. The schema comes from the policy pack, and the worker
// does the work: it is estimated first.
func validate(p plugin.AnalyzerPolicyInfo, c plugin.AnalyzerPolicyConfig, left *work) error {
	if p.ConfigSchema == nil {
		return nil
	}
	schema := map[string]any{"type": "object", "properties": p.ConfigSchema.Properties}
	if len(p.ConfigSchema.Required) > 0 {
		schema["required"] = p.ConfigSchema.Required
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	if err := left.spend(text, c.Properties); err != nil {
		return err
	}
	compiled, err := compile(text)
	if err != nil {
		return err
	}
	err = compiled.Validate(c.Properties)
	if invalid := (*jsonschema.ValidationError)(nil); errors.As(err, &invalid) {
		var found []string
		messages(invalid, &found)
		return errors.New(strings.Join(found, "; "))
	}
	return err
}

// compile makes a schema of its text.
func compile(text []byte) (*jsonschema.Schema, error) {
	compiler := jsonschema.NewCompiler()
	compiler.LoadURL = func(url string) (io.ReadCloser, error) { // it has no references
		return nil, fmt.Errorf("the schema refers to another document, %s", url)
	}
	const name = "config.json"
	if err := compiler.AddResource(name, bytes.NewReader(text)); err != nil {
		return nil, err
	}
	return compiler.Compile(name)
}

// maxMessages bounds what is said about one configuration.
const maxMessages = 20

// messages adds what is wrong: the leaves of an error.
func messages(e *jsonschema.ValidationError, found *[]string) {
	switch {
	case len(*found) >= maxMessages:
	case len(e.Causes) == 0:
		message := strings.TrimPrefix(strings.TrimPrefix(e.InstanceLocation, "/")+": "+e.Message, ": ")
		*found = append(*found, fmt.Sprintf("%.1000s", message))
	default:
		for _, cause := range e.Causes {
			messages(cause, found)
		}
	}
}

// defaults returns the values that the schema of a policy gives to properties that have none.
func defaults(p plugin.AnalyzerPolicyInfo) map[string]any {
	values := map[string]any{}
	if p.ConfigSchema == nil {
		return values
	}
	for name, schema := range p.ConfigSchema.Properties {
		if v, ok := schema["default"]; ok {
			values[name] = v
		}
	}
	return values
}
