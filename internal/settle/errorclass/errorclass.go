// Package errorclass says what the error of a provider tells about the effect of its call. It knows the errors by a
// table of patterns: classes.yaml, and what a stack's configuration adds to it.
package errorclass

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"gopkg.in/yaml.v3"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/glob"
)

const (
	// longestPattern and mostValues bound what a stack's configuration adds.
	longestPattern, mostValues = 500, 1000
	// mostInstructions bounds what the regular expressions of a table are compiled to, together: the worker keeps it for
	// each update, and a text costs its length times that. A repetition such as x{1000} has many.
	mostInstructions = 20_000
	// examined is how many bytes at the beginning of an error's text, and at its end, are looked at.
	examined = 16 << 10
)

// Pattern recognises errors of one class. All of its conditions hold, and of each one of its values does.
type Pattern struct {
	Class engine.ErrorClass `json:"class"          yaml:"class"`
	On    []string          `json:"on,omitempty"   yaml:"on"`
	GRPC  []string          `json:"grpc,omitempty" yaml:"grpc"`
	HTTP  []string          `json:"http,omitempty" yaml:"http"`
	Code  []string          `json:"code,omitempty" yaml:"code"`
	Text  []string          `json:"text,omitempty" yaml:"text"`

	texts []*regexp.Regexp
}

// Table has patterns by package or type, in the order in which they are asked.
type Table map[string][]Pattern

// Error is an error that a provider has answered.
type Error struct {
	Type string // of the resource
	Step string // create, update or delete
	Code codes.Code
	Text string
}

// Verdict is what an error tells.
type Verdict struct {
	Class engine.ErrorClass
	By    string // what told it, for people; empty if nothing did
	Typed bool   // the provider said it by the status code of the protocol
}

//go:embed classes.yaml
var embedded []byte

// general is the key of the patterns for all packages.
const general = "general"

// builtIn is the embedded table. Most updates never ask for it.
var builtIn = sync.OnceValues(func() (Table, error) {
	var file struct {
		General  []Pattern `yaml:"general"`
		Packages Table     `yaml:"packages"`
	}
	d := yaml.NewDecoder(bytes.NewReader(embedded))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	file.Packages[general] = file.General
	return file.Packages, file.Packages.Compile()
})

// Compile checks the patterns of a table, and prepares them.
func (t Table) Compile() error {
	values, instructions := 0, 0
	for _, key := range slices.Sorted(maps.Keys(t)) {
		for i := range t[key] {
			p := &t[key][i]
			if values += 1 + len(p.values()); values > mostValues {
				return fmt.Errorf("there are more than %d patterns and values", mostValues)
			}
			if err := p.compile(&instructions); err != nil {
				return fmt.Errorf("pattern %d of %s: %w", i+1, key, err)
			}
		}
	}
	return nil
}

var (
	classes = []engine.ErrorClass{engine.ErrorDefinite, engine.ErrorExists, engine.ErrorThrottled, engine.ErrorNotReady,
		engine.ErrorAmbiguous}
	steps  = []string{"create", "update", "delete"}
	status = regexp.MustCompile(`^[1-5](xx|[0-9]{2})$`)
)

// values are those of all conditions.
func (p *Pattern) values() []string { return slices.Concat(p.On, p.GRPC, p.HTTP, p.Code, p.Text) }

// compile checks a pattern, and prepares it. Instructions are those of the patterns before it, and then also its own.
func (p *Pattern) compile(instructions *int) error {
	if !slices.Contains(classes, p.Class) {
		return fmt.Errorf("its class is one of %q, not %q", classes, p.Class)
	}
	if len(p.GRPC)+len(p.HTTP)+len(p.Code)+len(p.Text) == 0 {
		return fmt.Errorf("it needs grpc, http, code or text")
	}
	for _, s := range p.values() {
		if s == "" || len(s) > longestPattern {
			return fmt.Errorf("a value has 1 to %d bytes", longestPattern)
		}
	}
	for _, s := range p.On {
		if !slices.Contains(steps, s) {
			return fmt.Errorf("on is one of %q, not %q", steps, s)
		}
	}
	for _, s := range p.GRPC {
		if _, ok := grpcCodes()[s]; !ok {
			return fmt.Errorf("gRPC has no status code %q", s)
		}
	}
	for _, s := range p.HTTP {
		if !status.MatchString(s) {
			return fmt.Errorf("http is a status such as 404 or 5xx, not %q", s)
		}
	}
	p.texts = nil
	for _, s := range p.Text {
		s = "(?is)" + s
		parsed, err := syntax.Parse(s, syntax.Perl)
		if err != nil {
			return err
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil {
			return err
		}
		if *instructions += len(program.Inst); *instructions > mostInstructions {
			return fmt.Errorf("the regular expressions up to %q are too large: repeat less in them", s)
		}
		re, err := regexp.Compile(s)
		if err != nil {
			return err
		}
		p.texts = append(p.texts, re)
	}
	return nil
}

// grpcCodes are the status codes of gRPC by their names.
var grpcCodes = sync.OnceValue(func() map[string]codes.Code {
	all := map[string]codes.Code{}
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		all[c.String()] = c
	}
	return all
})

