package providertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// leftOut plays, for each optional input of the case, a resource without it: what a service returns for nothing, such
// as an empty list, must not differ from what was not declared.
func leftOut(l *life) error {
	names, err := l.optional()
	if err != nil {
		return err
	}
	for _, name := range names {
		c := l.Case
		c.Inputs = maps.Clone(c.Inputs)
		delete(c.Inputs, name)
		without := newLife(l.t, l.start, c)
		if there, err := without.completed(name); err != nil {
			return err
		} else if there {
			continue
		}
		for _, play := range []func(*life) error{unchanged, lostState} {
			if err := play(without); err != nil {
				return fmt.Errorf("without the optional input %q, which is named in Needed if nothing goes without it: %w", name,
					err)
			}
		}
	}
	return nil
}

// completed says whether Check gives the input a value by itself, or wants one.
func (l *life) completed(name string) (bool, error) {
	w, err := l.world()
	if err != nil {
		return false, err
	}
	checked, err := w.check(l.Inputs, nil, 0)
	if err != nil {
		return true, nil //nolint:nilerr // it is one of several of which one is required
	}
	_, there := checked.GetFields()[name]
	return there, nil
}

// optional returns the inputs of the case that can be left out.
func (l *life) optional() ([]string, error) {
	w, err := l.world()
	if err != nil {
		return nil, err
	}
	text, err := w.Package().Schema()
	if err != nil {
		return nil, err
	}
	var schema struct {
		Resources map[string]struct{ RequiredInputs []string }
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(l.Inputs))
	return slices.DeleteFunc(names, func(name string) bool {
		return slices.Contains(schema.Resources[l.Type].RequiredInputs, name) || slices.Contains(l.Needed, name)
	}), nil
}
