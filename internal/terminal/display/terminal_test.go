package display

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/mattn/go-runewidth"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// terminal is a model of a terminal: a screen that scrolls, a cursor, and the control sequences that a tree uses.
type terminal struct {
	columns, rows int
	lines         [][]rune // the lines on the screen and those that have scrolled off it
	row, column   int      // row counts from the first line ever
	hidden        bool
}

func (t *terminal) at(row int) []rune {
	for len(t.lines) <= row {
		t.lines = append(t.lines, nil)
	}
	return t.lines[row]
}

func (t *terminal) Write(p []byte) (int, error) {
	text := string(p)
	for len(text) > 0 {
		if rest, ok := strings.CutPrefix(text, "\x1b["); ok {
			end := strings.IndexFunc(rest, func(r rune) bool { return r >= '@' && r <= '~' })
			t.control(rest[:end], rest[end])
			text = rest[end+1:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		t.put(r)
	}
	return len(p), nil
}

func (t *terminal) put(r rune) {
	switch r {
	case '\r':
		t.column = 0
		return
	case '\n':
		t.row++
		t.at(t.row)
		return
	}
	w := runewidth.RuneWidth(r)
	if t.column+w > t.columns {
		t.row, t.column = t.row+1, 0
	}
	line := t.at(t.row)
	for len(line) < t.column+w {
		line = append(line, ' ')
	}
	line[t.column] = r
	for i := 1; i < w; i++ {
		line[t.column+i] = 0
	}
	t.lines[t.row] = line
	t.column += w
}

func (t *terminal) control(arguments string, command byte) {
	switch command {
	case 'A':
		n := 0
		_, _ = fmt.Sscan(arguments, &n)
		top := max(0, len(t.lines)-t.rows)
		t.row = max(top, t.row-n)
	case 'K':
		t.lines[t.row] = t.at(t.row)[:min(t.column, len(t.at(t.row)))]
	case 'J':
		t.control("", 'K')
		t.lines = t.lines[:t.row+1]
	case 'l':
		t.hidden = true
	case 'h':
		t.hidden = false
	case 'm':
	default:
		panic("the model does not know " + string(command))
	}
}

// String returns everything that was on the screen and was not overwritten.
func (t *terminal) String() string {
	var b strings.Builder
	for _, line := range t.lines {
		text := strings.ReplaceAll(string(line), "\x00", "")
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

var start = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

// scene is an update on a model terminal, with a clock that the test sets.
type scene struct {
	t    *testing.T
	term *terminal
	tree *tree
	now  time.Time
}

func newScene(t *testing.T, columns, rows int, o Options) *scene {
	t.Helper()
	s := &scene{t: t, term: &terminal{columns: columns, rows: rows}, now: start}
	o.Out, o.State, o.Now = s.term, projection.NewState(), func() time.Time { return s.now }
	o.Screen = &Screen{Size: func() (int, int) { return s.term.columns, s.term.rows }}
	if o.Kind == "" {
		o.Kind = "up"
	}
	s.tree = &tree{options: o, paint: painter(o.Color), state: o.State, stop: make(chan struct{}),
		stopped: make(chan struct{})}
	close(s.tree.stopped) // the tree is not redrawn by itself
	return s
}

// at lets an item arrive after some seconds.
func (s *scene) at(second int, items ...deployments.WatchEvent) *scene {
	s.now = start.Add(time.Duration(second) * time.Second)
	for _, e := range items {
		if e.Event != nil {
			e.Event.Timestamp = int(s.now.Unix())
		}
		s.tree.Item(e)
	}
	return s
}

// shows compares the screen with a text.
func (s *scene) shows(want string) *scene {
	s.t.Helper()
	if !s.tree.closed {
		s.tree.draw()
	}
	want = strings.TrimPrefix(want, "\n")
	if got := s.term.String(); got != want {
		s.t.Errorf("the screen shows\n%s\nwant\n%s", got, want)
	}
	return s
}

func id(typ, name string) string { return "urn:pulumi:dev::shop::" + typ + "::" + name }

const (
	bucket = "deployctl:s3:Bucket"
	object = "deployctl:s3:Object"
)

var stackURN = id(projection.StackType, "shop-dev")

// step describes the events of a step: its kind, its resource, and the inputs before and after it.
type step struct {
	op        apitype.OpType
	typ, name string
	parent    string
	old, new  map[string]any
	detailed  map[string]apitype.PropertyDiff
	retain    bool // retainOnDelete, of the old state
	condemned bool // the old state waits for its deletion
}

func (s step) metadata() apitype.StepEventMetadata {
	m := apitype.StepEventMetadata{Op: s.op, URN: id(s.typ, s.name), Type: s.typ, DetailedDiff: s.detailed}
	if s.parent == "" && s.typ != projection.StackType {
		s.parent = stackURN
	}
	if s.old != nil {
		m.Old = &apitype.StepEventStateMetadata{URN: m.URN, Type: s.typ, Custom: s.typ != projection.StackType,
			Parent: s.parent,
			Inputs: s.old, Outputs: s.old}
		m.Old.RetainOnDelete, m.Old.Delete = s.retain, s.condemned
	}
	if s.new != nil {
		m.New = &apitype.StepEventStateMetadata{URN: m.URN, Type: s.typ, Custom: s.typ != projection.StackType,
			Parent: s.parent,
			Inputs: s.new, Outputs: s.new}
	}
	return m
}

func (s step) begins() deployments.WatchEvent {
	return deployments.WatchEvent{Event: &apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{
		Metadata: s.metadata()}}}
}

func (s step) ends() deployments.WatchEvent {
	return deployments.WatchEvent{Event: &apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{
		Metadata: s.metadata()}}}
}

func (s step) fails() deployments.WatchEvent {
	return deployments.WatchEvent{Event: &apitype.EngineEvent{ResOpFailedEvent: &apitype.ResOpFailedEvent{
		Metadata: s.metadata()}}}
}

func says(severity, urn, message string) deployments.WatchEvent {
	return deployments.WatchEvent{Event: &apitype.EngineEvent{DiagnosticEvent: &apitype.DiagnosticEvent{
		Severity: severity, URN: urn, Message: message}}}
}

func ended(status, message string, seconds float64, changes map[string]int) deployments.WatchEvent {
	return deployments.WatchEvent{End: &deployments.UpdateInfo{
		Update: deployments.UpdateName{
			StackName: deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}, Version: "7",
		},
		Status: status, Error: message, Changes: changes, Started: start,
		Ended: start.Add(time.Duration(seconds * float64(time.Second))),
	}}
}

func stackStep() step {
	return step{op: apitype.OpSame, typ: projection.StackType, name: "shop-dev",
		old: map[string]any{"url": "http://a/"},
		new: map[string]any{"url": "http://b/"}}
}
