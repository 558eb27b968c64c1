package settlerule

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Origin is where the value of a variable comes from.
type Origin string

// The origins of variables.
const (
	// Input is an input of the resource, after Check.
	Input Origin = "input"
	// Config is the configuration of the provider.
	Config Origin = "config"
	// Value is a value of the package, such as the account.
	Value Origin = "value"
	// Marked is the mark of the create.
	Marked Origin = "mark"
)

// Variable is a part of a template that stands for a value.
type Variable struct {
	Origin  Origin
	Path    resource.PropertyPath // of an input or of the configuration
	Name    string                // of a value
	Default *string               // nil: without a value the template renders nothing
}

// String returns the variable as people know it.
func (v Variable) String() string {
	switch v.Origin {
	case Input:
		return "the input " + spell(v.Path)
	case Config:
		return "the provider's configuration " + spell(v.Path)
	case Value:
		return "the value " + v.Name
	}
	return "the mark"
}

// written returns the variable as it is written in a template.
func (v Variable) written() string {
	name := map[Origin]string{Input: spell(v.Path), Config: "config:" + spell(v.Path), Value: "value:" + v.Name,
		Marked: "mark"}[v.Origin]
	if v.Default != nil {
		name += "|" + *v.Default
	}
	return "${" + name + "}"
}

// Template is a text with variables: ${PATH}, ${config:PATH}, ${value:NAME} and ${mark}, each with an optional default
// after |. The zero value is no template.
type Template struct{ parts []part }

// part is a literal text, or a variable.
type part struct {
	literal  string
	variable *Variable
}

// String returns the template as it is written.
func (t Template) String() string {
	var text strings.Builder
	for _, p := range t.parts {
		if p.variable != nil {
			text.WriteString(p.variable.written())
		} else {
			text.WriteString(strings.ReplaceAll(p.literal, "${", "$${"))
		}
	}
	return text.String()
}

// IsZero reports whether there is no template.
func (t Template) IsZero() bool { return len(t.parts) == 0 }

// ParseTemplate parses a template. Its errors say at which byte they are.
func ParseTemplate(text string) (Template, error) {
	var t Template
	switch {
	case text == "":
		return t, fmt.Errorf("a template is missing")
	case len(text) > maxTemplate:
		return t, fmt.Errorf("a template has at most %d bytes", maxTemplate)
	case !printable(text):
		return t, fmt.Errorf("a template is printable text")
	}
	variables := 0
	literal := strings.Builder{}
	flush := func() {
		if literal.Len() > 0 {
			t.parts = append(t.parts, part{literal: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "$${"):
			literal.WriteString("${")
			i += 3
		case strings.HasPrefix(rest, "${"):
			v, size, err := parseVariable(rest)
			if err != nil {
				return t, fmt.Errorf("character %d of %q: %w", utf8.RuneCountInString(text[:i])+1, text, err)
			}
			if variables++; variables > maxVariables {
				return t, fmt.Errorf("a template has at most %d variables", maxVariables)
			}
			flush()
			t.parts = append(t.parts, part{variable: &v})
			i += size
		default:
			literal.WriteByte(text[i])
			i++
		}
	}
	flush()
	return t, nil
}

// parseVariable parses the variable at the beginning of a text, and returns how many bytes it has.
func parseVariable(text string) (v Variable, size int, err error) {
	const opening = "${"
	bar, end, quoted := -1, -1, false
	for i := len(opening); i < len(text) && end < 0; i++ {
		switch c := text[i]; {
		case bar < 0 && quoted && c == '\\':
			i++
		case bar < 0 && c == '"':
			quoted = !quoted
		case quoted && bar < 0:
		case c == '|' && bar < 0:
			bar = i
		case c == '}':
			end = i
		}
	}
	if end < 0 {
		return v, 0, fmt.Errorf("a variable ends with }")
	}
	name := text[len(opening):end]
	if bar >= 0 {
		name = text[len(opening):bar]
		or := text[bar+1 : end]
		v.Default = &or
	}
	switch config, isConfig := strings.CutPrefix(name, "config:"); {
	case name == "mark":
		v.Origin = Marked
	case strings.HasPrefix(name, "value:"):
		v.Origin, v.Name = Value, strings.TrimPrefix(name, "value:")
		err = checkValueName(v.Name)
	case isConfig:
		v.Origin = Config
		v.Path, err = parsePath(config, false)
	case strings.Contains(strings.SplitN(name, `"`, 2)[0], ":"):
		err = fmt.Errorf("a variable is an input, or config:, value: or mark, not %q", name)
	default:
		v.Origin = Input
		v.Path, err = parsePath(name, false)
	}
	return v, end + 1, err
}

func checkValueName(name string) error {
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') {
			return fmt.Errorf("the name of a value has letters, digits and _, unlike %q", name)
		}
	}
	if name == "" || len(name) > maxName {
		return fmt.Errorf("the name of a value has 1 to %d bytes", maxName)
	}
	return nil
}

