package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// rule is one way to find a resource of a type, in the format of settle rules.
type rule struct {
	Read       string         `json:"read,omitempty"`
	List       map[string]any `json:"list,omitempty"`
	Invoke     map[string]any `json:"invoke,omitempty"`
	Repeat     bool           `json:"repeat,omitempty"`
	Nothing    bool           `json:"nothing,omitempty"`
	Mark       string         `json:"mark,omitempty"`
	Proof      []string       `json:"proof,omitempty"`
	Pause      string         `json:"pause,omitempty"`
	Items      int            `json:"items,omitempty"`
	Versions   string         `json:"versions,omitempty"`
	Confidence string         `json:"confidence,omitempty"`
	Source     string         `json:"source,omitempty"`
}

// entry is what the catalogue has about a type.
type entry struct {
	Token string            `json:"token,omitempty"` // where the key is a name of Terraform
	Names map[string]string `json:"names,omitempty"` // inputs whose names do not follow from Terraform's
	Rules []rule            `json:"rules"`
}

// file is the catalogue of a package.
type file struct {
	Package   string
	Terraform string            // the prefix of Terraform's names, which are the keys of types; empty: tokens are
	Versions  string            // the versions of the plugin whose types were looked at
	Checked   string            // the version whose schema the rules were checked against
	Sources   []source          // what the rules are from
	Values    map[string][]any  // sources of values that rules use
	Functions map[string]string // tokens of functions by Terraform's names
	Rules     []rule            // for all types
	Types     map[string]entry  // by Terraform's names, or by tokens
	Left      map[string]string // why types, by tokens, have no rule
	sdk       *sdk              // what the package's schema says
	bound     map[string]string // Terraform's names by tokens
	oldest    int               // the oldest major version that was looked at
	curated   map[string]bool   // types whose rules were written by hand
}

// source is where rules come from.
type source struct {
	Name    string `json:"name"` // by which rules refer to it
	Of      string `json:"of"`
	Licence string `json:"licence"`
	Version string `json:"version"` // a commit or a release
}

var variable = regexp.MustCompile(`\$\{([^}|]+)(\|[^}]*)?\}`)

// variables returns the inputs that a template names.
func variables(template string) []string {
	var names []string
	for _, m := range variable.FindAllStringSubmatch(template, -1) {
		if !strings.Contains(m[1], ":") && m[1] != "mark" {
			names = append(names, m[1])
		}
	}
	return names
}

// camel turns a name of Terraform into one of Pulumi, as the bridge does.
func camel(name string) string {
	var out strings.Builder
	up := false
	for _, c := range name {
		switch {
		case c == '_':
			up = out.Len() > 0
		case up:
			out.WriteString(strings.ToUpper(string(c)))
			up = false
		default:
			out.WriteRune(c)
		}
	}
	return out.String()
}

// scalar reports whether a template can use values of a kind.
func scalar(kind string) bool { return kind == "string" || kind == "number" || kind == "bool" }

// check reports why a rule cannot be right for a type with these inputs; names maps names of Terraform to others.
func (e *entry) check(r *resource, functions map[string]*resource, terraform bool) error {
	for _, one := range e.Rules {
		text, err := json.Marshal(one)
		if err != nil {
			return err
		}
		for _, name := range variables(unescaped(string(text))) {
			head := strings.FieldsFunc(name, func(c rune) bool { return c == '.' || c == '[' })[0]
			property := head
			if terraform {
				property = camel(head)
			}
			if e.Names[head] != "" {
				property = e.Names[head]
			}
			in, ok := r.Inputs[property]
			switch {
			case !ok && terraform && e.Names[head] == "" && r.Inputs["name"].Kind == "string" &&
				strings.HasSuffix(head, "_name"):
				if e.Names == nil {
					e.Names = map[string]string{}
				}
				e.Names[head] = "name"
			case !ok:
				return fmt.Errorf("%s is no input", property)
			case in.Secret: // no template renders one, so the rule could never be used
				return fmt.Errorf("%s is secret", property)
			case head == name && !scalar(in.Kind):
				return fmt.Errorf("%s is of kind %s", property, in.Kind)
			}
		}
		if err := one.calls(functions); err != nil {
			return err
		}
		if one.Mark != "" {
			head, _, _ := strings.Cut(one.Mark, ".")
			head, list := strings.CutSuffix(head, "[]")
			in, ok := r.Inputs[head]
			switch {
			case !ok:
				return fmt.Errorf("%s is no input, so it bears no mark", head)
			case list && in.Kind != "list", !list && in.Kind != "map" && in.Kind != "object":
				return fmt.Errorf("%s is of kind %s, so it bears no mark", head, in.Kind)
			}
		}
	}
	return nil
}

