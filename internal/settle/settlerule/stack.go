package settlerule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// StackKey is the configuration key of a stack's rules.
const StackKey = "deployctl:settle"

// Catalogue returns the rules of a type that ship with deployctl; false if there are none. Version is that of the
// plugin, if it is known, and mapping asks the plugin for its names in another system.
type Catalogue func(
	ctx context.Context, t, version string, mapping func(ctx context.Context, key string) ([]byte, error),
) (Set, bool, error)

// Stack has the rules of a stack's configuration. A nil Stack has none.
type Stack struct {
	types    map[string]Rules
	packages map[string]Package
}

// ParseStack reads the rules of a stack: a JSON object with rules by type, and by package what applies to all its
// types. An error says where it is.
func ParseStack(text string) (*Stack, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the rules of a stack have at most %d bytes", maxText)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, atPosition(text, err)
	}
	s := &Stack{types: map[string]Rules{}, packages: map[string]Package{}}
	count := 0
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		if err := s.add(key, raw[key], &count); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if count > maxRules {
			return nil, fmt.Errorf("a stack has at most %d rules", maxRules)
		}
	}
	return s, nil
}

func (s *Stack) add(key string, data json.RawMessage, count *int) error {
	if key == "" || len(key) > maxName || !printable(key) {
		return fmt.Errorf("the name of a type or a package has 1 to %d printable bytes", maxName)
	}
	if !strings.Contains(key, ":") {
		var p Package
		if err := p.UnmarshalJSON(data); err != nil {
			return err
		}
		*count += len(p.Rules)
		s.packages[key] = p
		return nil
	}
	if strings.Count(key, ":") != 2 {
		return fmt.Errorf("a type has the form package:module:Name")
	}
	var rules Rules
	if err := rules.UnmarshalJSON(data); err != nil {
		return err
	}
	*count += len(rules)
	s.types[key] = rules
	return nil
}

// atPosition says at which line and column of a text its JSON is wrong.
func atPosition(text string, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &typed):
		offset = typed.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return err
	}
	before := text[:offset]
	line := strings.Count(before, "\n") + 1
	column := len(before) - (strings.LastIndex(before, "\n") + 1)
	return fmt.Errorf("line %d, column %d: %w", line, max(column, 1), err)
}

// For returns the stack's rules for a type: its own, or else those of its package; and the package's values.
func (s *Stack) For(t string) Set {
	if s == nil {
		return Set{}
	}
	pkg, _, _ := strings.Cut(t, ":")
	set := Set{Rules: s.types[t], Values: s.packages[pkg].Values, From: StackKey}
	if set.Rules == nil {
		set.Rules = s.packages[pkg].Rules
	}
	return set
}
