// Package command provides deployctl:command:Run, a command that is run when the resource is created, updated or
// deleted.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Module is the command module. Commands get the environment of this process, below what a resource adds.
func Module() provider.Module {
	return provider.Module{Resources: []provider.Resource{provider.NewResource("deployctl:command:Run", &Run{})}}
}

// Line is a command: a text for the interpreter, or a program and its arguments, run as they are.
type Line struct {
	text string
	argv []string
}

// Text is a command for the interpreter.
func Text(text string) Line { return Line{text: text} }

// Argv is a program and its arguments.
func Argv(argv ...string) Line { return Line{argv: argv} }

func (l Line) empty() bool { return l.text == "" && len(l.argv) == 0 }

func (l Line) equal(other Line) bool { return l.String() == other.String() }

// String is the text as it is, or the arguments as JSON.
func (l Line) String() string {
	if l.argv == nil {
		return l.text
	}
	data, err := json.Marshal(l.argv)
	if err != nil {
		return strings.Join(l.argv, " ")
	}
	return string(data)
}

// PropertySchema is a union of a string and a list of strings.
func (l *Line) PropertySchema() map[string]any {
	text := map[string]any{"type": "string"}
	return map[string]any{"oneOf": []any{text, map[string]any{"type": "array", "items": text}}}
}

// MarshalProperty is the form in which it was given.
func (l *Line) MarshalProperty() (resource.PropertyValue, error) {
	if l.argv == nil {
		return resource.NewProperty(l.text), nil
	}
	items := make([]resource.PropertyValue, len(l.argv))
	for i, arg := range l.argv {
		items[i] = resource.NewProperty(arg)
	}
	return resource.NewProperty(items), nil
}

// UnmarshalProperty takes either form.
func (l *Line) UnmarshalProperty(v resource.PropertyValue) error {
	switch {
	case v.IsString():
		*l = Line{text: v.StringValue()}
		return nil
	case !v.IsArray() || len(v.ArrayValue()) == 0:
		return fmt.Errorf("must be a command as text, or a list of a program and its arguments, not %s", v.TypeString())
	}
	argv := make([]string, len(v.ArrayValue()))
	for i, item := range v.ArrayValue() {
		if !item.IsString() {
			return errors.New("must hold only strings")
		}
		argv[i] = item.StringValue()
	}
	*l = Line{argv: argv}
	return nil
}
