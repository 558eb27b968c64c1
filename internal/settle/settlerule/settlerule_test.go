package settlerule

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"gopkg.in/yaml.v3"
)

type pm = resource.PropertyMap

func text(s string) resource.PropertyValue { return resource.NewProperty(s) }

var known = Scope{
	Inputs: pm{
		"bucket": text("site"), "count": resource.NewProperty(3.0), "ratio": resource.NewProperty(0.25),
		"on": resource.NewProperty(true), "empty": text(""), "nothing": resource.NewNullProperty(),
		"metadata": resource.NewProperty(pm{"namespace": text("web"), "name": text("app")}),
		"tags":     resource.NewProperty(pm{"a.b": text("dotted"), "c}d|e": text("odd")}),
		"rules":    resource.NewProperty([]resource.PropertyValue{resource.NewProperty(pm{"name": text("first")})}),
		"password": resource.MakeSecret(text("hunter2")),
		"within":   resource.NewProperty(pm{"password": resource.MakeSecret(text("hunter2"))}),
		"later":    resource.MakeComputed(text("")),
		"made":     resource.NewProperty(resource.Output{Element: text("it"), Known: true}),
		"hidden":   resource.NewProperty(resource.Output{Element: text("hunter2"), Known: true, Secret: true}),
		"parent":   resource.MakeSecret(resource.NewProperty(pm{"name": text("hunter2")})),
		"long":     text(strings.Repeat("x", MaxRendered-1)),
		"lines":    text("a\nb"),
		"colour":   text("\x1b[31m"),
	},
	Config: pm{"region": text("eu-1"), "token": resource.MakeSecret(text("hunter2"))},
	Mark:   "m4rk",
	Values: func(name string) (string, error) {
		switch name {
		case "account":
			return "123", nil
		case "broken":
			return "", errors.New("the function failed")
		}
		return "", &MissingError{Variable{Origin: Value, Name: name}, "has no value"}
	},
}

func TestATemplateRendersItsVariables(t *testing.T) {
	for _, c := range []struct{ template, want, fails string }{
		{template: "${bucket}", want: "site"},
		{template: "projects/${bucket}/n/${metadata.name}", want: "projects/site/n/app"},
		{template: "${count}:${ratio}:${on}", want: "3:0.25:true"},
		{template: `${tags["a.b"]}-${rules[0].name}`, want: "dotted-first"},
		{template: `${tags["c}d|e"]}`, want: "odd"},
		{template: "${config:region}/${value:account}/${mark}", want: "eu-1/123/m4rk"},
		{template: "${made}", want: "it"},
		{template: "$${bucket}$", want: "${bucket}$"},
		{template: "default", want: "default"},
		{template: "${absent|default}/${metadata.uid|}", want: "default/"},
		{template: "${absent|a|b:c}", want: "a|b:c"},
		{template: "${empty|none}", want: "none"},
		{template: "${nothing|none}", want: "none"},
		{template: "${value:absent|none}", want: "none"},
		{template: "${rules[1].name}", fails: "the input rules[1].name has no value"},
		{template: "${rules[-1].name|x}", want: "x"},
		{template: "${bucket.name}", fails: "the input bucket.name has no value"},
		{template: "${empty}", fails: "the input empty is empty"},
		{template: "${nothing}", fails: "has no value"},
		{template: "${later}", fails: "is not known"},
		{template: "${password}", fails: "the input password is secret"},
		{template: "${password|x}", fails: "is secret"},
		{template: "${within.password}", fails: "is secret"},
		{template: "${parent.name}", fails: "is secret"},
		{template: "${hidden}", fails: "is secret"},
		{template: "${config:token}", fails: "the provider's configuration token is secret"},
		{template: "${config:absent}", fails: "has no value"},
		{template: "${metadata}", fails: "the input metadata is a object, not a text"},
		{template: "${lines}", fails: "is no printable text"},
		{template: "${colour}", fails: "is no printable text"},
		{template: "${long}${bucket}", fails: "longer than 2048 bytes"},
		{template: "${value:absent}", fails: "the value absent has no value"},
		{template: "${value:broken}", fails: "the function failed"},
	} {
		parsed, err := ParseTemplate(c.template)
		if err != nil {
			t.Errorf("%s: %v", c.template, err)
			continue
		}
		got, err := parsed.Render(known)
		switch {
		case c.fails == "" && (err != nil || got != c.want):
			t.Errorf("%s renders %q, not %q: %v", c.template, got, c.want, err)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s renders %q, and fails with %v instead of %q", c.template, got, err, c.fails)
		case strings.Contains(got, "hunter2") || err != nil && strings.Contains(err.Error(), "hunter2"):
			t.Errorf("%s tells a secret", c.template)
		}
		if again, err := ParseTemplate(parsed.String()); err != nil || again.String() != parsed.String() {
			t.Errorf("%s is written as %s, and that as %s: %v", c.template, parsed, again, err)
		}
	}
}

