package settlerule

import (
	"strings"
	"testing"
)

// FuzzRules parses rules of strangers, and evaluates those that are accepted: what a template renders is bounded and
// printable, and tells no secret.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{
		`{"a:b:C": {"read": "${bucket}/${metadata.name|x}/${password}"}}`,
		`{"a": {"values": {"x": ["${config:token}", {"function": "a:b:c", "result": "d"}]},
			"rules": {"read": "${value:x}"}}}`,
		`{"a:b:C": [{"list": {"query": {"n": ["${within}", 1, true]},
			"match": {"tags[\"a.b\"]": "${mark}"}}, "mark": "tags[].x"}]}`,
		`{"a:b:C": {"invoke": {"function": "a:b:c", "args": {"t": {"k": "$${${long}"}}, "ids": "i[*].d", "after": "/"}}}`,
		`{"a:b:C": {"list": "property:tags.Name"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, config string) {
		s, err := ParseStack(config)
		if err != nil {
			if len(err.Error()) > 20_000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		for name, rules := range s.types {
			for i := range rules {
				evaluate(t, &rules[i])
			}
			_ = s.For(name)
		}
		for _, p := range s.packages {
			for i := range p.Rules {
				evaluate(t, &p.Rules[i])
			}
		}
	})
}

func evaluate(t *testing.T, r *Rule) {
	if err := r.Validate(); err != nil {
		t.Errorf("a rule that was read is not valid: %v", err)
	}
	r.templates(func(template Template) {
		text, err := template.Render(known)
		if len(text) > MaxRendered || !printable(text) || strings.Contains(text, "hunter2") {
			t.Errorf("%s renders %q", template, text)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s fails with %v", template, err)
		}
		again, err := ParseTemplate(template.String())
		if err != nil || again.String() != template.String() {
			t.Errorf("%q is read again as %q: %v", template, again, err)
		}
	})
	if r.Invoke != nil {
		_, _ = RenderObject(r.Invoke.Args, known)
		_, _ = Texts(known.Inputs["rules"], r.Invoke.IDs, r.Items)
	}
	if !r.Mark.IsZero() {
		if with, ok := r.Mark.Put(known.Inputs, "m4rk"); ok && r.Mark.Get(with) != "m4rk" {
			t.Errorf("a mark at %s is not found again", r.Mark)
		}
	}
}
