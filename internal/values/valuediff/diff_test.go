package valuediff

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// decoded reads a value for a test.
func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// told writes changes in one form for the tables below.
func told(changes []Change) string {
	var out []string
	for _, c := range changes {
		switch {
		case len(c.Lines) > 0:
			out = append(out, "~ "+c.Path+":")
			for _, l := range c.Lines {
				switch {
				case l.Skipped > 0:
					out = append(out, fmt.Sprintf("  … %d", l.Skipped))
				default:
					out = append(out, "  "+[]string{" ", "+", "-"}[l.Kind]+l.Text)
				}
			}
		case c.Kind == Added:
			out = append(out, "+ "+c.Path+": "+OneLine(c.New))
		case c.Kind == Removed:
			out = append(out, "- "+c.Path+": "+OneLine(c.Old))
		case c.Kind == Moved:
			out = append(out, "> "+c.Path+" from "+c.From)
		default:
			out = append(out, "~ "+c.Path+": "+OneLine(c.Old)+" → "+OneLine(c.New))
		}
	}
	return strings.Join(out, "\n")
}

func TestADifferenceIsNamedByThePlaceWhereItIs(t *testing.T) {
	for _, c := range []struct{ name, old, now, want string }{
		{"equal values differ nowhere", `{"a":[1,{"b":null}]}`, `{"a":[1,{"b":null}]}`, ``},
		{"a nested value has a path", `{"deep":{"one":{"three":[1,2,{"four":4}]}}}`,
			`{"deep":{"one":{"three":[1,2,{"four":5}]}}}`,
			`~ p.deep.one.three[2].four: 4 → 5`},
		{"a key that is no name is quoted", `{"a.b":1,"c d":2}`, `{"a.b":2,"c d":2}`, `~ p["a.b"]: 1 → 2`},
		{"what comes and goes is told apart from null", `{"a":null,"b":1}`, `{"b":null,"c":null}`,
			"- p.a: null\n~ p.b: 1 → null\n+ p.c: null"},
		{"another type is another value", `{"a":{"b":1}}`, `{"a":[1]}`, `~ p.a: {"b":1} → [1]`},
		{"an insertion moves nothing", `{"l":["a","b","c"]}`, `{"l":["x","a","b","c"]}`, `+ p.l[0]: "x"`},
		{"a removal has its old index", `{"l":["a","b","c"]}`, `{"l":["a","c"]}`, `- p.l[1]: "b"`},
		{"an element that changed is compared with what it was", `{"l":[{"n":"a","v":1},{"n":"b","v":1}]}`,
			`{"l":[{"n":"new","v":9},{"n":"a","v":2},{"n":"b","v":1}]}`,
			"+ p.l[0]: {\"n\":\"new\",\"v\":9}\n~ p.l[1].v: 1 → 2"},
		{"a moved block is moved", `{"l":[{"k":1},{"k":2},{"k":3}]}`, `{"l":[{"k":3},{"k":1},{"k":2}]}`,
			`> p.l[0] from p.l[2]`},
		{"as many others are pairs", `{"l":[1,2]}`, `{"l":[3,4]}`, "~ p.l[0]: 1 → 3\n~ p.l[1]: 2 → 4"},
		{"JSON in a text is compared as what it is", `{"policy":"{\"S\":[{\"Action\":\"s3:Get\",\"E\":1}]}"}`,
			`{"policy":"{ \"S\": [ {\"E\":1, \"Action\":\"s3:Put\"} ] }"}`,
			`~ p.policy (json) S[0].Action: "s3:Get" → "s3:Put"`},
		{"YAML in a text too", `{"y":"a: 1\nb:\n  - x\n"}`, `{"y":"a: 1\nb:\n  - x\n  - z\n"}`,
			`+ p.y (yaml) b[1]: "z"`},
		{"every document of YAML is looked at", `{"y":"a: 1\n---\nb: 1\n"}`, `{"y":"a: 1\n---\nb: 2\n"}`,
			`~ p.y (yaml) [1].b: 1 → 2`},
		{"a comment of YAML is a line", `{"y":"a: 1\nb: 2 # x\n"}`, `{"y":"a: 1\nb: 2 # y\n"}`,
			"~ p.y:\n   a: 1\n  -b: 2 # x\n  +b: 2 # y"},
		{"JSON that is only laid out anew is text", `{"j":"[1,2]"}`, `{"j":"[1, 2]"}`, `~ p.j: "[1,2]" → "[1, 2]"`},
		{"large numbers in JSON are exact", `{"j":"[9007199254740992]"}`, `{"j":"[9007199254740993]"}`,
			`~ p.j (json) [0]: 9007199254740992 → 9007199254740993`},
		{"text differs by lines, with some around them", `{"t":"1\n2\n3\n4\n5\n6\n7\n8\n9\n"}`,
			`{"t":"1\n2\n3\n4\n5\n6\n7\neight\n9\n"}`,
			"~ p.t:\n  … 5\n   6\n   7\n  -8\n  +eight\n   9"},
		{"the end of the last line is seen", `{"t":"a\nb\n"}`, `{"t":"a\nb"}`,
			"~ p.t:\n   a\n   b\n  +\\ no newline at the end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := told(Diff("p", decoded(t, c.old), decoded(t, c.now))); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestAValueIsWrittenWhole(t *testing.T) {
	long := strings.Repeat("x", 60)
	value := map[string]any{
		"short": []any{1, 2}, "text": "a\nb\n", "policy": `{"Version":"2012-10-17","Statement":["` + long + `"]}`,
		"list": []any{map[string]any{"a.b": long, "c": long}}, "nothing": map[string]any{},
	}
	want := `
  list:
    [0]:
      ["a.b"]: "` + long + `"
      c: "` + long + `"
  nothing: {}
  policy: (json)
    Statement: ["` + long + `"]
    Version: "2012-10-17"
  short: [1,2]
  text: |
    a
    b`
	if got := strings.Join(Block(value), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := Block(`{"a":`+strings.Repeat(" ", 80)+`1}`), []string{`(json) {"a":1}`}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestWhatIsCutIsCountedAndNotWhatDiffers(t *testing.T) {
	left, right := strings.Repeat("l", 100), strings.Repeat("r", 100)
	old, now := Differing(left+"old"+right, left+"new"+right, 60)
	if want := "…(88 characters)…" + left[:12] + "old" + right[:12] + "…(88 characters)…"; old != want {
		t.Errorf("old is %q", old)
	}
	if !strings.Contains(now, "new") {
		t.Errorf("new is %q", now)
	}
	if got, want := Cut(left, 30), left[:30]+"…(70 characters)…"; got != want {
		t.Errorf("%q", got)
	}
	middle := strings.Repeat("w", 100_000)
	old, now = Differing("A"+middle+"C", "A1"+middle+"C1", 60)
	if want := "A1" + middle[:12] + "…(99977 characters)…" + middle[:11] + "C1"; now != want ||
		old != strings.NewReplacer("A1", "A", "C1", "C").Replace(want) {
		t.Errorf("when both ends change: %q %q", old, now)
	}
	old, now = Differing(strings.Repeat("o", 5000), strings.Repeat("n", 100_000), 60)
	if want := strings.Repeat("n", 240) + "…(99760 characters)…"; now != want || len(old) > 300 {
		t.Errorf("when nothing is in common: %q %q", old, now)
	}
	if old, now := Differing("a", "b", 60); old != "a" || now != "b" {
		t.Errorf("%q %q", old, now)
	}
}

func FuzzADiffIsEmptyExactlyForEqualTexts(f *testing.F) {
	f.Add(`{"a":[1,2]}`, `{"a":[2,1]}`)
	f.Add("a: &x [1]\nb: *x\n", "a: 1\n---\nb: 2\n")
	f.Add("one\ntwo", "two\none\n")
	f.Fuzz(func(t *testing.T, old, now string) {
		changes := Diff("", old, now)
		if (len(changes) == 0) != (old == now) {
			t.Errorf("%q and %q: %d changes", old, now, len(changes))
		}
		Block(old)
		Differing(old, now, 20)
	})
}