func TestATemplateThatIsWrongIsRejectedWithItsPosition(t *testing.T) {
	for template, want := range map[string]string{
		"":                                     "missing",
		"x${a":                                 `character 2 of "x${a": a variable ends with }`,
		"ü${}":                                 "character 2",
		"${a[}":                                "character 1",
		"${a[*]}":                              "[*]",
		"${env:HOME}":                          "config:, value: or mark",
		"${value:a b}":                         "letters, digits and _",
		"${value:}":                            "1 to",
		"a\nb":                                 "printable",
		strings.Repeat("x", maxTemplate+1):     "1000 bytes",
		strings.Repeat("${a}", 21):             "at most 20 variables",
		"${" + strings.Repeat("a.", 10) + "a}": "more than 10 steps",
	} {
		if _, err := ParseTemplate(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, not %q", template, err, want)
		}
	}
}

func TestRulesAreReadOfJSONAndYAML(t *testing.T) {
	for _, c := range []struct{ rule, kind, fails string }{
		{rule: `{"read": "${bucket}"}`, kind: "read"},
		{rule: `{"read": "property:bucket"}`, kind: "read"},
		{rule: `{"list": "property:tags.Name"}`, kind: "list"},
		{rule: `{"list": {"query": {"namespace": "${metadata.namespace}", "n": 3, "all": true, "of": ["${on}"]}}}`,
			kind: "list"},
		{rule: `{"list": {"match": {"tags.x": "${mark}"}}, "mark": "tags.x", "pause": "10s", "items": 1000}`, kind: "list"},
		{rule: `{"invoke": {"function": "aws:ec2/getVpcs:getVpcs", "ids": "ids[*]"}}`, kind: "invoke"},
		{rule: `{"repeat": true}`, kind: "repeat"},
		{rule: `{"nothing": true, "source": "s", "confidence": "high", "versions": ">=1.0.0 <2.0.0"}`, kind: "nothing"},
		{rule: `{"read": "${a}", "proof": []}`, kind: "read"},

		{rule: `{}`, fails: "one of read, list"},
		{rule: `{"read": "a", "nothing": true}`, fails: "one of read, list"},
		{rule: `{"read": ""}`, fails: "read: a template is missing"},
		{rule: `{"read": 5}`, fails: "read cannot be a number"},
		{rule: `{"raed": "a"}`, fails: `unknown field "raed"`},
		{rule: `"property:a"`, fails: "an object was expected"},
		{rule: `{"list": {}}`, fails: "a query or a match"},
		{rule: `{"list": "name"}`, fails: "property:PATH"},
		{rule: `{"list": {"match": {"a[*]": "x"}}}`, fails: "[*]"},
		{rule: `{"list": {"match": {"a": "${b"}}}`, fails: `match: a: character 1`},
		{rule: `{"list": {"query": {"a": null}}}`, fails: "query: a: an argument is"},
		{rule: `{"list": {"query": {"a": [[[[[[["x"]]]]]]]}}}`, fails: "6 deep"},
		{rule: `{"invoke": {"function": "f", "ids": "a"}}`, fails: "token of a function"},
		{rule: `{"invoke": {"function": "a:b:c"}}`, fails: "ids"},
		{rule: `{"read": "${mark}"}`, fails: "needs mark"},
		{rule: `{"read": "a", "mark": "tags"}`, fails: "a key of a property"},
		{rule: `{"repeat": true, "mark": "tags.x"}`, fails: "nothing is looked for by repeat"},
		{rule: `{"read": "a", "proof": ["hope"]}`, fails: "seed, mark and absence"},
		{rule: `{"read": "a", "pause": "2h"}`, fails: "at most 1m0s"},
		{rule: `{"read": "a", "pause": "soon"}`, fails: "a duration"},
		{rule: `{"read": "a", "items": 1001}`, fails: "1 to 1000"},
		{rule: `{"read": "a", "versions": "about 5"}`, fails: "range"},
		{rule: `[]`, fails: "1 to 8 rules"},
		{rule: `[{"read": "a"}, {"read": "${"}]`, fails: "rule 2: read: character 1"},
		{rule: `[` + strings.Repeat(`{"read": "a"},`, 8) + `{"read": "a"}]`, fails: "1 to 8 rules"},
	} {
		var rules, ofYAML Rules
		err := json.Unmarshal([]byte(c.rule), &rules)
		yamlErr := yaml.Unmarshal([]byte(c.rule), &ofYAML)
		switch {
		case c.fails == "" && (err != nil || yamlErr != nil || rules[0].Kind() != c.kind):
			t.Errorf("%s: %v %v", c.rule, err, yamlErr)
		case c.fails == "" && ofYAML[0].Kind() != c.kind:
			t.Errorf("%s is another rule in YAML", c.rule)
		case c.fails != "" && (err == nil || yamlErr == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, not %q", c.rule, err, c.fails)
		}
	}
}

func TestARangeOfVersionsHasNoEmptyAlternative(t *testing.T) {
	for versions, fits := range map[string]bool{
		"<1.0.0 || || >=2.0.0": false, "||": false, "<1.0.0 ||": false, "<1.0.0 ||  >=2.0.0": true, " ": false,
	} {
		var r Rule
		err := r.UnmarshalJSON([]byte(`{"read": "a", "versions": "` + versions + `"}`))
		if (err == nil) != fits {
			t.Errorf("%q: %v", versions, err)
		}
		r.AppliesTo("1.5.0")
	}
}

func TestWhatARuleLeavesOutHasADefault(t *testing.T) {
	var r Rule
	if err := r.UnmarshalJSON([]byte(`{"read": "a", "versions": ">=6.0.0 <8.0.0"}`)); err != nil {
		t.Fatal(err)
	}
	if r.Pause != DefaultPause || r.Items != DefaultItems || !r.Accepts(Seed) || !r.Accepts(Absence) {
		t.Errorf("%+v", r)
	}
	for version, want := range map[string]bool{"5.9.0": false, "6.0.0": true, "v7.4.1": true, "8.0.0": false, "": true} {
		if r.AppliesTo(version) != want {
			t.Errorf("it applies to %q: %v", version, !want)
		}
	}
	if err := r.UnmarshalJSON([]byte(`{"read": "a", "proof": ["mark"], "mark": "tags.x", "pause": "5s"}`)); err != nil {
		t.Fatal(err)
	}
	if r.Pause != 5*time.Second || r.Accepts(Seed) || !r.Accepts(ByMark) {
		t.Errorf("%+v", r)
	}
}

func TestAStacksRulesGoByTypeThenByPackage(t *testing.T) {
	s, err := ParseStack(`{"aws": {"values": {"account": {"function": "aws:index/getCallerIdentity:getCallerIdentity",
		"result": "accountId"}, "region": ["${region}", "${config:region}"]}, "rules": {"read": "${name}"}},
		"aws:s3/bucket:Bucket": {"read": "${bucket}"}}`)
	if err != nil {
		t.Fatal(err)
	}
	for typ, want := range map[string]string{
		"aws:s3/bucket:Bucket": "${bucket}", "aws:ec2/vpc:Vpc": "${name}", "gcp:pubsub/topic:Topic": "",
	} {
		set := s.For(typ)
		got := ""
		if len(set.Rules) > 0 {
			got = set.Rules[0].Read.String()
		}
		if got != want || (len(set.Values) == 2) != strings.HasPrefix(typ, "aws:") {
			t.Errorf("%s: %+v", typ, set)
		}
	}
	var none *Stack
	if set := none.For("aws:s3/bucket:Bucket"); len(set.Rules) > 0 {
		t.Error("no configuration has rules")
	}
}

func TestAStacksRulesThatAreWrongAreRejectedWithTheirPosition(t *testing.T) {
	many := strings.Builder{}
	for i := range maxRules + 1 {
		fmt.Fprintf(&many, `"p:m:T%d": {"nothing": true},`, i)
	}
	for config, want := range map[string]string{
		"{\n  \"a:b:C\": {\"read\" \"x\"}}":               "line 2, column 20",
		`[]`:                                              "line 1",
		`{"a:b:C": {"read": "${x"}}`:                      `a:b:C: read: character 1 of "${x"`,
		`{"a:b": {"read": "x"}}`:                          "package:module:Name",
		`{"a": {"read": "x"}}`:                            `a: unknown field "read"`,
		`{"a": {"values": {"b c": "x"}}}`:                 "letters, digits",
		`{"a": {"values": {"b": []}}}`:                    "1 to 5 sources",
		`{"a": {"values": {"b": "${value:c}"}}}`:          "inputs and configuration, not of the value c",
		`{"a": {"values": {"b": {"function": "f"}}}}`:     "token of a function",
		`{"a": {"values": {"b": {"function": "a:b:f"}}}}`: "result",
		`{"a": {"values": {"b": {"function": "a:b:f", "args": {"x": "${y}"},
			"result": "z"}}}}`: "its arguments are constants",
		`{` + strings.TrimSuffix(many.String(), ",") + `}`: "at most 2000 rules",
		strings.Repeat(" ", maxText) + `{}`:                "at most 262144 bytes",
		strings.Repeat(`{"a:b:C":`, 12000):                 "",
	} {
		if _, err := ParseStack(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, not %q", config, err, want)
		}
	}
}

func TestArgumentsTakeValuesAsTheyAre(t *testing.T) {
	var r Rule
	if err := r.UnmarshalJSON([]byte(`{"invoke": {"function": "a:b:f", "ids": "x", "args": {"tags": "${tags}",
		"n": "${count}", "s": "n${count}", "literal": 5, "on": true, "list": [{"key": "${bucket}"}],
			"none": []}}}`)); err != nil {
		t.Fatal(err)
	}
	got, err := RenderObject(r.Invoke.Args, known)
	want := pm{
		"tags": known.Inputs["tags"], "n": resource.NewProperty(3.0), "s": text("n3"), "literal": resource.NewProperty(5.0),
		"on":   resource.NewProperty(true),
		"list": resource.NewProperty([]resource.PropertyValue{resource.NewProperty(pm{"key": text("site")})}),
		"none": resource.NewProperty([]resource.PropertyValue{}),
	}
	if err != nil || !resource.NewProperty(got).DeepEquals(resource.NewProperty(want)) {
		t.Errorf("%v: %v", got, err)
	}
	big := make([]resource.PropertyValue, MaxArgument+1)
	for i := range big {
		big[i] = text("x")
	}
	for name, v := range map[string]resource.PropertyValue{
		"a secret": known.Inputs["within"], "something unknown": resource.NewProperty(pm{"a": known.Inputs["later"]}),
		"a long list": resource.NewProperty(big), "a long text": text(strings.Repeat("x", MaxRendered+1)),
	} {
		arg := Argument{Template: must(ParseTemplate("${x}"))}
		if v, err := arg.Render(Scope{Inputs: pm{"x": v}}); err == nil {
			t.Errorf("an argument takes %s: %v", name, v)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestTextsAreFoundInResults(t *testing.T) {
	result := resource.NewProperty(pm{
		"id": text("one"), "ids": resource.NewProperty([]resource.PropertyValue{text("a"), text("b"),
			known.Inputs["password"]}),
		"items": resource.NewProperty([]resource.PropertyValue{
			resource.NewProperty(pm{"arn": text("x")}), text("no object"), resource.NewProperty(pm{"arn": text("y")}),
		}),
	})
	for path, want := range map[string]string{
		"id": "one", "ids[*]": "a b", "items[*].arn": "x y", "items[1].arn": "", "absent[*].x": "", "id[*]": "", "ids": "",
	} {
		got, more := Texts(result, must(parsePath(path, true)), 2)
		if strings.Join(got, " ") != want || more {
			t.Errorf("%s: %q %v", path, got, more)
		}
	}
	if got, more := Texts(result, must(parsePath("ids[*]", true)), 1); len(got) != 1 || !more {
		t.Errorf("of two texts one is asked for: %q %v", got, more)
	}
}

func TestAMarkIsPutWhereTheRuleSays(t *testing.T) {
	pair := func(key, value string) resource.PropertyValue {
		return resource.NewProperty(pm{"key": text(key), "value": text(value)})
	}
	for _, c := range []struct {
		mark string
		with pm
		ok   bool
	}{
		{"tags.our-mark", pm{}, true},
		{"tags.our-mark", pm{"tags": resource.NewProperty(pm{"team": text("web")})}, true},
		{`metadata.annotations["x.io/mark"]`, pm{"metadata": resource.NewProperty(pm{"name": text("a")})}, true},
		{"tags[].our-mark", pm{}, true},
		{"tags[].our-mark", pm{"tags": resource.NewProperty([]resource.PropertyValue{pair("team", "web")})}, true},
		{"tags.our-mark", pm{"tags": resource.NewProperty(pm{"our-mark": text("mine")})}, false},
		{"tags[].our-mark", pm{"tags": resource.NewProperty([]resource.PropertyValue{pair("our-mark", "x")})}, false},
		{"tags.our-mark", pm{"tags": text("a=b")}, false},
		{"tags.our-mark", pm{"tags": resource.MakeSecret(resource.NewProperty(pm{}))}, false},
		{"tags.our-mark", pm{"tags": resource.MakeComputed(text(""))}, false},
	} {
		before := c.with.Copy()
		m := must(ParseMark(c.mark))
		got, ok := m.Put(c.with, "m4rk")
		if ok != c.ok || ok && m.Get(got) != "m4rk" || !ok &&
			!resource.NewProperty(got).DeepEquals(resource.NewProperty(before)) {
			t.Errorf("%s on %v: %v %v", c.mark, before, got, ok)
		}
		if !resource.NewProperty(c.with).DeepEquals(resource.NewProperty(before)) {
			t.Errorf("%s changed what was declared: %v", c.mark, c.with)
		}
		if again := must(ParseMark(m.String())); again.String() != m.String() || again.Key != m.Key {
			t.Errorf("%s is written %s, and that is %s", c.mark, m, again)
		}
	}
}

func TestARenamedRuleLeavesTheFirstAsItIs(t *testing.T) {
	var r Rule
	if err := r.UnmarshalJSON([]byte(`{"list": {"query": {"a": ["${b_c}", "${config:b_c}"]}, "match": {"d_e": "${b_c}"}},
		"mark": "d_e.key_kept"}`)); err != nil {
		t.Fatal(err)
	}
	renamed, err := r.Renamed(func(p resource.PropertyPath) (resource.PropertyPath, error) {
		return resource.PropertyPath{strings.ReplaceAll(p[0].(string), "_", "")}, nil
	})
	describe := func(r Rule) string {
		return fmt.Sprint(r.Variables()[0].Path, " ", r.Variables()[1].Path, " ", r.List.Match[0].Path, " ", r.Mark)
	}
	if err != nil || describe(renamed) != "bc b_c de de.key_kept" || describe(r) != "b_c b_c d_e d_e.key_kept" {
		t.Errorf("%s of %s: %v", describe(renamed), describe(r), err)
	}
}

func TestARuleIsExplained(t *testing.T) {
	for rule, want := range map[string]string{
		`{"read": "p/${name|x}"}`: "The provider reads the id p/${name|x}; what is not found is looked for again after 2s. " +
			"What is found is ours if it was found by a name that was generated for it, or if it was looked for before its " +
			"create and was not there.",
		`{"list": {"query": {"n": "${name}", "l": [1, true]}, "match": {"tags.m": "${mark}"}}, "mark": "tags.m",
			"proof": ["mark"], "pause": "5s"}`: "The provider lists the type where l is [1, true] and n is ${name}; of these, " +
			"the one whose tags.m is ${mark}; what is not found is looked for again after 5s. At most 100 resources are " +
			"looked at. What is found is ours if it bears the mark of its create at tags.m.",
		`{"invoke": {"function": "a:b:c", "args": {"o": {"k": "v"}}, "ids": "x[*].y"}, "proof": [], "source": "a page",
			"confidence": "high", "versions": ">=1.0.0"}`: "The function a:b:c, asked where o is {k: v}, has ids at x[*].y; " +
			"what is not found is looked for again after 2s. At most 100 resources are looked at. Nothing shows that what is " +
			"found is ours: a person decides. Source: a page. Confidence: high. For versions >=1.0.0.",
		`{"nothing": true}`: "A create has no effect outside of the state: it is made again.",
		`{"repeat": true}`:  "A create may be repeated: it is made again.",
	} {
		var r Rule
		if err := r.UnmarshalJSON([]byte(rule)); err != nil {
			t.Fatal(err)
		}
		if got := r.Explain(); got != want {
			t.Errorf("%s:\n%s\nnot\n%s", rule, got, want)
		}
	}
}