// calls reports why the function that a rule calls cannot be called so.
func (r *rule) calls(functions map[string]*resource) error {
	if r.Invoke == nil {
		return nil
	}
	called := functions[fmt.Sprint(r.Invoke["function"])]
	if called == nil {
		return fmt.Errorf("there is no function %s", r.Invoke["function"])
	}
	step := func(c rune) bool { return c == '[' || c == '.' }
	if head := strings.FieldsFunc(fmt.Sprint(r.Invoke["ids"]), step)[0]; !called.Results[head] {
		return fmt.Errorf("%s has no result %s", called.Token, head)
	}
	args, _ := r.Invoke["args"].(map[string]any)
	for name := range args {
		if _, ok := called.Inputs[name]; !ok {
			return fmt.Errorf("%s has no argument %s", called.Token, name)
		}
	}
	return nil
}

func unescaped(s string) string {
	var out any
	if json.Unmarshal([]byte(s), &out) != nil {
		return s
	}
	return fmt.Sprint(out)
}

// add adds the rules of a type, if they fit the schema; otherwise it notes why not.
func (f *file) add(key, token string, e entry) {
	r := f.sdk.Resources[token]
	if r == nil {
		f.Left[key] = "its type is not known"
		return
	}
	if err := e.check(r, f.sdk.Functions, f.Terraform != ""); err != nil {
		f.Left[token] = err.Error()
		return
	}
	if f.Terraform != "" {
		e.Token = token
	}
	delete(f.Left, token)
	f.Types[key] = e
}

// bind finds the tokens of Terraform's types by their names, where the names alone leave no doubt: the module and the
// name of a token, or its name alone, are the name in Terraform.
func (f *file) bind(names []string) {
	bySpelling, byName := map[string][]string{}, map[string][]string{}
	for _, token := range slices.Sorted(maps.Keys(f.sdk.Resources)) {
		parts := strings.Split(token, ":")
		module, _, _ := strings.Cut(parts[1], "/")
		name := strings.ToLower(parts[2])
		bySpelling[strings.ToLower(module)+name] = append(bySpelling[strings.ToLower(module)+name], token)
		byName[name] = append(byName[name], token)
	}
	taken := map[string]bool{}
	for _, token := range f.bound {
		taken[token] = true
	}
	for _, candidates := range []map[string][]string{bySpelling, byName} {
		for _, tf := range names {
			spelled := strings.ReplaceAll(strings.TrimPrefix(tf, f.Terraform), "_", "")
			found := candidates[spelled]
			if len(found) == 1 && f.bound[tf] == "" && !taken[found[0]] {
				f.bound[tf], taken[found[0]] = found[0], true
			}
		}
	}
}

// checkValues checks the functions from which values come.
func (f *file) checkValues() error {
	for name, sources := range f.Values {
		for _, s := range sources {
			asked, ok := s.(map[string]any)
			if !ok {
				continue
			}
			called := f.sdk.Functions[fmt.Sprint(asked["function"])]
			if called == nil || !called.Results[fmt.Sprint(asked["result"])] {
				return fmt.Errorf("value %s: there is no function %s with a result %s", name, asked["function"], asked["result"])
			}
		}
	}
	return nil
}
