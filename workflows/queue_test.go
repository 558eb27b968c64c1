package workflows

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

var rewrite = flag.Bool("update", false, "rewrite the transcripts in testdata/queue")

// TestQueueTranscripts plays the files of testdata/queue. A file holds what happens to a queue, a line each; the lines
// that begin with ">" say what the queue answers and how it stands afterwards, and are rewritten by -update. "stack"
// begins another transcript, with an idle stack.
func TestQueueTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/queue/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := playQueue(t, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a test's own data
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("the queue answers differently (rewrite with -update):\n%s", got)
			}
		})
	}
}

// playQueue returns the transcript with the answers of the queue.
func playQueue(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	s := newScribe()
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, ">") {
			continue
		}
		fmt.Fprintln(&out, line)
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if words[0] == "stack" {
			s = newScribe()
		}
		answer, err := s.do(words)
		if err != nil {
			t.Fatalf("line %d: %s: %v", i+1, line, err)
		}
		for _, said := range append(answer, s.withdrawals()...) {
			fmt.Fprintln(&out, ">", said)
		}
		fmt.Fprintln(&out, "> |", s.show())
		if err := s.queue.check(); err != nil {
			t.Errorf("line %d: %s: %v", i+1, line, err)
		}
	}
	return out.String()
}

// scribe does what the lines of a transcript say, a minute after each other.
type scribe struct {
	queue queue
	head  int // the version of the stack
	now   time.Time
}

func newScribe() *scribe {
	return &scribe{
		queue: queue{StackInput: deployments.StackInput{Stack: theStack, StackID: theStackID}},
		now:   time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC),
	}
}

// do returns what the queue answers.
func (s *scribe) do(words []string) ([]string, error) {
	s.now = s.now.Add(time.Minute)
	first := ""
	if len(words) > 1 {
		first = words[1]
	}
	switch words[0] {
	case "stack":
		return nil, s.open(words[1:])
	case "submit":
		return s.submit(words[1:])
	case "start":
		return either(s.queue.next(s.now), "started", "nothing to start"), nil
	case "finish":
		done := s.queue.finish(named(first))
		if done {
			s.head = named(first).Number()
		}
		return either(done, "finished", "not active"), nil
	case "cancel":
		return either(s.queue.remove(named(first), "cancelled before it began"), "cancelled", "not waiting"), nil
	case "migrate":
		active := s.queue.Active
		if active == nil || !s.queue.finish(named(first)) {
			return nil, fmt.Errorf("%s is not active", first)
		}
		s.queue.requeue(named(first), active.Request, s.now)
		return nil, nil
	case "settle":
		if !s.queue.finish(named(first)) {
			return nil, fmt.Errorf("%s is not active", first)
		}
		s.head = named(first).Number()
		s.queue.precede(deployments.UpdateRequest{RequestID: "settling"}, "what it left is settled first", s.now)
		return nil, nil
	case "reserve":
		version, err := s.queue.reserveVersion()
		return answer(fmt.Sprintf("version %d", version), err), nil
	}
	return nil, fmt.Errorf("no line begins with %q", words[0])
}

// open reads "version=7 active=6 by=ann destroy".
func (s *scribe) open(words []string) error {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		number, err := strconv.Atoi(value)
		switch {
		case err != nil:
			return err
		case key == "version":
			s.head = number
			s.queue.Version = max(s.queue.Version, number)
		case key == "active":
			left := named(value)
			s.queue.Version = max(s.queue.Version, number)
			s.queue.adopt(deployments.Head{Active: &left, Running: &deployments.UpdateInfo{
				Update: left, Kind: engine.KindDestroy, Initiator: "ann", Started: s.now,
			}}, s.now)
		default:
			return fmt.Errorf("a stack has no %s", key)
		}
	}
	return nil
}

