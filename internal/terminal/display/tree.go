package display

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
)

// redraw is the interval in which the tree is drawn again.
const redraw = 100 * time.Millisecond

// tree shows an update on a terminal: a region at the bottom of the screen that is redrawn while the update runs, and
// printed once in full at its end.
type tree struct {
	options Options
	paint   painter

	mu     sync.Mutex // guards everything below, and the state
	state  *projection.State
	ticks  int
	drawn  []string // the lines on the screen
	note   string   // the last Note, until the next item arrives
	closed bool

	stop    chan struct{}
	stopped chan struct{}
}

func newTree(o Options) *tree {
	t := &tree{options: o, paint: painter(o.Color), state: o.State, stop: make(chan struct{}),
		stopped: make(chan struct{})}
	t.write(hideCursor)
	go t.animate()
	return t
}

// Control sequences of the terminal.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
)

func (t *tree) write(text string) { _, _ = fmt.Fprint(t.options.Out, text) }

func (t *tree) animate() {
	defer close(t.stopped)
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-t.stop:
			return
		case <-ticker.C:
			t.mu.Lock()
			t.ticks++
			t.draw()
			t.mu.Unlock()
		}
	}
}

func (t *tree) Item(e deployments.WatchEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Apply(e)
	t.note = ""
}

func (t *tree) Note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note = text
}

func (t *tree) Close() {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	t.closed = true
	t.mu.Unlock()
	close(t.stop)
	<-t.stopped
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replace(t.last())
	t.write(showCursor)
}

// draw replaces the frame on the screen by the current one.
func (t *tree) draw() {
	columns, rows := t.options.Screen.Size()
	lines := t.frame(rows - 1)
	for i := range lines {
		lines[i] = clip(lines[i], columns-1)
	}
	t.replace(lines)
}

// replace writes lines over the drawn ones, with one write so that nothing flickers. A line that a narrower window has
// wrapped counts as several rows.
func (t *tree) replace(lines []string) {
	columns, _ := t.options.Screen.Size()
	var b strings.Builder
	up := 0
	for _, line := range t.drawn {
		up += max(1, (width(line)+columns-1)/columns)
	}
	if up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", up)
	}
	for _, line := range lines {
		b.WriteString(line + clearLine + "\r\n")
	}
	b.WriteString(clearBelow)
	t.write(b.String())
	t.drawn = lines
}

// last returns the final frame: everything that changed, not limited by the height of the screen.
func (t *tree) last() []string {
	lines, columns := t.rows(everything), t.form(0).columns
	for _, d := range t.state.Diags {
		lines = append(lines, t.diagnostic(d, columns)...)
	}
	if t.state.End == nil {
		return lines
	}
	summary := fold(strings.Join(summaryLines(t.state, t.options, t.paint), "\n"), columns)
	for _, part := range [][]string{outputLines(t.state, t.options, t.form(0)), summary} {
		if len(lines) > 0 && len(part) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, part...)
	}
	return lines
}

// frame returns the current frame, in at most height lines. If not everything fits, completed resources are left out
// first.
func (t *tree) frame(height int) []string {
	foot := t.foot()
	for _, how := range []detail{withChanges, withoutChanges, onlyActive} {
		lines := t.rows(how)
		if len(lines)+len(foot) <= height {
			return append(lines, foot...)
		}
	}
	lines := t.rows(onlyActive)
	room := max(0, height-len(foot)-1)
	hidden := len(lines) - min(room, len(lines))
	lines = append(lines[:len(lines)-hidden], t.paint.paint(dim, fmt.Sprintf("  … %d more", hidden)))
	lines = append(lines, foot...)
	return lines[max(0, len(lines)-max(1, height)):]
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// footDiags is how many lines of general diagnostics a live frame shows.
const footDiags = 4

// foot returns the lines below the tree: diagnostics without a resource, waits, and the status line.
func (t *tree) foot() []string {
	var lines []string
	for _, d := range t.state.Diags {
		lines = append(lines, diagLines(d, t.paint)...)
	}
	lines = lines[max(0, len(lines)-footDiags):]
	for _, wait := range t.state.Progress.Waiting {
		lines = append(lines, t.whole(t.paint.paint(yellow, "waiting for you: ")+waitLine(t.state, wait))...)
	}
	if t.note != "" {
		lines = append(lines, t.whole(t.note)...)
	}
	if hint := LostClient(t.state.Progress.Behind); hint != "" {
		lines = append(lines, t.whole(hint)...)
	}
	status := queueLine(t.state.Progress)
	if status == "" {
		status = statusLine(t.state, t.options, t.paint)
	}
	return append(lines, string(spinner[t.ticks%len(spinner)])+" "+status)
}

// whole wraps a sentence that must not be clipped; if necessary, within a word.
func (t *tree) whole(text string) (lines []string) {
	columns, _ := t.options.Screen.Size()
	for _, line := range fold(text, columns-1) {
		lines = append(lines, wrap(line, columns-1)...)
	}
	return lines
}

// diagnostic formats a diagnostic in a number of columns; the output of a program is not wrapped.
func (t *tree) diagnostic(d projection.Diag, columns int) []string {
	lines := diagLines(d, t.paint)
	if d.Severity != "error" && d.Severity != "warning" {
		return lines
	}
	return fold(strings.Join(lines, "\n"), columns)
}
