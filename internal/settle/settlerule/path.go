package settlerule

import (
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// every is the step of a path that stands for all items of a list: [*].
const every = "*"

// parsePath parses a property path. Only with wild may it go through all items of lists.
func parsePath(text string, wild bool) (resource.PropertyPath, error) {
	if len(text) > maxName {
		return nil, fmt.Errorf("a path has at most %d bytes", maxName)
	}
	path, err := resource.ParsePropertyPath(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no property path: %w", text, err)
	case len(path) == 0:
		return nil, fmt.Errorf("a property path is missing")
	case len(path) > maxPath:
		return nil, fmt.Errorf("the path %s has more than %d steps", text, maxPath)
	}
	for _, step := range path {
		if step == every && !wild {
			return nil, fmt.Errorf("the path %s names one property, so it has no [*]", text)
		}
		if step == "" {
			return nil, fmt.Errorf("the path %s has an empty step", text)
		}
	}
	return path, nil
}

// pathError says why a path has no value that may be used.
type pathError string

func (e pathError) Error() string { return string(e) }

const (
	noValue   pathError = "has no value"
	isUnknown pathError = "is not known"
	isSecret  pathError = "is secret"
)

// get returns what is at a path. What is secret, or part of a secret, or not known, is not returned.
func get(v resource.PropertyValue, path resource.PropertyPath) (resource.PropertyValue, error) {
	for _, step := range path {
		open, err := plain(v)
		if err != nil {
			return resource.PropertyValue{}, err
		}
		var ok bool
		if v, ok = child(open, step); !ok {
			return resource.PropertyValue{}, noValue
		}
	}
	v, err := plain(v)
	if err == nil && v.IsNull() {
		err = noValue
	}
	return v, err
}

// child returns what is one step below a value.
func child(v resource.PropertyValue, step any) (resource.PropertyValue, bool) {
	switch step := step.(type) {
	case string:
		if v.IsObject() {
			below, ok := v.ObjectValue()[resource.PropertyKey(step)]
			return below, ok
		}
	case int:
		if v.IsArray() && step >= 0 && step < len(v.ArrayValue()) {
			return v.ArrayValue()[step], true
		}
	}
	return resource.PropertyValue{}, false
}

// plain takes a value out of an output.
func plain(v resource.PropertyValue) (resource.PropertyValue, error) {
	for v.IsOutput() {
		if o := v.OutputValue(); !o.Known {
			return v, isUnknown
		} else if o.Secret {
			return v, isSecret
		} else {
			v = o.Element
		}
	}
	switch {
	case v.IsSecret():
		return v, isSecret
	case v.IsComputed():
		return v, isUnknown
	}
	return v, nil
}

// Texts returns the texts at a path, which may go through all items of lists, in order; at most limit, and whether
// there are more. Other values than texts and numbers are left out.
func Texts(v resource.PropertyValue, path resource.PropertyPath, limit int) (texts []string, more bool) {
	v, err := plain(v)
	if err != nil {
		return nil, false
	}
	if len(path) == 0 {
		if text, err := render(v); err == nil && text != "" {
			return []string{text}, false
		}
		return nil, false
	}
	if path[0] != every {
		below, ok := child(v, path[0])
		if !ok {
			return nil, false
		}
		return Texts(below, path[1:], limit)
	}
	if !v.IsArray() {
		return nil, false
	}
	for _, item := range v.ArrayValue() {
		found, over := Texts(item, path[1:], limit-len(texts))
		if over || len(texts)+len(found) > limit {
			return texts, true
		}
		texts = append(texts, found...)
	}
	return texts, false
}

// Text returns the text at a path; "" if there is none that may be used.
func Text(v resource.PropertyMap, path resource.PropertyPath) string {
	at, err := get(resource.NewProperty(v), path)
	if err != nil {
		return ""
	}
	text, err := render(at)
	if err != nil {
		return ""
	}
	return text
}

// spell writes a path for people.
func spell(path resource.PropertyPath) string {
	return strings.ReplaceAll(path.String(), `["*"]`, "[*]")
}
