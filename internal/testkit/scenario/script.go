package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// script is a scenario file.
type script struct {
	Packages []pkg `yaml:"packages"`
	// Root is the name of the stack's own resource: PROJECT-STACK unless given.
	Root  string      `yaml:"root"`
	Steps []yaml.Node `yaml:"steps"`
	// Outputs are the stack's, set when every step is done and everything registered.
	Outputs map[string]yaml.Node `yaml:"outputs"`
}

// pkg is a package that the program needs, for the engine to install.
type pkg struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"`
	Server  string `yaml:"server"`
	// Parameter makes it the package that the plugin serves with this parameter.
	Parameter *parameter `yaml:"parameter"`
}

// guard is what every step may have beside its own fields.
type guard struct {
	// When plays the step only if the condition holds.
	When string `yaml:"when"`
	// Once plays the step only if this file is not there, and makes the file first.
	Once string `yaml:"once"`
}

// action is a step of a certain kind. Those that register or call something only start it; all others are done when
// play returns.
type action interface {
	play(*player) error
}

// verbs are the kinds of steps: a step's kind is the one of these that it has as a key.
var verbs map[string]func() action

func init() { // not a literal: the actions refer back to it
	verbs = map[string]func() action{
		"register": func() action { return &register{} },
		"read":     func() action { return &read{} },
		"invoke":   func() action { return &invoke{} },
		"exists":   func() action { return &exists{} },
		"call":     func() action { return &call{} },
		"outputs":  func() action { return &outputs{} },
		"await":    func() action { return &await{} },
		"wait":     func() action { return &wait{} },
		"touch":    func() action { return &touch{} },
		"print":    func() action { return &printed{} },
		"log":      func() action { return &logged{} },
		"assert":   func() action { return &assert{} },
		"fail":     func() action { return &fail{} },
		"throw":    func() action { return &throw{} },
		"exit":     func() action { return &exit{} },
		"hang":     func() action { return &hang{} },
		"kill":     func() action { return &kill{} },
		"repeat":   func() action { return &repeat{} },
		"parallel": func() action { return &parallel{} },

		"hook":      func() action { return &hook{} },
		"errorHook": func() action { return &errorHook{} },
		"transform": func() action { return &transform{} },
		"package":   func() action { return &registerPackage{} },
	}
}

// load reads a scenario and says everything that is wrong with its shape.
func load(path string) (*script, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var s script
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := validate(s.Steps); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &s, nil
}

// validate looks for unknown and missing keys in the steps and in those inside them.
func validate(steps []yaml.Node) error {
	var wrong []error
	for i := range steps {
		node := &steps[i]
		a, _, err := parse(node)
		if err == nil {
			err = strict(node, a)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("line %d: %w", node.Line, err))
			continue
		}
		switch a := a.(type) {
		case *repeat:
			wrong = append(wrong, validate(a.Steps))
		case *parallel:
			wrong = append(wrong, validate(a.Steps))
		}
	}
	return errors.Join(wrong...)
}

// parse gives a step's action and guard.
func parse(node *yaml.Node) (action, guard, error) {
	var g guard
	if node.Kind != yaml.MappingNode {
		return nil, g, fmt.Errorf("a step must be a mapping")
	}
	for i := 0; i < len(node.Content); i += 2 {
		if kind, is := verbs[node.Content[i].Value]; is {
			a := kind()
			return a, g, errors.Join(node.Decode(a), node.Decode(&g))
		}
	}
	return nil, g, fmt.Errorf("a step must have one of these keys: %s", strings.Join(kinds(), ", "))
}

func kinds() []string {
	var all []string
	for verb := range verbs {
		all = append(all, verb)
	}
	slices.Sort(all)
	return all
}

// strict refuses keys that the step's kind does not have. Its lines count from the step's own.
func strict(node *yaml.Node, a action) error {
	rest := *node
	rest.Content = nil
	for i := 0; i < len(node.Content); i += 2 {
		if key := node.Content[i].Value; key != "when" && key != "once" {
			rest.Content = append(rest.Content, node.Content[i], node.Content[i+1])
		}
	}
	b, err := yaml.Marshal(&rest)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	return d.Decode(a)
}

// at is a copy of a step in which {{i}} stands for an index and {{i-1}} for the one before: a number where it stands
// alone, quoted or not.
func at(node yaml.Node, index int) yaml.Node {
	if node.Value == "{{i}}" || node.Value == "{{i-1}}" {
		node.Tag, node.Style = "", 0
	}
	node.Value = strings.NewReplacer("{{i}}", strconv.Itoa(index), "{{i-1}}", strconv.Itoa(index-1)).Replace(node.Value)
	content := node.Content
	node.Content = make([]*yaml.Node, len(content))
	for i, child := range content {
		copied := at(*child, index)
		node.Content[i] = &copied
	}
	return node
}
