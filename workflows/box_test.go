package workflows

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/rapidtest"
)

// numbered returns messages of an epoch that contain their own numbers.
func numbered(epoch, first, n int) deployments.Messages {
	m := deployments.Messages{Epoch: epoch, First: first}
	for i := range n {
		m.Items = append(m.Items, deployments.Message{Worker: fmt.Sprint(first + i)})
	}
	return m
}

func TestMessagesComeInOrderAndOnceHoweverTheyArrive(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 12).Draw(t, "total")
		var sent []deployments.Messages
		for first := 1; first <= total; {
			n := rapid.IntRange(1, total-first+1).Draw(t, "n")
			sent = append(sent, numbered(2, first, n))
			first += n
		}
		sent = append(sent, rapid.SliceOf(rapid.SampledFrom(sent)).Draw(t, "repeats")...)
		sent = append(sent, numbered(1, 1, 3)) // of an earlier epoch
		var box inbox
		box.take(numbered(2, total+1, 0))
		var got []string
		for _, m := range rapid.Permutation(sent).Draw(t, "order") {
			for _, item := range box.take(m) {
				got = append(got, item.Worker)
			}
		}
		var want []string
		for i := range total {
			want = append(want, fmt.Sprint(i+1))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("heard %v, want %v", got, want)
		}
	})
}

func TestANewEpochDropsThePreviousOne(t *testing.T) {
	var box inbox
	box.take(numbered(1, 5, 2)) // before its turn
	if got := box.take(numbered(2, 1, 1)); len(got) != 1 || len(box.early) != 0 {
		t.Errorf("gave %v and holds %v", got, box.early)
	}
	if got := box.take(numbered(1, 1, 9)); got != nil {
		t.Errorf("gave %v of an epoch that is over", got)
	}
	if got := box.take(deployments.Messages{Items: []deployments.Message{{Worker: "w"}}}); len(got) != 1 {
		t.Errorf("held back what is not numbered: %v", got)
	}
}

func TestRepliesAreKeptUntilTheyAreAcknowledged(t *testing.T) {
	var o outbox
	o.begin(1)
	for i := range 3 {
		o.add(engine.Reply{Epoch: 1, Seq: i + 1})
	}
	o.add(engine.Reply{Epoch: 0, Seq: 9})
	poll := func(cursor int) string {
		p := deployments.Poll{Epoch: 1, Cursor: cursor}
		o.acknowledge(p)
		a := o.next(p)
		var seqs []string
		for _, r := range a.Replies {
			seqs = append(seqs, fmt.Sprint(r.Seq))
		}
		return fmt.Sprintf("%s to %d, done %t", strings.Join(seqs, ","), a.Cursor, a.Done)
	}
	for _, step := range []struct {
		what   string
		cursor int
		before func()
		want   string
	}{
		{"the first poll", 0, nil, "1,2,3 to 3, done false"},
		{"the same poll again", 0, nil, "1,2,3 to 3, done false"},
		{"after an acknowledgement", 3, func() { o.add(engine.Reply{Epoch: 1, Seq: 4}) }, "4 to 4, done false"},
		{"a poll from before", 0, nil, " to 0, done false"},
		{"the last one", 4, func() { o.ended = true }, " to 4, done true"},
	} {
		if step.before != nil {
			step.before()
		}
		if got := poll(step.cursor); got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
	}
	o.begin(2)
	if !o.ready(deployments.Poll{Epoch: 1}) || o.ready(deployments.Poll{Epoch: 2}) ||
		o.ready(deployments.Poll{Epoch: 3}) {
		t.Error("a new epoch answers the one before, and nobody else")
	}
}

func TestWhatFitsStaysUnderBothLimits(t *testing.T) {
	size := func(int) int { return 10 }
	for _, c := range []struct{ n, items, bytes, want int }{
		{0, 5, 100, 0}, {3, 5, 100, 3}, {9, 5, 100, 5}, {9, 9, 35, 3}, {9, 9, 5, 1},
	} {
		if got := fits(c.n, c.items, c.bytes, size); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestATextIsClippedAtWholeCharacters(t *testing.T) {
	for n := range 30 {
		long := strings.Repeat("x", n) + strings.Repeat("ü", 100)
		if got := clip(long, 50); len(got) > 50 || len(got) < 48 || !utf8.ValidString(got) {
			t.Errorf("%q has %d bytes", got, len(got))
		}
	}
}

func TestARunContinuesAsNewBeforeItsHistoryIsTooLarge(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		now, opened historySize
		polls       int
		want        pressure
	}{
		{historySize{100, 1000}, historySize{10, 100}, 10, pressureNone},
		{historySize{5000, 0}, historySize{10, 100}, 0, pressureSoft},
		{historySize{0, 4 * mib}, historySize{10, 100}, 0, pressureSoft},
		{historySize{}, historySize{}, 1000, pressureSoft},
		{historySize{8000, 0}, historySize{10, 100}, 0, pressureHard},
		{historySize{}, historySize{}, 1500, pressureHard},
		{historySize{40000, 0}, historySize{10, 100}, 0, pressureFull},
		{historySize{100, 32 * mib}, historySize{10, 100}, 0, pressureFull},
		{historySize{}, historySize{}, 1800, pressureFull},
		{historySize{9000, 0}, historySize{5000, 0}, 0, pressureNone},
		{historySize{10000, 0}, historySize{5000, 0}, 0, pressureSoft},
		{historySize{15000, 0}, historySize{5000, 0}, 0, pressureHard},
		{historySize{0, 9 * mib}, historySize{0, 5 * mib}, 0, pressureNone},
		{historySize{0, 10 * mib}, historySize{0, 5 * mib}, 0, pressureSoft},
		{historySize{39999, 0}, historySize{20000, 0}, 0, pressureNone},
		{historySize{40000, 32 * mib}, historySize{40000, 32 * mib}, 0, pressureFull},
	} {
		if got := pressureOf(c.now, c.opened, c.polls); got != c.want {
			t.Errorf("%+v weighs %d", c, got)
		}
	}
}
