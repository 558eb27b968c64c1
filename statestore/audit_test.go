package statestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// audited gives what the log has of an organization.
func audited(t *testing.T, s *Store, organization string) []string {
	t.Helper()
	var told []string
	err := s.Audit(t.Context(), deployments.AuditQuery{Organization: organization},
		func(e deployments.AuditEntry) error {
			told = append(told, fmt.Sprint(e.Token, " ", e.Method, " ", e.Code, " ", e.Repeated))
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return told
}

func TestTheAuditEntryIsDurableWhenTheCallerIsAnswered(t *testing.T) {
	objects := &Memory{}
	s, err := New(objects, Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	log := s.OpenAudit(slog.New(slog.DiscardHandler))
	record := func(e deployments.AuditEntry, now bool) {
		if err := log.Record(t.Context(), e, now); err != nil {
			t.Fatal(err)
		}
	}
	record(deployments.AuditEntry{Time: noon, Organization: "acme", Token: "ann", Method: "Stacks/Decrypt"}, false)
	record(deployments.AuditEntry{Time: noon.Add(time.Second), Organization: "acme", Token: "ann",
		Method: "Stacks/RemoveStack"}, true)
	record(deployments.AuditEntry{Time: noon.Add(2 * time.Second), Token: "x", Method: "Tokens/ListTokens",
		Organization: "../tokens"}, true)
	if got, want := audited(t, s, "acme"), []string{"ann Stacks/Decrypt  0",
		"ann Stacks/RemoveStack  0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := audited(t, s, deployments.AnyOrganization); len(got) != 3 || got[2] != "x Tokens/ListTokens  0" {
		t.Errorf("got %q", got)
	}
	l, err := objects.List(t.Context(), Query{Prefix: "audit/"})
	if err != nil || len(l.Keys) != 2 {
		t.Errorf("a batch is an object for each organization: %q, %v", l.Keys, err)
	}
	for _, key := range l.Keys {
		o, err := objects.Get(t.Context(), key)
		if err != nil || strings.Contains(string(o.Data), "ann") {
			t.Errorf("%s is readable, %v", key, err)
		}
	}
}

func TestManyRefusedCallsAreCountedInsteadOfWritten(t *testing.T) {
	s, _ := clocked(t)
	log := s.OpenAudit(slog.New(slog.DiscardHandler))
	for i := range 1000 {
		at := noon.Add(time.Duration(i) * time.Microsecond)
		if err := log.Record(t.Context(), deployments.AuditEntry{Time: at, Method: "m",
			Code: deployments.CodeUnauthorized}, false); err != nil {
			t.Fatal(err)
		}
	}
	last := deployments.AuditEntry{Time: noon.Add(time.Second), Token: "t", Method: "m",
		Code: deployments.CodeForbidden}
	if err := log.Record(t.Context(), last, false); err != nil {
		t.Fatal(err)
	}
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := audited(t, s, deployments.AnyOrganization)
	if len(got) != refusedPerSecond+1 || got[len(got)-1] != "t m forbidden 980" {
		t.Errorf("%d entries, the last %q", len(got), got[len(got)-1])
	}
}

// refusedBy records a refused call of a token at an organization.
func refusedBy(t *testing.T, log *AuditLog, token, organization string, at time.Duration) {
	t.Helper()
	if err := log.Record(t.Context(), deployments.AuditEntry{Time: noon.Add(at), Organization: organization,
		Token: token, Method: "m", Code: deployments.CodeForbidden}, false); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsRefusedAtAnOrganizationIsInItsLogWhateverIsRefusedElsewhere(t *testing.T) {
	s, _ := clocked(t)
	log := s.OpenAudit(slog.New(slog.DiscardHandler))
	const tries = refusedPerSecond - 1
	for i := range tries {
		for range 100 {
			refusedBy(t, log, "one", "evil", time.Duration(i))
			refusedBy(t, log, "", fmt.Sprint("none", i), time.Duration(i))
		}
		refusedBy(t, log, "one", "acme", time.Duration(i)) // the same token
		refusedBy(t, log, "two", "acme", time.Duration(i))
	}
	refusedBy(t, log, "one", "evil", time.Second)
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := audited(t, s, "acme")
	slices.Sort(got)
	if want := append(slices.Repeat([]string{"one m forbidden 0"}, tries), slices.Repeat([]string{"two m forbidden 0"},
		tries)...); !slices.Equal(got, want) {
		t.Errorf("acme's log has %d entries: %q", len(got), got)
	}
	evil := audited(t, s, "evil")
	if want := fmt.Sprint("one m forbidden ", 100*tries-refusedPerSecond); len(evil) != refusedPerSecond+1 ||
		evil[refusedPerSecond] != want {
		t.Errorf("evil's log has %d entries, the last %q, not %q", len(evil), evil[len(evil)-1], want)
	}
}

func TestEveryRefusedCallIsCountedThoughFewNamesAreRemembered(t *testing.T) {
	s, _ := clocked(t)
	log := s.OpenAudit(slog.New(slog.DiscardHandler))
	const names, calls = 3 * maxRefusers, 3
	for i := range names {
		for range calls {
			refusedBy(t, log, "", fmt.Sprint("o", i), 0)
		}
	}
	if of, uncounted := log.refusals.of.Len(), log.refusals.uncounted.Len(); of+uncounted > 2*maxRefusers {
		t.Errorf("%d tokens and %d organizations are remembered", of, uncounted)
	}
	left := 0
	for _, n := range log.refusals.uncounted.Values() {
		left += n
	}
	refusedBy(t, log, "", "", time.Second) // of no organization
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := audited(t, s, deployments.AnyOrganization)
	if want := fmt.Sprint(" m forbidden ", names*calls-refusedPerSecond-left); got[len(got)-1] != want {
		t.Errorf("the last entry is %q, not %q", got[len(got)-1], want)
	}
}

// away is a store whose writes fail.
type away struct{ Memory }

func (*away) Put(context.Context, string, []byte, Condition) (string, error) { return "", ErrTransient }

func TestAnAuditLogThatCannotBeWrittenSaysSoAndGivesItsEntriesToTheProcesssLog(t *testing.T) {
	s, err := New(&away{}, Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	log := s.OpenAudit(slog.New(slog.NewTextHandler(&text, nil)))
	err = log.Record(t.Context(), deployments.AuditEntry{Time: noon, Organization: "acme", Token: "ann",
		Method: "Stacks/RemoveStack"}, true)
	if !errors.Is(err, ErrTransient) || !strings.Contains(text.String(), "Stacks/RemoveStack") {
		t.Errorf("%v, and the log says %q", err, text.String())
	}
}

func TestADayThatIsNotKeptIsRemovedFromTheAuditLogAndAStacksRemovalLeavesIt(t *testing.T) {
	s, _ := clocked(t)
	dev := deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	log := s.OpenAudit(slog.New(slog.DiscardHandler))
	for _, at := range []time.Time{noon, noon.Add(24 * time.Hour), noon.Add(48 * time.Hour)} {
		e := deployments.AuditEntry{Time: at, Organization: "acme", Stack: "shop/dev", Token: at.Format(dayForm),
			Method: "m"}
		if err := log.Record(t.Context(), e, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.RemoveStack(t.Context(), dev, true); err != nil {
		t.Fatal(err)
	}
	if err := s.CollectAudit(t.Context(), noon.Add(24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, want := audited(t, s, "acme"), []string{"2026-01-03 m  0", "2026-01-04 m  0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestADamagedBatchHidesOnlyItself(t *testing.T) {
	objects := &Memory{}
	s, err := New(objects, Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Put(t.Context(), "audit/acme/2026-01-01/x", []byte("not sealed"), Condition{}); err != nil {
		t.Fatal(err)
	}
	e := deployments.AuditEntry{Time: noon, Organization: "acme", Token: "ann", Method: "m"}
	if err := s.OpenAudit(slog.New(slog.DiscardHandler)).Record(t.Context(), e, true); err != nil {
		t.Fatal(err)
	}
	if got := audited(t, s, "acme"); len(got) != 2 || !strings.HasPrefix(got[0], " damaged format") ||
		got[1] != "ann m  0" {
		t.Errorf("got %q", got)
	}
}
