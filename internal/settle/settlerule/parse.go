package settlerule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// written is a rule as it stands in JSON.
type written struct {
	Read    *string         `json:"read"`
	List    json.RawMessage `json:"list"`
	Invoke  *writtenInvoke  `json:"invoke"`
	Repeat  bool            `json:"repeat"`
	Nothing bool            `json:"nothing"`

	Mark       string  `json:"mark"`
	Proof      []Proof `json:"proof"`
	Pause      string  `json:"pause"`
	Items      int     `json:"items"`
	Source     string  `json:"source"`
	Confidence string  `json:"confidence"`
	Versions   string  `json:"versions"`
}

type writtenList struct {
	Query map[string]any    `json:"query"`
	Match map[string]string `json:"match"`
}

type writtenInvoke struct {
	Function string            `json:"function"`
	Args     map[string]any    `json:"args"`
	IDs      string            `json:"ids"`
	After    string            `json:"after"`
	Match    map[string]string `json:"match"`
}

// inputAlone begins rules of the first form: the id, or what tells a resource from others, is one input.
const inputAlone = "property:"

// UnmarshalJSON reads and validates a rule.
func (r *Rule) UnmarshalJSON(data []byte) error {
	var w written
	if err := strictly(data, &w); err != nil {
		return err
	}
	*r = Rule{Repeat: w.Repeat, Nothing: w.Nothing, Proof: w.Proof, Items: w.Items, Source: w.Source,
		Confidence: w.Confidence, Versions: w.Versions}
	var err error
	if w.Read != nil {
		if r.Read, err = parseRead(*w.Read); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	if len(w.List) > 0 {
		if r.List, err = parseList(w.List); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
	if w.Invoke != nil {
		if r.Invoke, err = w.Invoke.parse(); err != nil {
			return fmt.Errorf("invoke: %w", err)
		}
	}
	if w.Mark != "" {
		if r.Mark, err = ParseMark(w.Mark); err != nil {
			return fmt.Errorf("mark: %w", err)
		}
	}
	if w.Pause != "" {
		if r.Pause, err = time.ParseDuration(w.Pause); err != nil {
			return fmt.Errorf("pause is a duration such as 5s, not %q", w.Pause)
		}
	}
	return r.Validate()
}

// strictly decodes JSON that has known names only.
func strictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typed) && typed.Field != "":
		return fmt.Errorf("%s cannot be a %s", typed.Field, typed.Value)
	case errors.As(err, &typed):
		return fmt.Errorf("an object was expected, not a %s", typed.Value)
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func parseRead(text string) (Template, error) {
	if path, old := strings.CutPrefix(text, inputAlone); old {
		text = "${" + path + "}"
	}
	return ParseTemplate(text)
}

func parseList(data json.RawMessage) (*List, error) {
	var old string
	if json.Unmarshal(data, &old) == nil {
		path, ok := strings.CutPrefix(old, inputAlone)
		if !ok {
			return nil, fmt.Errorf("it has query and match, or is %sPATH", inputAlone)
		}
		match, err := parseMatch(map[string]string{path: "${" + path + "}"})
		return &List{Match: match}, err
	}
	var w writtenList
	if err := strictly(data, &w); err != nil {
		return nil, err
	}
	query, err := parseArguments(w.Query)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	match, err := parseMatch(w.Match)
	return &List{query, match}, err
}

func (w *writtenInvoke) parse() (*Invoke, error) {
	i := &Invoke{Function: w.Function, After: w.After}
	var err error
	if i.Args, err = parseArguments(w.Args); err != nil {
		return nil, fmt.Errorf("args: %w", err)
	}
	if i.IDs, err = parsePath(w.IDs, true); err != nil {
		return nil, fmt.Errorf("ids: %w", err)
	}
	if len(i.After) > maxName || !printable(i.After) {
		return nil, fmt.Errorf("after has at most %d printable bytes", maxName)
	}
	i.Match, err = parseMatch(w.Match)
	return i, err
}

func parseArguments(from map[string]any) (map[string]Argument, error) {
	if len(from) == 0 {
		return nil, nil
	}
	nodes := 0
	a, err := parseArgument(from, 0, &nodes)
	return a.Object, err
}

func parseMatch(from map[string]string) ([]Match, error) {
	var all []Match
	for _, key := range slices.Sorted(maps.Keys(from)) {
		path, err := parsePath(key, false)
		if err != nil {
			return nil, fmt.Errorf("match: %w", err)
		}
		t, err := ParseTemplate(from[key])
		if err != nil {
			return nil, fmt.Errorf("match: %s: %w", key, err)
		}
		all = append(all, Match{path, t})
	}
	return all, nil
}

func checkFunction(name string) error {
	if len(name) > maxName || !printable(name) || strings.Count(name, ":") == 0 {
		return fmt.Errorf("function is the token of a function, such as aws:ec2/getVpcs:getVpcs, not %.60q", name)
	}
	return nil
}

// UnmarshalJSON reads one rule, or a list of rules.
func (r *Rules) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		*r = make(Rules, 1)
		return (*r)[0].UnmarshalJSON(data)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	if len(all) == 0 || len(all) > maxPerType {
		return fmt.Errorf("a type has 1 to %d rules", maxPerType)
	}
	*r = make(Rules, len(all))
	for i, one := range all {
		if err := (*r)[i].UnmarshalJSON(one); err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return nil
}

// UnmarshalJSON reads the sources of a value: one, or a list.
func (s *Sources) UnmarshalJSON(data []byte) error {
	all := []json.RawMessage{data}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		if err := json.Unmarshal(data, &all); err != nil {
			return err
		}
	}
	if len(all) == 0 || len(all) > maxSources {
		return fmt.Errorf("a value has 1 to %d sources", maxSources)
	}
	*s = make(Sources, len(all))
	for i, one := range all {
		if err := (*s)[i].parse(one); err != nil {
			return fmt.Errorf("source %d: %w", i+1, err)
		}
	}
	return nil
}

