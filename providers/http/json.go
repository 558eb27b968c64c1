package http

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// path leads to a value in JSON, as Pulumi's property paths do: data.id, items[0], labels["a.b"].
type path = resource.PropertyPath

// parsePath returns the path that a text stands for; the empty text is the whole value.
func parsePath(text string) (path, error) {
	if text == "" {
		return nil, nil
	}
	p, err := resource.ParsePropertyPath(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a path such as data.id: %w", text, err)
	}
	return p, nil
}

// at returns what a path leads to. A path that is malformed leads nowhere: Check refuses it.
func at(value any, text string) (any, bool) {
	p, err := parsePath(text)
	if err != nil {
		return nil, false
	}
	for _, step := range p {
		switch below := value.(type) {
		case map[string]any:
			key, isKey := step.(string)
			item, ok := below[key]
			if !isKey || !ok {
				return nil, false
			}
			value = item
		case []any:
			i, ok := step.(int)
			if !ok || i < 0 || i >= len(below) {
				return nil, false
			}
			value = below[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// with returns an object with a value at a path of keys; what is given stays as it is.
func with(object any, p path, value any) any {
	if len(p) == 0 {
		return value
	}
	key, _ := p[0].(string)
	below, _ := object.(map[string]any)
	all := maps.Clone(below)
	if all == nil {
		all = map[string]any{}
	}
	all[key] = with(all[key], p[1:], value)
	return all
}

// text returns a string, a number or a boolean as text.
func text(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// plain returns a value with numbers as properties have them.
func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return f
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, item := range v {
			all[key] = plain(item)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, item := range v {
			all[i] = plain(item)
		}
		return all
	}
	return value
}

// covers says whether a value has all that is wanted. Objects may have more properties; null, and an empty object or
// list, is also what is not there.
func covers(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		ok = ok || have == nil && len(w) == 0
		for key, item := range w {
			ok = ok && covers(h[key], item)
		}
		return ok
	case []any:
		h, ok := have.([]any)
		return (ok || have == nil) && slices.EqualFunc(h, w, covers)
	}
	switch have.(type) {
	case map[string]any, []any:
		return false
	}
	return plain(have) == plain(want)
}

// comparison finds what has to change. The server does not tell what is at the paths of unseen: that is compared with
// what was declared before.
type comparison struct {
	unseen map[string]bool
	again  bool // was is what was declared before
	taken  bool // it is another owner's so far: what the server does not tell is not known to be as declared
}

// difference returns what of want is not in have, or was declared before and is no more, as a JSON merge patch, and the
// paths of that.
func (c comparison) difference(was, want, have any, here path) (patch any, paths []string) {
	w, isObject := want.(map[string]any)
	h, hasObject := have.(map[string]any)
	switch {
	case c.unseen[here.String()]:
		if c.taken || c.again && !(covers(was, want) && covers(want, was)) {
			return want, []string{here.String()}
		}
		return nil, nil
	case isObject && (hasObject || c.seenNowhere(w, here)):
		return c.ofObjects(was, w, h, here)
	case covers(have, want):
		return nil, nil
	}
	return want, []string{here.String()}
}

// seenNowhere says whether the server tells nothing of an object.
func (c comparison) seenNowhere(object map[string]any, here path) bool {
	for key := range object {
		if !c.unseen[below(here, key).String()] {
			return false
		}
	}
	return len(object) > 0
}

func (c comparison) ofObjects(was any, want, have map[string]any, here path) (any, []string) {
	before, _ := was.(map[string]any)
	patch, paths := map[string]any{}, []string(nil)
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, declared := want[key]; !declared && have[key] != nil {
			patch[key], paths = nil, append(paths, below(here, key).String())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if part, where := c.difference(before[key], want[key], have[key], below(here, key)); len(where) > 0 {
			patch[key], paths = part, append(paths, where...)
		}
	}
	return patch, paths
}

func below(here path, key string) path { return append(slices.Clone(here), key) }

// observed returns what is there in the place of what is declared: the properties that a program would declare to get
// it.
func (c comparison) observed(declared, have any, here path) any {
	if c.unseen[here.String()] {
		return declared
	}
	switch d := declared.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok && !c.seenNowhere(d, here) {
			break
		}
		all := map[string]any{}
		for key, item := range d {
			switch {
			case h[key] != nil, c.unseen[below(here, key).String()]:
				all[key] = c.observed(item, h[key], below(here, key))
			case covers(nil, item):
				all[key] = item
			}
		}
		return all
	case []any:
		h, ok := have.([]any)
		if !ok {
			break
		}
		all := make([]any, len(h))
		for i, item := range h {
			if all[i] = plain(item); i < len(d) {
				all[i] = c.observed(d[i], item, append(slices.Clone(here), i))
			}
		}
		return all
	}
	return plain(have)
}
