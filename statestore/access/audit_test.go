package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore/bucket"
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
	objects := &bucket.Memory{}
	s, err := over(objects, nil)
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
	l, err := objects.List(t.Context(), bucket.Query{Prefix: "audit/"})
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
			Code: deployments.CodeUnauthorized, Refused: true}, false); err != nil {
			t.Fatal(err)
		}
	}
	last := deployments.AuditEntry{Time: noon.Add(time.Second), Token: "t", Method: "m",
		Code: deployments.CodeForbidden, Refused: true}
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

// founded has something accepted at organizations, so that the log has folders for them.
func founded(t *testing.T, log *AuditLog, organizations ...string) {
	t.Helper()
	for _, o := range organizations {
		if err := log.Record(t.Context(), deployments.AuditEntry{Time: noon.Add(-time.Hour), Organization: o,
			Token: "founder", Method: "m"}, true); err != nil {
			t.Fatal(err)
		}
	}
}

// refusedBy records a refused call of a token at an organization.
func refusedBy(t *testing.T, log *AuditLog, token, organization string, at time.Duration) {
	t.Helper()
	if err := log.Record(t.Context(), deployments.AuditEntry{Time: noon.Add(at), Organization: organization,
		Token: token, Method: "m", Code: deployments.CodeForbidden, Refused: true, Party: "rival"}, false); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsRefusedAtAnOrganizationIsInItsLogWhateverIsRefusedElsewhere(t *testing.T) {
	s, _ := clocked(t)
	log := s.OpenAudit(slog.New(slog.DiscardHandler))
	const tries = refusedPerSecond - 1
	founded(t, log, "acme", "evil")
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
	got := audited(t, s, "acme")[1:]
	slices.Sort(got)
	if want := append(slices.Repeat([]string{"one m forbidden 0"}, tries), slices.Repeat([]string{"two m forbidden 0"},
		tries)...); !slices.Equal(got, want) {
		t.Errorf("acme's log has %d entries: %q", len(got), got)
	}
	evil := audited(t, s, "evil")[1:]
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
type away struct{ bucket.Memory }

func (*away) Put(context.Context, string, []byte, bucket.Condition) (string, error) {
	return "", bucket.ErrTransient
}

func TestAnAuditLogThatCannotBeWrittenSaysSoAndGivesItsEntriesToTheProcesssLog(t *testing.T) {
	s, err := over(&away{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	failed := 0
	log := s.OpenAudit(slog.New(slog.NewTextHandler(&text, nil)))
	log.Failed = func(entries int) { failed += entries }
	err = log.Record(t.Context(), deployments.AuditEntry{Time: noon, Organization: "acme", Token: "ann",
		Method: "Stacks/RemoveStack"}, true)
	if !errors.Is(err, bucket.ErrTransient) || failed != 1 {
		t.Errorf("%v, and %d are counted", err, failed)
	}
	_, entry, _ := strings.Cut(text.String(), "entry=")
	entry, err = strconv.Unquote(strings.TrimSpace(entry))
	var kept deployments.AuditEntry
	if err = errors.Join(err, json.Unmarshal([]byte(entry), &kept)); err != nil || kept.Method != "Stacks/RemoveStack" ||
		kept.Token != "ann" || !kept.Time.Equal(noon) {
		t.Errorf("%v, and the log says %q", err, text.String())
	}
}

func TestADamagedBatchHidesOnlyItself(t *testing.T) {
	objects := &bucket.Memory{}
	s, err := over(objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = objects.Put(t.Context(), "audit/acme/2026-01-01/x", []byte("not sealed"), bucket.Condition{})
	if err != nil {
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

// slowly is a store in memory of which one organization's log is written when its gate opens.
type slowly struct {
	bucket.Memory
	folder string
	gate   chan struct{}
}

func (s *slowly) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if strings.HasPrefix(key, AuditFolder+s.folder+"/") {
		<-s.gate
	}
	return s.Memory.Put(ctx, key, data, c)
}

func TestAnAcceptedChangeWaitsForNoOtherFolderAndNotForWhatIsRefused(t *testing.T) {
	for _, slow := range []string{"rival", nobodys} {
		objects := &slowly{folder: slow, gate: make(chan struct{})}
		s, err := over(objects, nil)
		if err != nil {
			t.Fatal(err)
		}
		log := s.OpenAudit(slog.New(slog.DiscardHandler))
		change := func(organization string) error {
			return log.Record(t.Context(), deployments.AuditEntry{Time: noon, Organization: organization, Token: "t",
				Method: "m"}, true)
		}
		refusedBy(t, log, "one", "none", 0)
		flushed, rivals := make(chan error, 1), make(chan error, 1)
		go func() { flushed <- log.Flush(t.Context()) }()
		go func() { rivals <- change("rival") }()
		if err := change("acme"); err != nil {
			t.Error(err)
		}
		close(objects.gate)
		if err := errors.Join(<-flushed, <-rivals); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatIsRefusedAtAnOrganizationThatDoesNotExistMakesNoFolder(t *testing.T) {
	objects := &bucket.Memory{}
	s, err := over(objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := s.OpenAudit(slog.New(slog.DiscardHandler))
	founded(t, log, "acme")
	for i := range 1000 {
		refusedBy(t, log, "one", fmt.Sprint("none", i), 0)
		refusedBy(t, log, fmt.Sprint("token", i), "acme", 0) // tokens are free
	}
	refusedBy(t, log, "one", "acme", time.Second)
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := objects.List(t.Context(), bucket.Query{Prefix: AuditFolder, Fold: true})
	if want := []string{AuditFolder + nobodys + "/", AuditFolder + "acme/"}; err != nil || len(l.Keys) != len(want) ||
		!slices.Contains(l.Keys, want[0]) || !slices.Contains(l.Keys, want[1]) {
		t.Errorf("the folders are %q, %v", l.Keys, err)
	}
	if got := audited(t, s, deployments.AnyOrganization); len(got) != 1+refusedOfParty+1 {
		t.Errorf("%d entries were written", len(got))
	}
}

// TestAFullLogCountsWhatIsRefusedAndHasWhatIsAcceptedWait fills it while nothing can be written.
func TestAFullLogCountsWhatIsRefusedAndHasWhatIsAcceptedWait(t *testing.T) {
	objects := &slowly{folder: "acme", gate: make(chan struct{})}
	s, err := over(objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := s.OpenAudit(slog.New(slog.DiscardHandler))
	const changes = maxPending/(7<<10) + 100
	errs := make(chan error, changes)
	for range changes {
		go func() {
			text := strings.Repeat("x", 2<<10)
			errs <- log.Record(t.Context(), deployments.AuditEntry{Time: noon, Organization: "acme", Token: "ann",
				Method: "m", Subject: text, Error: text, Peer: text, Stack: text, Identity: text, Member: text, Request: text,
			}, true)
		}()
	}
	waittest.Until(t, "the log is full", func() bool {
		free := log.room.TryAcquire(1)
		if free {
			log.room.Release(1)
		}
		return !free
	})
	refusedBy(t, log, "one", "acme", 0)
	close(objects.gate)
	for range changes {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	refusedBy(t, log, "one", "acme", time.Second)
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := audited(t, s, "acme")
	counted := 0
	for _, line := range got {
		if strings.HasSuffix(line, " 1") {
			counted++
		}
	}
	if len(got) != changes+1 || counted != 1 {
		t.Errorf("%d of %d entries were written, and %d count the one that was not", len(got), changes+1, counted)
	}
}

// TestALargeCallMakesASmallEntryAndALargeLogIsReadInPages writes what a caller has made long.
func TestALargeCallMakesASmallEntryAndALargeLogIsReadInPages(t *testing.T) {
	objects := &bucket.Memory{}
	s, err := over(objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := s.OpenAudit(slog.New(slog.DiscardHandler))
	long := strings.Repeat("<", 1<<20)
	const entries = 2000
	for i := range entries {
		if err := log.Record(t.Context(), deployments.AuditEntry{Time: noon.Add(time.Duration(i)), Organization: "acme",
			Token: "ann", Method: long, Subject: long, Stack: long, Error: long, Peer: long}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := objects.List(t.Context(), bucket.Query{Prefix: AuditFolder})
	if err != nil || len(l.Keys) < 10 {
		t.Errorf("it is in %d objects, %v", len(l.Keys), err)
	}
	for _, key := range l.Keys {
		if o, err := objects.Get(t.Context(), key); err != nil || len(o.Data) > 2*maxBatch {
			t.Errorf("an object has %d bytes, %v", len(o.Data), err)
		}
	}
	const pool = 64 << 20
	claim := mempool.New(pool).Claim("acme", nil)
	defer claim.Release()
	seen := 0
	err = s.Audit(mempool.With(t.Context(), claim, time.Minute), deployments.AuditQuery{Organization: "acme"},
		func(e deployments.AuditEntry) error {
			if seen++; e.Size() > 8<<10 {
				t.Fatalf("an entry has %d bytes", e.Size())
			}
			return nil
		})
	if err != nil || seen != entries {
		t.Errorf("%d entries were read, %v", seen, err)
	}
	if err := claim.Take(t.Context(), pool, time.Second); err != nil {
		t.Errorf("what was read still has memory: %v", err)
	}
}
