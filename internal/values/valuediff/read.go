package valuediff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

// longestRead is up to which size a text is read as JSON or YAML.
const longestRead = 1 << 20

// read gives what two texts hold if both hold an object or a list in the same format; else the format is empty.
func read(old, now string) (format string, was, is any) {
	if len(old) > longestRead || len(now) > longestRead {
		return "", nil, nil
	}
	for _, f := range []struct {
		name string
		read func(string) (any, bool)
	}{{"json", readJSON}, {"yaml", readYAML}} {
		if was, ok := f.read(old); ok {
			if is, ok := f.read(now); ok {
				return f.name, was, is
			}
		}
	}
	return "", nil, nil
}

func readJSON(text string) (any, bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] != '{' && text[0] != '[' {
		return nil, false
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil, false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, false // more follows
	}
	return value, true
}

// readYAML reads the documents of a text with several lines. Text that is YAML only because every text is, is none.
func readYAML(text string) (any, bool) {
	if !multiline(text) {
		return nil, false
	}
	var documents []any
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			break
		}
		value = jsonLike(value, 0)
		if err != nil || !structured(value) {
			return nil, false
		}
		documents = append(documents, value)
	}
	switch len(documents) {
	case 0:
		return nil, false
	case 1:
		return documents[0], true
	}
	return documents, true
}

func structured(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// jsonLike gives a value of YAML in the types of JSON. What is no value of JSON becomes a text.
func jsonLike(value any, depth int) any {
	if depth > maxDepth {
		return fmt.Sprint(value)
	}
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = jsonLike(item, depth+1)
		}
	case map[any]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[fmt.Sprint(key)] = jsonLike(item, depth+1)
		}
		return object
	case []any:
		for i, item := range v {
			v[i] = jsonLike(item, depth+1)
		}
	case nil, string, bool, int, int64, uint64, float64:
	default:
		return fmt.Sprint(v)
	}
	return value
}