// submit reads "ID on-busy=fail previewed=4 of=STACK preview submitted=5m for=IDENTITY".
func (s *scribe) submit(words []string) ([]string, error) {
	r := deployments.UpdateRequest{Stack: theStack, Kind: engine.KindUp,
		Submitted: &deployments.Submission{StackID: theStackID, At: s.now}}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "on-busy":
			r.OnBusy = deployments.OnBusy(value)
		case "previewed":
			version, err := strconv.Atoi(value)
			if err != nil {
				return nil, err
			}
			r.BaseVersion = &version
		case "of":
			r.Stack.Stack = value
		case "preview":
			r.DryRun = true
		case "submitted":
			ago, err := time.ParseDuration(value)
			if err != nil {
				return nil, err
			}
			r.Submitted.At = s.now.Add(-ago)
		case "for":
			r.Submitted.StackID = value
		default:
			r.RequestID = key
		}
	}
	if a, ok := s.queue.acceptedBefore(r.RequestID); ok {
		return []string{"as before: " + accepted(a)}, nil
	}
	a, err := s.queue.submit(r, s.head, s.now)
	if err != nil {
		s.queue.reject(r)
	}
	return answer(accepted(a), err), nil
}

func accepted(a deployments.Accepted) string {
	text := fmt.Sprintf("version %s, position %d", a.Update.Version, a.Position)
	if a.Behind != nil {
		text += fmt.Sprintf(", behind %s %s", a.Behind.Kind, a.Behind.Update.Version)
	}
	return text
}

func answer(text string, err error) []string {
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", deployments.CodeOf(err), err)}
	}
	return []string{text}
}

func either(done bool, yes, no string) []string {
	if done {
		return []string{yes}
	}
	return []string{no}
}

func named(version string) deployments.UpdateName {
	return deployments.UpdateName{StackName: theStack, Version: version}
}

// withdrawals takes the updates that the queue withdrew, as the Stack workflow does after every step.
func (s *scribe) withdrawals() (texts []string) {
	for _, w := range s.queue.withdrawn {
		text := fmt.Sprintf("withdrawn %s: %s", w.Update.Version, w.Withdrawn)
		if w.Next != "" {
			text += ", now " + w.Next
		}
		texts = append(texts, text)
	}
	s.queue.withdrawn = nil
	return texts
}