// Variables returns the variables of a template, in order.
func (t Template) Variables() []Variable {
	var all []Variable
	for _, p := range t.parts {
		if p.variable != nil {
			all = append(all, *p.variable)
		}
	}
	return all
}

// mapped returns a template with other variables.
func (t Template) mapped(to func(Variable) Variable) Template {
	parts := slices.Clone(t.parts)
	for i, p := range parts {
		if p.variable != nil {
			v := to(*p.variable)
			parts[i].variable = &v
		}
	}
	return Template{parts}
}

// only returns the variable of a template that is nothing else.
func (t Template) only() (Variable, bool) {
	if len(t.parts) == 1 && t.parts[0].variable != nil {
		return *t.parts[0].variable, true
	}
	return Variable{}, false
}

// MissingError says that a variable has no value that a template can use. The rule that needs it cannot be used.
type MissingError struct {
	Variable Variable
	Reason   string
}

func (e *MissingError) Error() string {
	if e.Variable.Origin == "" {
		return e.Reason
	}
	return e.Variable.String() + " " + e.Reason
}

// Secret reports whether there is a value, which a template must not render.
func (e *MissingError) Secret() bool { return e.Reason == string(isSecret) }

// Render returns the text of a template. An error of a MissingError says which variable has no value.
func (t Template) Render(s Scope) (string, error) {
	var text strings.Builder
	for _, p := range t.parts {
		if p.variable == nil {
			text.WriteString(p.literal)
			continue
		}
		v, err := s.resolve(*p.variable)
		if err != nil {
			return "", err
		}
		one, err := render(v)
		if err != nil {
			return "", &MissingError{*p.variable, err.Error()}
		}
		if one == "" && p.variable.Default == nil {
			return "", &MissingError{*p.variable, "is empty"}
		}
		text.WriteString(one)
		if text.Len() > MaxRendered {
			return "", &MissingError{*p.variable, fmt.Sprintf("makes %s longer than %d bytes", t, MaxRendered)}
		}
	}
	return text.String(), nil
}

// render returns a value as text.
func render(v resource.PropertyValue) (string, error) {
	text := ""
	switch {
	case v.IsString():
		text = v.StringValue()
	case v.IsBool():
		text = strconv.FormatBool(v.BoolValue())
	case v.IsNumber():
		n := v.NumberValue()
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return "", fmt.Errorf("is no number")
		}
		text = strconv.FormatFloat(n, 'f', -1, 64)
	default:
		return "", fmt.Errorf("is a %s, not a text", v.TypeString())
	}
	switch {
	case len(text) > MaxRendered:
		return "", fmt.Errorf("is longer than %d bytes", MaxRendered)
	case !printable(text):
		return "", fmt.Errorf("is no printable text")
	}
	return text, nil
}

// Usable reports whether a text can be an id.
func Usable(id string) bool { return id != "" && len(id) <= MaxRendered && printable(id) }

// printable reports whether a text is valid, and has no control characters.
func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(c rune) bool {
		return unicode.IsControl(c) || unicode.Is(unicode.Cf, c)
	}) < 0
}