func (s *Source) parse(data []byte) (err error) {
	var text string
	if json.Unmarshal(data, &text) == nil {
		s.Template, err = ParseTemplate(text)
		return errors.Join(err, onlyOf(s.Template, "a value is made of inputs and configuration", Input, Config))
	}
	var w struct {
		Function string         `json:"function"`
		Args     map[string]any `json:"args"`
		Result   string         `json:"result"`
	}
	if err := strictly(data, &w); err != nil {
		return err
	}
	s.Function = w.Function
	if err := checkFunction(w.Function); err != nil {
		return err
	}
	if s.Result, err = parsePath(w.Result, false); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	if s.Args, err = parseArguments(w.Args); err != nil {
		return fmt.Errorf("args: %w", err)
	}
	Argument{Object: s.Args}.templates(func(t Template) {
		if err == nil { // the first says enough: there may be many
			err = onlyOf(t, "the function is asked once for all resources, so its arguments are constants")
		}
	})
	return err
}

// onlyOf checks that a template has no other variables.
func onlyOf(t Template, why string, origins ...Origin) error {
	for _, v := range t.Variables() {
		if !slices.Contains(origins, v.Origin) {
			return fmt.Errorf("%s, not of %s", why, v)
		}
	}
	return nil
}

// UnmarshalJSON reads what applies to a package.
func (p *Package) UnmarshalJSON(data []byte) error {
	var w struct {
		Rules  Rules              `json:"rules"`
		Values map[string]Sources `json:"values"`
	}
	if err := strictly(data, &w); err != nil {
		return err
	}
	if len(w.Values) > maxValues {
		return fmt.Errorf("a package has at most %d values", maxValues)
	}
	for name := range w.Values {
		if err := checkValueName(name); err != nil {
			return err
		}
	}
	p.Rules, p.Values = w.Rules, w.Values
	return nil
}

// fromYAML reads YAML as the JSON that it stands for.
func fromYAML(node *yaml.Node, into json.Unmarshaler) error {
	var v any
	if err := node.Decode(&v); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := into.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("line %d: %w", node.Line, err)
	}
	return nil
}

// UnmarshalYAML reads one rule, or a list of rules.
func (r *Rules) UnmarshalYAML(node *yaml.Node) error { return fromYAML(node, r) }

// UnmarshalYAML reads the sources of a value.
func (s *Sources) UnmarshalYAML(node *yaml.Node) error { return fromYAML(node, s) }