// show describes the queue in a line.
func (s *scribe) show() string {
	item := func(q deployments.QueuedUpdate) string {
		text := q.Update.Version
		if q.Request.RequestID != "" {
			text += " (" + q.Request.RequestID + ")"
		}
		return text + q.Since.Format(" since 15:04")
	}
	active, waiting := "idle", "nothing waits"
	if s.queue.Active != nil {
		active = "active " + item(*s.queue.Active)
	}
	if len(s.queue.Queue) > 0 {
		var items []string
		for _, w := range s.queue.Queue {
			items = append(items, item(w))
		}
		waiting = "waiting " + strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s; %s; newest %d", active, waiting, s.queue.Version)
}

// check reports what of the queue's invariant does not hold.
func (q *queue) check() error {
	last, versions := 0, []int{}
	if q.Active != nil {
		versions = append(versions, q.Active.Update.Number())
	}
	for _, w := range q.Queue {
		versions = append(versions, w.Update.Number())
	}
	for _, version := range versions {
		if version <= last {
			return fmt.Errorf("version %d comes after %d", version, last)
		}
		last = version
	}
	switch {
	case last > q.Version:
		return fmt.Errorf("version %d was never given out: the newest is %d", last, q.Version)
	case len(q.Queue) > queueLimit+1: // one may be an update that was migrated
		return fmt.Errorf("%d updates wait", len(q.Queue))
	case len(q.Answered) > answersLimit:
		return fmt.Errorf("%d answers are kept", len(q.Answered))
	}
	for _, w := range q.withdrawn {
		if slices.Contains(versions, w.Update.Number()) {
			return fmt.Errorf("version %s is withdrawn, and runs or waits", w.Update.Version)
		}
	}
	return nil
}

// TestTheInputOfTheNextRunOfAStackFitsIntoAPayload fills a queue with the largest requests that it takes, and with as
// many answers as it remembers, to names as long as can be.
func TestTheInputOfTheNextRunOfAStackFitsIntoAPayload(t *testing.T) {
	const payload = 2 << 20 // Temporal's limit
	long := strings.Repeat("n", 100)
	now := time.Date(2026, 1, 1, 0, 0, 0, 123456789, time.UTC)
	q := &queue{StackInput: deployments.StackInput{Stack: deployments.StackName{Organization: long, Project: long,
		Stack: long}, StackID: theStackID, Version: 1e9}}
	submit := func(i, size int) error {
		_, err := q.submit(deployments.UpdateRequest{Stack: q.Stack, Kind: engine.KindUp, OnBusy: deployments.OnBusyQueue,
			RequestID: fmt.Sprintf("%0*d", deployments.MaxRequestIDLength, i), Message: strings.Repeat("m", size),
			Submitted: &deployments.Submission{StackID: theStackID, At: now}}, 0, now)
		return err
	}
	for i := range answersLimit {
		size := deployments.MaxRequestSize / 3
		if i == 0 {
			size = deployments.MaxRequestSize - 10<<10
		}
		switch err := submit(i, size); {
		case i == 0 && err != nil:
			t.Fatal(err)
		case i > 0 && deployments.CodeOf(err) != deployments.CodeConflict:
			t.Fatalf("a request of %d bytes beside one of %d is answered with %v", size, deployments.MaxRequestSize, err)
		case i == 1:
			if err := submit(i, 100); err != nil {
				t.Errorf("a small request is answered with %v", err)
			}
		case i > 1:
			q.remember(deployments.UpdateRequest{RequestID: fmt.Sprintf("%0*d", deployments.MaxRequestIDLength, i),
				Submitted: &deployments.Submission{At: now}}, deployments.Accepted{Update: q.newest(), Position: 100,
				Behind: &deployments.UpdateInfo{Update: q.newest(), Message: long}})
		}
	}
	text, err := json.Marshal(q.StackInput)
	if err != nil || len(q.Answered) != answersLimit || len(text) > payload {
		t.Errorf("an input with %d answers takes %d bytes: %v", len(q.Answered), len(text), err)
	}
}

func TestAQueueIsBounded(t *testing.T) {
	s := newScribe()
	submit := func(id string, busy deployments.OnBusy) (deployments.Accepted, error) {
		s.queue.withdrawn = nil
		return s.queue.submit(deployments.UpdateRequest{Stack: theStack, RequestID: id, OnBusy: busy,
			Submitted: &deployments.Submission{StackID: theStackID, At: s.now}}, 0, s.now)
	}
	for i := range queueLimit {
		if _, err := submit(fmt.Sprint("first ", i), deployments.OnBusyQueue); err != nil {
			t.Fatalf("%d wait: %v", i, err)
		}
	}
	if _, err := submit("one too many", deployments.OnBusyQueue); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("%d updates wait, and the next is answered with %v", queueLimit, err)
	}
	if a, err := submit("the latest", deployments.OnBusySupersede); err != nil || a.Position != 0 {
		t.Errorf("the update that takes the place of all is answered with %+v, %v", a, err)
	}
	for len(s.queue.Answered) < answersLimit {
		if _, err := submit(fmt.Sprint("later ", len(s.queue.Answered)), deployments.OnBusySupersede); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := submit("too much", deployments.OnBusySupersede); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("%d requests could be repeated, and another one is answered with %v", answersLimit, err)
	}
	if _, known := s.queue.acceptedBefore("the latest"); !known {
		t.Error("an answer is forgotten while its request could be repeated")
	}
	s.now = s.now.Add(deployments.RequestWindow + time.Second)
	if _, err := submit("now", deployments.OnBusySupersede); err != nil || len(s.queue.Answered) > answersKept+1 {
		t.Errorf("when none of them could be, it is %v, and %d answers are kept", err, len(s.queue.Answered))
	}
}