// Classify asks the stack's patterns for the type and for its package, then those of the embedded table.
func (t Table) Classify(e Error) (Verdict, error) {
	known, err := builtIn()
	if err != nil {
		return Verdict{Class: engine.ErrorUnknown}, err
	}
	pkg, _, _ := strings.Cut(e.Type, ":")
	ev := newEvidence(e)
	for _, asked := range []struct {
		name     string
		patterns []Pattern
	}{
		{"deployctl:errors", t[e.Type]}, {"deployctl:errors", t[pkg]}, {pkg, known[pkg]}, {general, known[general]},
	} {
		for _, p := range asked.patterns {
			if by, ok := p.matches(ev); ok {
				return Verdict{p.Class, asked.name + ": " + by, len(p.GRPC) > 0}, nil
			}
		}
	}
	return Verdict{Class: engine.ErrorUnknown}, nil
}

// evidence is an error as patterns look at it.
type evidence struct {
	Error
	statuses []string
	words    []string
}

var (
	// statuses find a status of HTTP in a text: named as such, or with its reason phrase.
	statuses = regexp.MustCompile(`(?i)(?:status(?: ?code)?|https?(?:/[0-9.]+)?(?: (?:error|status|code|response))*|` +
		`googleapi: error|(?:response|error) code|responded with|answered)["']?[\s:=("']*([1-5][0-9]{2})\b|` +
		`\b([45][0-9]{2}) (?:Bad Request|Unauthorized|Payment|Forbidden|Not Found|Method Not|Conflict|Gone|Precondition|` +
		`Unprocessable|Too Many|Internal|Not Implemented|Bad Gateway|Service|Gateway)`)
	words = regexp.MustCompile(`[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*`)
)

func newEvidence(e Error) evidence {
	if len(e.Text) > 2*examined {
		e.Text = e.Text[:examined] + "\n" + e.Text[len(e.Text)-examined:]
	}
	ev := evidence{Error: e, words: words.FindAllString(e.Text, -1)}
	for _, found := range statuses.FindAllStringSubmatch(e.Text, -1) {
		ev.statuses = append(ev.statuses, found[1]+found[2])
	}
	return ev
}

// matches reports whether an error is one of the pattern's, and by what.
func (p Pattern) matches(e evidence) (by string, ok bool) {
	if len(p.On) > 0 && !slices.Contains(p.On, e.Step) {
		return "", false
	}
	var found []string
	for _, c := range []struct {
		values []string
		match  func(value string, i int) string
	}{
		{p.GRPC, func(v string, _ int) string {
			if grpcCodes()[v] != e.Code {
				return ""
			}
			return "gRPC " + v
		}},
		{p.HTTP, func(v string, _ int) string {
			for _, s := range e.statuses {
				if s == v || strings.HasSuffix(v, "xx") && s[0] == v[0] {
					return "HTTP " + s
				}
			}
			return ""
		}},
		{p.Code, func(v string, _ int) string {
			for _, w := range e.words {
				if glob.Text(v, w) {
					return cut(w)
				}
			}
			return ""
		}},
		{p.Text, func(_ string, i int) string {
			if at := p.texts[i].FindString(e.Text); at != "" {
				return strconv.Quote(cut(at))
			}
			return ""
		}},
	} {
		if len(c.values) == 0 {
			continue
		}
		told := ""
		for i, v := range c.values {
			if told = c.match(v, i); told != "" {
				break
			}
		}
		if told == "" {
			return "", false
		}
		found = append(found, told)
	}
	return strings.Join(found, ", "), true
}

// cut returns the beginning of what told something.
func cut(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
