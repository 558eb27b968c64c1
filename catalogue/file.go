package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"

	"github.com/deployctl/deployctl/internal/settle/settlerule"
)

// file has the rules of a package. Its text is YAML in which each value is JSON on a line of its own, so that only the
// lines that are asked for are parsed.
type file struct {
	Package   string
	Terraform string // the prefix of Terraform's names, which are the keys of types; empty: the keys are tokens
	Versions  string // the versions of the plugin that have the types as they were checked
	Checked   string // the version whose schema the rules were checked against
	Sources   []Source
	Functions map[string]string // tokens of functions by Terraform's names

	values, rules string            // JSON
	types         map[string]string // JSON by key
	tokens        map[string]string // keys by token
	without       map[string]bool   // tokens that have no rule
}

// Source is where rules come from.
type Source struct {
	Name    string `json:"name"`
	Of      string `json:"of"`
	Licence string `json:"licence"`
	Version string `json:"version"`
}

// entry is what the catalogue has about a type.
type entry struct {
	Token string            `json:"token"`
	Names map[string]string `json:"names"` // inputs whose names do not follow from Terraform's
	Rules settlerule.Rules  `json:"rules"`
}

// parse reads the header of a file, and finds its types.
func parse(text string) (*file, error) {
	f := &file{types: map[string]string{}, tokens: map[string]string{}, without: map[string]bool{}}
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, "  ")
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !indented && !ok, !indented && strings.HasPrefix(value, "#"):
			section, _, _ = strings.Cut(line, ":")
		case !indented:
			if err := f.header(key, value); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		default:
			name, err := strconv.Unquote(key)
			if err != nil || !ok {
				return nil, fmt.Errorf("line %.40q has no key", line)
			}
			f.line(section, name, value)
		}
	}
	return f, nil
}

// tokenField begins an entry that has a token.
const tokenField = `{"token":"`

func (f *file) line(section, key, value string) {
	if section != "types" {
		f.without[key] = true
		return
	}
	f.types[key] = value
	if rest, ok := strings.CutPrefix(value, tokenField); ok {
		token, _, _ := strings.Cut(rest, `"`)
		f.tokens[token] = key
	} else {
		f.tokens[key] = key
	}
}

func (f *file) header(key, value string) error {
	into := map[string]any{"package": &f.Package, "terraform": &f.Terraform, "versions": &f.Versions,
		"checked": &f.Checked, "sources": &f.Sources, "functions": &f.Functions}[key]
	switch {
	case key == "values":
		f.values = value
	case key == "rules":
		f.rules = value
	case into == nil:
		return fmt.Errorf("it is not known")
	default:
		return json.Unmarshal([]byte(value), into)
	}
	return nil
}

// set returns the rules of a key, in the names of a plugin.
func (f *file) set(key string, n names) (settlerule.Set, error) {
	var e entry
	if err := json.Unmarshal([]byte(n.tokens(f, f.types[key])), &e); err != nil {
		return settlerule.Set{}, fmt.Errorf("the catalogue's rules of %s: %w", key, err)
	}
	set, err := f.shared(n)
	if err != nil || f.Terraform == "" {
		set.Rules = f.ranged(e.Rules)
		return set, err
	}
	own := maps.Clone(e.Names)
	if n.bound() {
		own = n.fields[key]
	}
	for i := range e.Rules {
		if e.Rules[i], err = e.Rules[i].Renamed(pulumiNames(own)); err != nil {
			return settlerule.Set{}, err
		}
	}
	if set.Rules = e.Rules; !n.bound() {
		set.Rules = f.ranged(e.Rules)
	}
	return set, nil
}

// shared returns what applies to all types of a package.
func (f *file) shared(n names) (settlerule.Set, error) {
	set := settlerule.Set{From: "catalogue/" + f.Package + ".yaml"}
	if f.values == "" {
		return set, nil
	}
	return set, json.Unmarshal([]byte(n.tokens(f, f.values)), &set.Values)
}

// general returns the rules for types that have none of their own.
func (f *file) general() (settlerule.Set, error) {
	set, err := f.shared(names{})
	if err != nil || f.rules == "" {
		return set, err
	}
	if err := json.Unmarshal([]byte(f.rules), &set.Rules); err != nil {
		return settlerule.Set{}, err
	}
	set.Rules = f.ranged(set.Rules)
	return set, nil
}

// ranged adds the versions of the plugin to rules that have none.
func (f *file) ranged(rules settlerule.Rules) settlerule.Rules {
	rules = slices.Clone(rules)
	for i := range rules {
		if rules[i].Versions == "" && f.Versions != "" {
			rules[i].Versions = f.Versions
			if rules[i].Validate() != nil {
				rules[i].Versions = ""
			}
		}
	}
	return rules
}

// pulumiNames returns the names of the bridge: Terraform's in camel case, but for those that it says.
func pulumiNames(own map[string]string) func(resource.PropertyPath) (resource.PropertyPath, error) {
	return func(path resource.PropertyPath) (resource.PropertyPath, error) {
		head, ok := path[0].(string)
		if !ok {
			return nil, fmt.Errorf("the path %s begins with no name", path)
		}
		path = slices.Clone(path)
		if path[0] = camel(head); own[head] != "" {
			path[0] = own[head]
		}
		return path, nil
	}
}

// camel turns a name of Terraform into one of Pulumi.
func camel(name string) string {
	parts := strings.Split(name, "_")
	for i := range parts[1:] {
		if p := parts[i+1]; p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}
