package settlerule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Mark is where the mark of a create is put: a key of a map of texts, or an item of a list of objects that have a key
// and a value.
type Mark struct {
	Path  resource.PropertyPath // of the map or the list
	Key   string
	Pairs bool // it is a list
}

// String returns the mark's place as it is written.
func (m Mark) String() string {
	if m.Pairs {
		return spell(m.Path) + "[]." + m.Key
	}
	return spell(append(slices.Clone(m.Path), m.Key))
}

// IsZero reports whether there is no place for a mark.
func (m Mark) IsZero() bool { return m.Key == "" }

// ParseMark parses the place of a mark: tags.KEY, or tags[].KEY.
func ParseMark(text string) (m Mark, err error) {
	if container, key, ok := strings.Cut(text, "[]."); ok {
		m.Key, m.Pairs = key, true
		m.Path, err = parsePath(container, false)
	} else if m.Path, err = parsePath(text, false); err == nil {
		last := len(m.Path) - 1
		if m.Key, ok = m.Path[last].(string); !ok || last == 0 {
			err = fmt.Errorf("a mark is put at a key of a property, such as tags.deployctl-mark, not at %q", text)
		}
		m.Path = m.Path[:last]
	}
	if err == nil && (m.Key == "" || len(m.Key) > 128 || !printable(m.Key)) {
		err = fmt.Errorf("the key of a mark has 1 to 128 printable bytes")
	}
	return m, err
}

// Get returns the mark that values have; "" if they have none.
func (m Mark) Get(values resource.PropertyMap) string {
	at, err := get(resource.NewProperty(values), m.Path)
	if err != nil {
		return ""
	}
	if !m.Pairs {
		v, _ := child(at, m.Key)
		return textOf(v)
	}
	if !at.IsArray() {
		return ""
	}
	for _, item := range at.ArrayValue() {
		if pair, err := plain(item); err == nil && pair.IsObject() &&
			textOf(pair.ObjectValue()["key"]) == m.Key {
			return textOf(pair.ObjectValue()["value"])
		}
	}
	return ""
}

func textOf(v resource.PropertyValue) string {
	if v, err := plain(v); err == nil && v.IsString() {
		return v.StringValue()
	}
	return ""
}

// Put returns inputs with a mark. It reports false, and changes nothing, if there is no place for it: what is declared
// there is of another form, secret or unknown, or has the key already.
func (m Mark) Put(inputs resource.PropertyMap, mark string) (resource.PropertyMap, bool) {
	v, ok := m.put(resource.NewProperty(inputs), m.Path, mark)
	if !ok {
		return inputs, false
	}
	return v.ObjectValue(), true
}

func (m Mark) put(v resource.PropertyValue, path resource.PropertyPath, mark string) (resource.PropertyValue, bool) {
	v, err := plain(v)
	if err != nil {
		return v, false
	}
	if len(path) > 0 {
		if v.V == nil {
			v = resource.NewProperty(resource.PropertyMap{})
		}
		key, ok := path[0].(string)
		if !ok || !v.IsObject() {
			return v, false
		}
		object := maps.Clone(v.ObjectValue())
		below, ok := m.put(object[resource.PropertyKey(key)], path[1:], mark)
		object[resource.PropertyKey(key)] = below
		return resource.NewProperty(object), ok
	}
	text := resource.NewProperty(mark)
	switch {
	case m.Pairs && (v.V == nil || v.IsArray()):
		var list []resource.PropertyValue
		if v.IsArray() {
			list = append(list, v.ArrayValue()...)
		}
		for _, item := range list {
			pair, err := plain(item)
			if err != nil || !pair.IsObject() || textOf(pair.ObjectValue()["key"]) == m.Key {
				return v, false
			}
		}
		return resource.NewProperty(append(list, resource.NewProperty(resource.PropertyMap{
			"key": resource.NewProperty(m.Key), "value": text,
		}))), true
	case !m.Pairs && (v.V == nil || v.IsObject()):
		object := resource.PropertyMap{}
		if v.IsObject() {
			object = maps.Clone(v.ObjectValue())
		}
		if _, taken := object[resource.PropertyKey(m.Key)]; taken {
			return v, false
		}
		object[resource.PropertyKey(m.Key)] = text
		return resource.NewProperty(object), true
	}
	return v, false
}
