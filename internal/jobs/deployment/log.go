package deployment

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// The parts of a log, in their order. A deployment has at most a few updates.
const (
	stepTurn, stepPrepare, stepOperation, stepEnd, stepRemoval = 1, 2, 10, 90, 95
)

const (
	// flushEvery is how often lines are written, and flushLines how many are written at once at the latest.
	flushEvery, flushLines = time.Second, 500
	// mostLines limits the log of one attempt, longestLine one line.
	mostLines, longestLine = 20_000, 4 << 10
)

// logger writes a part of the log of a deployment. Its methods may be called concurrently.
type logger struct {
	store    *statestore.Store
	ctx      context.Context
	redactor *redaction.Redactor // nil: there are no secrets

	mu      sync.Mutex
	at      jobs.LogPart
	pending []apitype.DeploymentLogLine
	written int
	stop    chan struct{}
	done    chan struct{}
}

// log opens the log of a step for this attempt of the activity. Close it.
func (a *Activities) log(
	ctx context.Context, n deployments.DeploymentName, step int, redactor *redaction.Redactor,
) *logger {
	l := &logger{store: a.Store, ctx: context.WithoutCancel(ctx), redactor: redactor, stop: make(chan struct{}),
		done: make(chan struct{}),
		at:   jobs.LogPart{Name: n, Step: step, Attempt: int(activity.GetInfo(ctx).Attempt)}}
	go l.run()
	return l
}

func (l *logger) run() {
	defer close(l.done)
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			l.flush()
			return
		case <-ticker.C:
			l.flush()
		}
	}
}

// flush writes what is pending. What cannot be written stays for the next time, or is lost with the activity: it is
// shown to people and decides nothing.
func (l *logger) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.pending), flushLines)
	if n == 0 {
		return
	}
	at := l.at
	at.Number++
	if l.store.Jobs.PutDeploymentLog(l.ctx, at, l.pending[:n]) == nil {
		l.at, l.pending = at, l.pending[n:]
	}
}

// header begins a section.
func (l *logger) header(text string) { l.add(apitype.DeploymentLogLine{Header: text}) }

// line adds a line.
func (l *logger) line(text string) {
	if at := strings.LastIndexByte(strings.TrimRight(text, "\r"), '\r'); at >= 0 {
		text = text[at+1:] // progress that overwrites itself
	}
	if l.redactor != nil {
		text = l.redactor.Replace(text)
	}
	if text = shortened(safetext.Text(strings.TrimRight(text, "\r\n"))); text != "" {
		l.add(apitype.DeploymentLogLine{Line: text + "\n"})
	}
}

// shortened returns a line as a log has it.
func shortened(text string) string {
	if len(text) <= longestLine {
		return text
	}
	return strings.ToValidUTF8(text[:longestLine], "") + "…"
}

func (l *logger) add(line apitype.DeploymentLogLine) {
	line.Timestamp = time.Now().UTC()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.written++; {
	case l.written == mostLines:
		line.Line = "The rest of the output is left out.\n"
	case l.written > mostLines:
		return
	}
	l.pending = append(l.pending, line)
}

// close writes what is left.
func (l *logger) close() {
	close(l.stop)
	<-l.done
	for range mostLines / flushLines {
		l.flush()
	}
}
