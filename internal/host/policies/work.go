package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp/syntax"
)

const (
	// maxWork bounds the work of validating the configuration of a policy pack: some seconds at the very worst.
	maxWork = 1 << 28
	// compileShare is the part of the square of a schema's length that stands for its compilation, pairTimes how much
	// longer it takes to compare two items than to read a byte.
	compileShare, pairTimes = 4, 8
)

// errReference is about a schema that refers to a schema, of its own document or of another.
var errReference = errors.New("the schema refers to another one: write it there instead of $ref")

// work is how much may still be done. Without references, each part of a schema meets each value at most once; what it
// does there takes at most as many steps as both have bytes, a pattern counting as what it is repeated to, and unique
// items are compared with each other.
type work float64

// spend takes off what validating values with a schema takes at most.
func (w *work) spend(schema []byte, values map[string]any) error {
	given, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("the values are not JSON: %w", err)
	}
	var doc any
	if err := json.Unmarshal(schema, &doc); err != nil {
		return err
	}
	var found parts
	if err := found.inspect(doc); err != nil {
		return err
	}
	size, length := work(len(schema))+found.patterns, work(len(given))
	*w -= size*size/compileShare + size*length + pairTimes*found.unique*work(longestList(values))*length
	if *w < 0 {
		return fmt.Errorf("checking %d bytes of values with a schema of %d bytes takes too long", len(given), len(schema))
	}
	return nil
}

// parts are the parts of a schema that may take longer than their length shows: how often items are to be unique, and
// the states of its patterns.
type parts struct{ unique, patterns work }

func (p *parts) inspect(v any) error {
	var below []any
	switch v := v.(type) {
	case map[string]any:
		for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
			if _, ok := v[keyword].(string); ok {
				return errReference
			}
		}
		if v["uniqueItems"] == true {
			p.unique++
		}
		if pattern, ok := v["pattern"].(string); ok {
			if err := p.pattern(pattern); err != nil {
				return err
			}
		}
		if patterns, ok := v["patternProperties"].(map[string]any); ok {
			for pattern := range patterns {
				if err := p.pattern(pattern); err != nil {
					return err
				}
			}
		}
		for _, element := range v {
			below = append(below, element)
		}
	case []any:
		below = v
	}
	for _, element := range below {
		if err := p.inspect(element); err != nil {
			return err
		}
	}
	return nil
}

func (p *parts) pattern(text string) error {
	pattern, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return fmt.Errorf("the pattern %.100q cannot be read: %w", text, err)
	}
	p.patterns += states(pattern)
	return nil
}

// states estimates the states of a pattern, each of which a step of a match may visit.
func states(pattern *syntax.Regexp) work {
	n := work(1 + len(pattern.Rune))
	for _, part := range pattern.Sub {
		n += states(part)
	}
	if pattern.Op == syntax.OpRepeat {
		n *= work(max(pattern.Min, pattern.Max, 1))
	}
	return n
}

// longestList is the length of the longest list in a value.
func longestList(v any) (longest int) {
	switch v := v.(type) {
	case map[string]any:
		for _, element := range v {
			longest = max(longest, longestList(element))
		}
	case []any:
		longest = len(v)
		for _, element := range v {
			longest = max(longest, longestList(element))
		}
	}
	return longest
}
