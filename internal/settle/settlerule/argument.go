package settlerule

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Argument is an argument of a function, or a part of a query: a template, a literal, or a list or an object of
// arguments.
type Argument struct {
	Template Template
	Literal  any // a float64 or a bool
	List     []Argument
	Object   map[string]Argument
}

// parseArgument makes an argument of what was decoded of JSON.
func parseArgument(v any, depth int, nodes *int) (a Argument, err error) {
	if *nodes++; *nodes > maxNodes || depth > maxDepth {
		return a, fmt.Errorf("arguments have at most %d parts, and are nested at most %d deep", maxNodes, maxDepth)
	}
	switch v := v.(type) {
	case string:
		a.Template, err = ParseTemplate(v)
	case float64, bool:
		a.Literal = v
	case []any:
		a.List = make([]Argument, len(v))
		for i, item := range v {
			if a.List[i], err = parseArgument(item, depth+1, nodes); err != nil {
				return a, fmt.Errorf("item %d: %w", i+1, err)
			}
		}
	case map[string]any:
		a.Object = make(map[string]Argument, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "" || len(key) > maxName || !printable(key) {
				return a, fmt.Errorf("a name has 1 to %d printable bytes", maxName)
			}
			if a.Object[key], err = parseArgument(v[key], depth+1, nodes); err != nil {
				return a, fmt.Errorf("%s: %w", key, err)
			}
		}
	default:
		return a, fmt.Errorf("an argument is a text, a number, a truth value, a list or an object")
	}
	return a, err
}

// templates calls visit for each template of an argument.
func (a Argument) templates(visit func(Template)) {
	if !a.Template.IsZero() {
		visit(a.Template)
	}
	for _, item := range a.List {
		item.templates(visit)
	}
	for _, key := range slices.Sorted(maps.Keys(a.Object)) {
		a.Object[key].templates(visit)
	}
}

// mapped returns an argument with other variables.
func (a Argument) mapped(to func(Variable) Variable) Argument {
	a.Template, a.Object = a.Template.mapped(to), mappedAll(a.Object, to)
	list := slices.Clone(a.List)
	for i := range list {
		list[i] = list[i].mapped(to)
	}
	a.List = list
	return a
}

func mappedAll(arguments map[string]Argument, to func(Variable) Variable) map[string]Argument {
	if arguments == nil {
		return nil
	}
	all := make(map[string]Argument, len(arguments))
	for key, a := range arguments {
		all[key] = a.mapped(to)
	}
	return all
}

// Render returns the value of an argument. One that is a variable alone takes its value as it is.
func (a Argument) Render(s Scope) (resource.PropertyValue, error) {
	switch {
	case a.List != nil:
		list := make([]resource.PropertyValue, len(a.List))
		for i, item := range a.List {
			v, err := item.Render(s)
			if err != nil {
				return v, err
			}
			list[i] = v
		}
		return resource.NewProperty(list), nil
	case a.Object != nil:
		object, err := RenderObject(a.Object, s)
		return resource.NewProperty(object), err
	case a.Literal != nil:
		return resource.NewPropertyValue(a.Literal), nil
	}
	only, ok := a.Template.only()
	if !ok {
		text, err := a.Template.Render(s)
		return resource.NewProperty(text), err
	}
	v, err := s.resolve(only)
	if err != nil {
		return v, err
	}
	nodes := 0
	if v, err = whole(v, &nodes); err != nil {
		return v, &MissingError{only, err.Error()}
	}
	return v, nil
}

// RenderObject returns the values of arguments by name.
func RenderObject(arguments map[string]Argument, s Scope) (resource.PropertyMap, error) {
	object := resource.PropertyMap{}
	for _, key := range slices.Sorted(maps.Keys(arguments)) {
		v, err := arguments[key].Render(s)
		if err != nil {
			return nil, err
		}
		object[resource.PropertyKey(key)] = v
	}
	return object, nil
}

// whole returns a value without outputs. Nothing in it may be secret or unknown, and its size is bounded.
func whole(v resource.PropertyValue, nodes *int) (resource.PropertyValue, error) {
	if *nodes++; *nodes > MaxArgument {
		return v, fmt.Errorf("has more than %d parts", MaxArgument)
	}
	v, err := plain(v)
	switch {
	case err != nil:
		return v, err
	case v.IsArray():
		list := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, item := range v.ArrayValue() {
			if list[i], err = whole(item, nodes); err != nil {
				return v, err
			}
		}
		return resource.NewProperty(list), nil
	case v.IsObject():
		object := resource.PropertyMap{}
		for key, item := range v.ObjectValue() {
			if object[key], err = whole(item, nodes); err != nil {
				return v, err
			}
		}
		return resource.NewProperty(object), nil
	case v.IsNull():
		return v, nil
	}
	_, err = render(v)
	return v, err
}
