package http

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// placeholder is {PATH}, or a brace that stands for itself, {{.
var placeholder = regexp.MustCompile(`\{\{|\{([^{}]*)\}`)

// wrongTemplate says what is wrong with the placeholders of a text, of which these may be used.
func wrongTemplate(template string, roots ...string) string {
	for _, m := range placeholder.FindAllStringSubmatch(template, -1) {
		if m[0] == "{{" {
			continue
		}
		p, err := parsePath(m[1])
		if err != nil || len(p) == 0 || !slices.Contains(roots, fmt.Sprint(p[0])) {
			return fmt.Sprintf("has the placeholder %s: here can be {%s}, and a brace is written {{", m[0],
				strings.Join(roots, "}, {"))
		}
	}
	if strings.Contains(placeholder.ReplaceAllString(template, ""), "{") {
		return "has a brace that begins no placeholder: a brace is written {{"
	}
	return ""
}

// wrongTemplates is wrongTemplate of all texts in a value.
func wrongTemplates(value any, roots ...string) string {
	reason := ""
	_, _ = mapTexts(value, func(template string) (any, error) {
		if reason == "" {
			reason = wrongTemplate(template, roots...)
		}
		return template, nil
	})
	return reason
}

// scope are the values of placeholders, by the first key of their path.
type scope map[string]any

func (s scope) value(text string) (any, error) {
	value, ok := at(map[string]any(s), text)
	if !ok {
		return nil, fmt.Errorf("the placeholder {%s} has no value", text)
	}
	return value, nil
}

// expand replaces the placeholders of a text.
func (s scope) expand(template string, escape func(string) (string, error)) (string, error) {
	var failed error
	expanded := placeholder.ReplaceAllStringFunc(template, func(match string) string {
		if match == "{{" {
			return "{"
		}
		name := match[1 : len(match)-1]
		value, err := s.value(name)
		if err != nil {
			failed = err
			return ""
		}
		written, ok := text(value)
		if !ok {
			failed = fmt.Errorf("the placeholder {%s} must be a text, a number, true or false", name)
			return ""
		}
		if written, err = escape(written); err != nil {
			failed = fmt.Errorf("the placeholder {%s} %w", name, err)
		}
		return written
	})
	return expanded, failed
}

// url expands a path with a query. No value reaches out of its segment.
func (s scope) url(template string) (string, error) {
	before, query, hasQuery := strings.Cut(template, "?")
	expanded, err := s.expand(before, func(value string) (string, error) {
		if value == "" || value == "." || value == ".." {
			return "", fmt.Errorf("is %q, which is no part of a path", value)
		}
		return url.PathEscape(value), nil
	})
	if err != nil || !hasQuery {
		return expanded, err
	}
	query, err = s.expand(query, func(value string) (string, error) { return url.QueryEscape(value), nil })
	return expanded + "?" + query, err
}

// json expands the texts in a value. One that is nothing but a placeholder becomes its value, of whatever type.
func (s scope) json(template any) (any, error) {
	return mapTexts(template, func(text string) (any, error) {
		if m := placeholder.FindStringSubmatch(text); m != nil && m[0] == text && text != "{{" {
			return s.value(m[1])
		}
		return s.expand(text, func(value string) (string, error) { return value, nil })
	})
}

// mapTexts returns a value with other values in the place of its texts.
func mapTexts(value any, of func(string) (any, error)) (any, error) {
	var err error
	switch v := value.(type) {
	case string:
		return of(v)
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, item := range v {
			if all[key], err = mapTexts(item, of); err != nil {
				return nil, err
			}
		}
		return all, nil
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			if all[i], err = mapTexts(item, of); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return value, nil
}
