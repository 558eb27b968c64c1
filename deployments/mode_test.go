package deployments

import (
	"strings"
	"testing"
	"time"
)

func TestAModeHasAReasonAndAnEndThatIsNotFar(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	good := Mode{Kind: ModeMaintenance, Reason: "why", Until: now.Add(time.Hour)}
	for name, c := range map[string]struct {
		change func(*Mode)
		says   string
	}{
		"a good one":            {func(*Mode) {}, ""},
		"none":                  {func(m *Mode) { *m = Mode{} }, ""},
		"an unknown kind":       {func(m *Mode) { m.Kind = "holiday" }, "maintenance or read-only"},
		"without a reason":      {func(m *Mode) { m.Reason = "" }, "--reason"},
		"a long reason":         {func(m *Mode) { m.Reason = strings.Repeat("x", 1000) }, "shorten it"},
		"a reason of bytes":     {func(m *Mode) { m.Reason = "\xff" }, "UTF-8"},
		"an end that has been":  {func(m *Mode) { m.Until = now }, "later time"},
		"without an end":        {func(m *Mode) { m.Until = time.Time{} }, "later time"},
		"an end in a year":      {func(m *Mode) { m.Until = now.AddDate(1, 0, 0) }, "30 days at most"},
		"an end in thirty days": {func(m *Mode) { m.Until = now.Add(LongestMode) }, ""},
	} {
		m := good
		c.change(&m)
		err := m.Validate(now)
		if (err == nil) != (c.says == "") || err != nil && (CodeOf(err) != CodeInvalid ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatAModeRefuses(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for kind, refused := range map[ModeKind][]bool{ // what reads, writes and begins
		"": {false, false, false}, ModeMaintenance: {false, false, true}, ModeReadOnly: {false, true, true},
	} {
		m := Mode{Kind: kind, Reason: "the bucket moves", Until: now.Add(time.Hour)}
		for work, want := range refused {
			err := m.Refuse(Work(work), now)
			if (err != nil) != want || err != nil && (CodeOf(err) != CodeMaintenance ||
				!strings.Contains(err.Error(), "2026-05-01 13:00:00 UTC (the bucket moves)")) {
				t.Errorf("%q and work %d: %v", kind, work, err)
			}
			if err := m.Refuse(Work(work), m.Until); err != nil {
				t.Errorf("%q and work %d, at its end: %v", kind, work, err)
			}
		}
	}
}
