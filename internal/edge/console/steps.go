package console

import (
	"fmt"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// step is what the page of an update shows of one resource.
type step struct {
	Key, Name, Type, Op string
	URL                 string
	State               string // waits, runs, done, failed
	Attempts            int
	Took                string
	Failure, Retry      string
	Notes               []string
	Changes             []change
	More                int
	Critical            bool
	Bar                 *bar
}

// bar is when a step ran, in per cent of its update.
type bar struct {
	From, Width string
	Label       string
}

// mark is a moment of an update.
type mark struct {
	At    time.Time
	Place string // in per cent
	After string
}

var states = map[projection.Phase]string{projection.PhaseWaiting: "waits", projection.PhaseRunning: "runs",
	projection.PhaseDone: "done", projection.PhaseFailed: "failed"}

func stepOf(row *projection.Row, d *detail, s span, critical bool, stack deployments.StackName) step {
	out := step{Key: row.URN, Name: safetext.Line(row.Name), Type: safetext.Line(row.Type), Op: string(row.Op),
		URL: resourceURL(stack, urn.URN(row.URN)), State: states[row.Phase], Attempts: row.Attempt, Notes: row.Notes,
		Critical: critical}
	if d != nil {
		out.Attempts = max(out.Attempts, d.attempts)
		out.Changes, out.More, out.Failure = d.changes, d.more, d.failure
	}
	if row.Phase == projection.PhaseRunning && row.Turnless {
		out.State = "waits for its turn"
	}
	if row.LastError != "" {
		out.Retry = short(messageText, row.LastError)
		if !row.NextRetry.IsZero() {
			out.Retry += fmt.Sprintf(" (next attempt at %s)", row.NextRetry.UTC().Format("15:04:05 UTC"))
		}
	}
	if row.Started.IsZero() || row.Phase == projection.PhaseWaiting {
		return out
	}
	end := row.Finished
	if end.IsZero() {
		end = s.end
	}
	out.Took = took(end.Sub(row.Started))
	out.Bar = s.bar(row.Started, end)
	return out
}

// span is the time of an update.
type span struct{ begin, end time.Time }

// spanOf returns the time of an update, with all of its steps: clocks may differ.
func spanOf(u deployments.UpdateInfo, rows []*projection.Row, now time.Time) span {
	s := span{u.Started.Truncate(time.Second), u.Ended}
	if u.Ended.IsZero() {
		s.end = now
	}
	if u.Started.IsZero() {
		s.begin = s.end
	}
	for _, row := range rows {
		if !row.Started.IsZero() && row.Started.Before(s.begin) {
			s.begin = row.Started
		}
		if row.Finished.After(s.end) {
			s.end = row.Finished
		}
	}
	return s
}

func (s span) percent(at time.Time) float64 {
	whole := s.end.Sub(s.begin)
	if whole <= 0 {
		return 0
	}
	return min(100, max(0, 100*float64(at.Sub(s.begin))/float64(whole)))
}

// bar returns the part of the time that a step took, wide enough to be seen.
func (s span) bar(begin, end time.Time) *bar {
	from := min(s.percent(begin), 99)
	width := min(100-from, max(1, s.percent(end)-from))
	return &bar{From: fmt.Sprintf("%.2f%%", from), Width: fmt.Sprintf("%.2f%%", width),
		Label: fmt.Sprintf("began %s after the update, took %s", took(begin.Sub(s.begin)), took(end.Sub(begin)))}
}

func (s span) mark(at time.Time) mark {
	return mark{at, fmt.Sprintf("%.2f%%", min(s.percent(at), 99.5)), took(at.Sub(s.begin))}
}
