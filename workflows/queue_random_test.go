package workflows

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// TestRandomQueuesKeepTheInvariant also holds that every accepted request runs or is withdrawn, once, and that no
// request is refused or lost by Continue-As-New.
func TestRandomQueuesKeepTheInvariant(t *testing.T) {
	for seed := range uint64(100) {
		if text, err := randomQueue(rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
	}
}

// randomQueue returns the transcript of a random sequence, up to the line after which something does not hold.
func randomQueue(random *rand.Rand) (string, error) {
	s, l := newScribe(), ledger{waits: map[string]bool{}}
	var text strings.Builder
	for line := range 60 {
		words := randomLine(random, s, line)
		fmt.Fprintln(&text, strings.Join(words, " "))
		if words[0] == "continue" {
			s.queue = queue{StackInput: again(s.queue.StackInput)}
			continue
		}
		answer, err := s.do(words)
		if err != nil {
			return text.String(), err
		}
		if err := l.note(words, answer, &s.queue); err != nil {
			return text.String(), err
		}
		fmt.Fprintln(&text, ">", append(answer, s.withdrawals()...), s.show())
		if err := s.queue.check(); err != nil {
			return text.String(), err
		}
	}
	return text.String(), nil
}

// randomLine chooses among what can happen to the queue as it stands, and now and then what cannot.
func randomLine(random *rand.Rand, s *scribe, line int) []string {
	version := fmt.Sprint(max(1, s.queue.Version-random.IntN(6)))
	active := version
	if s.queue.Active != nil {
		active = s.queue.Active.Update.Version
	}
	lines := [][]string{
		{"submit", fmt.Sprint("r", line)}, {"submit", fmt.Sprint("r", line)},
		{"submit", fmt.Sprint("r", random.IntN(line+1))},
		{"submit", fmt.Sprint("r", line), "on-busy=supersede"}, {"submit", fmt.Sprint("r", line), "on-busy=fail"},
		{"submit", fmt.Sprint("r", line), "on-busy=supersede", fmt.Sprint("previewed=", s.head)},
		{"start"}, {"start"}, {"finish", active}, {"finish", version}, {"cancel", version}, {"reserve"}, {"continue"},
	}
	if s.queue.Active != nil {
		lines = append(lines, []string{"migrate", active}, []string{"migrate", active})
	}
	return lines[random.IntN(len(lines))]
}

// again is the input after Continue-As-New.
func again(in deployments.StackInput) (out deployments.StackInput) {
	data, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		panic(err)
	}
	return out
}

// ledger follows what became of each version: it waits, and is started or withdrawn, once.
type ledger struct {
	waits map[string]bool // by version, true until it is started or withdrawn
	began int             // the version that was started last
}

func (l *ledger) note(words, answer []string, q *queue) error {
	if words[0] == "migrate" { // what continues has a new version, and those behind it have, too
		l.waits[q.Queue[0].Update.Version] = true
	}
	for _, w := range q.withdrawn {
		if w.Next != "" {
			l.waits[w.Next] = true
		}
	}
	if version, ok := strings.CutPrefix(answer0(answer), "version "); ok && words[0] == "submit" {
		version, _, _ = strings.Cut(version, ",")
		if _, known := l.waits[version]; known {
			return fmt.Errorf("version %s is given out twice", version)
		}
		l.waits[version] = true
	}
	for _, w := range q.withdrawn {
		if !l.waits[w.Update.Version] {
			return fmt.Errorf("version %s is withdrawn, and did not wait", w.Update.Version)
		}
		l.waits[w.Update.Version] = false
	}
	if words[0] == "start" && answer0(answer) == "started" {
		number := q.Active.Update.Number()
		if !l.waits[q.Active.Update.Version] || number <= l.began {
			return fmt.Errorf("version %d is started after %d", number, l.began)
		}
		l.waits[q.Active.Update.Version], l.began = false, number
	}
	for version, waits := range l.waits {
		if is := slices.ContainsFunc(q.Queue, func(w deployments.QueuedUpdate) bool {
			return w.Update.Version == version
		}); is != waits {
			return fmt.Errorf("version %s waits: %v", version, is)
		}
	}
	return nil
}

func answer0(answer []string) string {
	if len(answer) == 0 {
		return ""
	}
	return answer[0]
}
