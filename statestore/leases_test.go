package statestore_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/deployctl/deployctl/statestore/stacksecrets"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// leasing is a store with one stack, whose update a client executes.
type leasing struct {
	*testing.T
	store *statestore.Store
	now   time.Time
}

func newLeasing(t *testing.T) *leasing {
	t.Helper()
	return newLeasingOn(t, &bucket.Memory{})
}

func newLeasingOn(t *testing.T, objects bucket.Objects) *leasing {
	t.Helper()
	l := &leasing{T: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	l.store = newLeasingAgain(l, objects)
	l.ok(l.store.CreateStack(t.Context(), dev, nil))
	return l
}

// newLeasingAgain returns what another server has.
func newLeasingAgain(l *leasing, objects bucket.Objects) *statestore.Store {
	l.Helper()
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32),
		Now: func() time.Time { return l.now }})
	l.ok(err)
	return store
}

func (l *leasing) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// begin claims the stack for an update.
func (l *leasing) begin(version string) deployments.Leased {
	l.Helper()
	u := deployments.UpdateName{StackName: dev, Version: version}
	claim, err := l.store.Claim(l.Context(), statestore.Claimant{Update: u, Writer: leases.Writer})
	l.ok(err)
	return deployments.Leased{Update: u, ID: "id", Fence: claim.Fence, Expires: l.now.Add(time.Minute)}
}

// resourceJSON is a resource with a field that this release does not know.
func resourceJSON(name string) string {
	return fmt.Sprintf(`{"urn":"urn:pulumi:dev::web::t:m:T::%s","custom":false,"type":"t:m:T","later":[1]}`, name)
}

// state describes the newest state by the names of its resources.
func (l *leasing) state() string {
	l.Helper()
	d, err := l.store.Export(l.Context(), statestore.Exchange{Stack: dev}, 0, false)
	l.ok(err)
	var deployment struct {
		Resources []struct {
			URN   string
			Later []int
		}
		Pending []any `json:"pending_operations"`
	}
	l.ok(json.Unmarshal(d.Deployment, &deployment))
	var names []string
	for _, r := range deployment.Resources {
		if len(r.Later) != 1 {
			l.Errorf("%s has lost a field", r.URN)
		}
		names = append(names, r.URN[strings.LastIndex(r.URN, "::")+2:])
	}
	return fmt.Sprintf("%s +%d", strings.Join(names, " "), len(deployment.Pending))
}

func (l *leasing) forbidden(err error) {
	l.Helper()
	if deployments.CodeOf(err) != deployments.CodeForbidden || err == nil {
		l.Errorf("it is answered %v", err)
	}
}

func TestTheEndOfALeaseCommitsTheJournalAndNothingLater(t *testing.T) {
	l := newLeasing(t)
	lease := l.begin("1")
	l.ok(l.store.Leases.WriteJournal(t.Context(), lease, json.RawMessage(
		`[{"sequenceID":2,"kind":1,"operationID":1,"state":`+resourceJSON("a")+`}]`)))
	l.ok(l.store.Leases.WriteJournal(t.Context(), lease, json.RawMessage(
		`[{"sequenceID":1,"kind":0,"operationID":1,"operation":{"type":"creating","resource":`+resourceJSON("a")+`}}]`)))
	l.ok(l.store.Leases.WriteJournal(t.Context(), lease, json.RawMessage(
		`[{"sequenceID":3,"kind":0,"operationID":2,"operation":{"type":"creating","resource":`+resourceJSON("b")+`}}]`)))
	for range 2 {
		w, err := l.store.FinishLease(t.Context(), lease.Update, "")
		l.ok(err)
		if w.Version != 1 || w.Resources != 1 {
			t.Errorf("it has written %+v", w)
		}
	}
	l.forbidden(l.store.Leases.WriteJournal(t.Context(), lease, json.RawMessage(
		`[{"sequenceID":4,"kind":1,"operationID":2,"state":`+resourceJSON("b")+`}]`)))
	if got := l.state(); got != "a +1" {
		t.Errorf("the state is %q", got)
	}
}

// gated is objects whose journals are written only once the gate is closed.
type gated struct {
	bucket.Memory
	gate    chan struct{}
	journal atomic.Int32
}

func (g *gated) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if strings.Contains(key, "/journal/") {
		g.journal.Add(1)
		<-g.gate
	}
	return g.Memory.Put(ctx, key, data, c)
}

func TestJournalEntriesThatArriveTogetherAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := &gated{gate: make(chan struct{})}
		l := newLeasingOn(t, objects)
		lease := l.begin("1")
		const burst = 20
		var answers sync.WaitGroup
		for i := range burst {
			answers.Go(func() {
				entry := fmt.Sprintf(`[{"sequenceID":%d,"kind":0,"operationID":%d,"operation":{"type":"creating",`+
					`"resource":%s}},{"sequenceID":%d,"kind":1,"operationID":%d,"state":%s}]`,
					2*i, i, resourceJSON(fmt.Sprint("r", i)), 2*i+1, i, resourceJSON(fmt.Sprint("r", i)))
				if err := l.store.Leases.WriteJournal(t.Context(), lease, json.RawMessage(entry)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := objects.journal.Load(); n != 1 {
			t.Errorf("%d objects are being written", n)
		}
		close(objects.gate)
		answers.Wait()
		if n := objects.journal.Load(); n != 2 {
			t.Errorf("%d objects were written", n)
		}
		w, err := l.store.FinishLease(t.Context(), lease.Update, "")
		l.ok(err)
		if w.Resources != burst {
			t.Errorf("it has written %+v", w)
		}
	})
}

// Each acknowledged entry is in the state, and nothing after the end is acknowledged, whichever of several servers a
// client writes to.
func TestAJournalOfSeveralServersHasWhatWasAcknowledged(t *testing.T) {
	for range 50 {
		objects := &bucket.Memory{}
		l := newLeasingOn(t, objects)
		lease := l.begin("1")
		var acknowledged atomic.Int32
		var writers sync.WaitGroup
		const servers, each = 3, 20
		for server := range servers {
			other := newLeasingAgain(l, objects)
			for i := range each {
				writers.Go(func() {
					n := server*each + i
					name := fmt.Sprint("r", n)
					err := other.Leases.WriteJournal(t.Context(), lease, json.RawMessage(fmt.Sprintf(
						`[{"sequenceID":%d,"kind":0,"operationID":%d,"operation":{"type":"creating","resource":%s}},`+
							`{"sequenceID":%d,"kind":1,"operationID":%d,"state":%s}]`,
						2*n, n, resourceJSON(name), 2*n+1, n, resourceJSON(name))))
					if err == nil {
						acknowledged.Add(1)
					} else if deployments.CodeOf(err) != deployments.CodeForbidden {
						t.Error(err)
					}
				})
			}
		}
		w, err := l.store.FinishLease(t.Context(), lease.Update, "")
		l.ok(err)
		writers.Wait()
		if int(acknowledged.Load()) != w.Resources {
			t.Fatalf("%d writes were acknowledged, %d resources are in the state", acknowledged.Load(), w.Resources)
		}
		l.store.Sweep(t.Context(), dev, 1)
		l.forbidden(newLeasingAgain(l, objects).Leases.WriteJournal(t.Context(), lease, json.RawMessage(
			`[{"sequenceID":1000,"kind":1,"operationID":1000,"state":`+resourceJSON("late")+`}]`)))
	}
}

// What a client sends again, alone, does not replace what was stored with it.
func TestRepeatedJournalEntriesLoseNoOthers(t *testing.T) {
	l := newLeasing(t)
	lease := l.begin("1")
	begin := `{"sequenceID":1,"kind":0,"operationID":1,"operation":{"type":"creating","resource":` + resourceJSON("a") + `}}`
	end := `{"sequenceID":2,"kind":1,"operationID":1,"state":` + resourceJSON("a") + `}`
	l.ok(l.store.Leases.WriteJournal(t.Context(), lease, json.RawMessage("["+begin+","+end+"]")))
	l.ok(l.store.Leases.WriteJournal(t.Context(), lease, json.RawMessage("["+begin+"]")))
	_, err := l.store.FinishLease(t.Context(), lease.Update, "")
	l.ok(err)
	if got := l.state(); got != "a +0" {
		t.Errorf("the state is %q", got)
	}
}

func TestAWriteAfterTheEndOfItsLeaseNeverMovesTheHead(t *testing.T) {
	l := newLeasing(t)
	dead := l.begin("1")
	l.ok(l.store.Leases.WriteSnapshot(t.Context(), dead, 1, whole("a")))
	_, err := l.store.FinishLease(t.Context(), dead.Update, "")
	l.ok(err)
	next := l.begin("2")
	l.forbidden(l.store.Leases.WriteSnapshot(t.Context(), dead, 2, whole("a", "late")))
	l.forbidden(l.store.Leases.WriteSnapshot(t.Context(), dead, 0, whole("a", "late")))
	l.ok(l.store.Leases.WriteSnapshot(t.Context(), next, 1, whole("a", "b")))
	forged := next
	forged.Fence--
	l.forbidden(l.store.Leases.WriteSnapshot(t.Context(), forged, 2, whole("forged")))
	l.ok(l.store.Leases.WriteSnapshot(t.Context(), next, 3, whole("a", "b")))
	_, err = l.store.FinishLease(t.Context(), next.Update, "")
	l.ok(err)
	if got := l.state(); got != "a b +0" {
		t.Errorf("the state is %q", got)
	}
}

// whole returns a deployment with these resources.
func whole(names ...string) []byte {
	var resources []string
	for _, name := range names {
		resources = append(resources, resourceJSON(name))
	}
	return []byte(`{"version":3,"deployment":{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},` +
		`"metadata":{},"resources":[` + strings.Join(resources, ",") + `]}}`)
}

func TestSnapshotsAreChangedBySequenceAndDigest(t *testing.T) {
	l := newLeasing(t)
	lease := l.begin("1")
	from, to := whole("a"), whole("a", "b")
	at := strings.Index(string(from), "]}}")
	sum := sha256.Sum256(to)
	patch := deployments.SnapshotPatch{Sequence: 2, Digest: hex.EncodeToString(sum[:]),
		Edits: []deployments.TextEdit{{From: at, To: at, Text: "," + resourceJSON("b")}}}
	err := l.store.Leases.PatchSnapshot(t.Context(), lease, patch)
	if deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("without a deployment it is answered %v", err)
	}
	l.ok(l.store.Leases.WriteSnapshot(t.Context(), lease, 1, from))
	for range 2 { // a repeated write has no effect
		l.ok(l.store.Leases.PatchSnapshot(t.Context(), lease, patch))
	}
	l.ok(l.store.Leases.WriteSnapshot(t.Context(), lease, 1, whole("older")))
	for _, wrong := range []deployments.TextEdit{{From: -1}, {From: 5, To: 4}, {To: 1 << 20}} {
		err := l.store.Leases.PatchSnapshot(t.Context(), lease, deployments.SnapshotPatch{Sequence: 3, Digest: patch.Digest,
			Edits: []deployments.TextEdit{wrong}})
		if deployments.CodeOf(err) != deployments.CodeConflict {
			t.Errorf("%+v is answered %v", wrong, err)
		}
	}
	_, err = l.store.FinishLease(t.Context(), lease.Update, "")
	l.ok(err)
	if got := l.state(); got != "a b +0" {
		t.Errorf("the state is %q", got)
	}
}

func TestADeploymentThatCannotBeAStateIsRejectedWhenItIsWritten(t *testing.T) {
	l := newLeasing(t)
	lease := l.begin("1")
	good := string(whole("a"))
	l.ok(l.store.Leases.WriteSnapshot(t.Context(), lease, 1, []byte(good)))
	for name, bad := range map[string]string{
		"a version that is unknown": strings.Replace(good, `"version":3`, `"version":99`, 1),
		"no version":                strings.Replace(good, `"version":3,`, ``, 1),
		"a feature that is unknown": strings.Replace(good, `"version":3`, `"version":4,"features":["new"]`, 1),
		"no deployment":             `{"version":3}`,
		"a deployment that is null": `{"version":3,"deployment":null}`,
		"a resource that is null":   strings.Replace(good, `"resources":[`, `"resources":[null,`, 1),
		"a URN that is none":        strings.Replace(good, "urn:pulumi:", "", 1),
		"a resource without a type": strings.Replace(good, `"type":"t:m:T",`, "", 1),
		"an operation that is unknown": strings.Replace(good, `"metadata"`, `"pending_operations":[{"type":"x","resource":`+
			resourceJSON("b")+`}],"metadata"`, 1),
		"no JSON": "{",
	} {
		written := l.store.Leases.WriteSnapshot(t.Context(), lease, 2, []byte(bad))
		sum := sha256.Sum256([]byte(bad))
		patched := l.store.Leases.PatchSnapshot(t.Context(), lease, deployments.SnapshotPatch{Sequence: 2,
			Digest: hex.EncodeToString(sum[:]), Edits: []deployments.TextEdit{{To: len(good), Text: bad}}})
		for _, err := range []error{written, patched} {
			if deployments.CodeOf(err) != deployments.CodeInvalid {
				t.Errorf("%s is answered %v", name, err)
			}
		}
	}
	_, err := l.store.FinishLease(t.Context(), lease.Update, "")
	l.ok(err)
	if got := l.state(); got != "a +0" {
		t.Errorf("the state is %q", got)
	}
}

func TestAJournalEntryThatCannotBePartOfAStateIsRejectedWhenItIsWritten(t *testing.T) {
	state := func(fields string) string {
		return `[{"sequenceID":2,"kind":1,"operationID":1,"state":{` + fields + `}}]`
	}
	l := newLeasing(t)
	lease := l.begin("1")
	l.ok(l.store.Leases.WriteJournal(t.Context(), lease, json.RawMessage(
		`[{"sequenceID":1,"kind":1,"operationID":1,"state":`+resourceJSON("a")+`}]`)))
	for name, entries := range map[string]string{
		"no array":                 `{}`,
		"no JSON":                  `[`,
		"a kind of another type":   `[{"sequenceID":2,"kind":"1"}]`,
		"a number of another type": `[{"sequenceID":"2","kind":3}]`,
		"a number that is none":    `[{"sequenceID":-2,"kind":3}]`,
		"a resource that is null":  `[{"sequenceID":2,"kind":5,"newSnapshot":{"resources":[null]}}]`,
		"a URN that is none":       state(`"urn":"u","type":"t:m:T"`),
		"aliases that are none":    state(`"urn":"urn:pulumi:dev::web::t:m:T::a","type":"t:m:T","aliases":7`),
		"a field of another type":  state(`"urn":"urn:pulumi:dev::web::t:m:T::a","type":"t:m:T","protect":"yes"`),
		"another stack":            state(`"urn":"urn:pulumi:other::web::t:m:T::a","type":"t:m:T"`),
		"an unknown operation":     `[{"sequenceID":2,"kind":0,"operation":{"type":"x","resource":` + resourceJSON("a") + `}}]`,
		"an operation of no type":  `[{"sequenceID":2,"kind":0,"operation":{"type":"creating","resource":{"urn":"u","type":"t"}}}]`,
		"a seed that is no base64": `[{"sequenceID":2,"kind":0,"operation":{"type":"creating","seed":7,"resource":` + resourceJSON("a") + `}}]`,
	} {
		if err := l.store.Leases.WriteJournal(t.Context(), lease, json.RawMessage(entries)); deployments.CodeOf(err) !=
			deployments.CodeInvalid {
			t.Errorf("%s is answered %v", name, err)
		}
	}
	_, err := l.store.FinishLease(t.Context(), lease.Update, "")
	l.ok(err)
	if got := l.state(); got != "a +0" {
		t.Errorf("the state is %q", got)
	}
}

func TestAnUpdateThatWroteNothingLeavesTheStateAsItIs(t *testing.T) {
	l := newLeasing(t)
	lease := l.begin("1")
	w, err := l.store.FinishLease(t.Context(), lease.Update, "")
	l.ok(err)
	h, err := l.store.Head(t.Context(), dev)
	l.ok(err)
	if w.Version != 0 || h.Version != 0 || h.Active != nil {
		t.Errorf("it has written %+v, and the head is %+v", w, h)
	}
}

func TestTheTokenOfALeaseIsReadByItsServiceOnly(t *testing.T) {
	l := newLeasing(t)
	lease := l.begin("1")
	got, err := l.store.Leases.LeaseOf(l.store.Leases.LeaseToken(lease))
	if err != nil || got.Update != lease.Update || got.Fence != lease.Fence {
		t.Errorf("it is %+v, %v", got, err)
	}
	other, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: []byte(strings.Repeat("x", 32))})
	l.ok(err)
	for _, text := range []string{"", "x", other.Leases.LeaseToken(lease), l.store.Leases.LeaseToken(lease) + "A"} {
		if _, err := l.store.Leases.LeaseOf(text); deployments.CodeOf(err) != deployments.CodeUnauthorized {
			t.Errorf("%q is answered %v", text, err)
		}
	}
	l.now = l.now.Add(time.Hour)
	_, err = l.store.Leases.LeaseOf(l.store.Leases.LeaseToken(lease))
	l.forbidden(err)
}

func TestTheProviderOfAClientsDeploymentIsNamedByTheStacksIdentity(t *testing.T) {
	l := newLeasing(t)
	sealed, err := l.store.Secrets.Encrypt(t.Context(), dev, []string{`"hush"`})
	l.ok(err)
	for owner, readable := range map[string]bool{dev.Organization: true, "other": false} {
		deployment := fmt.Sprintf(`{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"metadata":{},
			"secrets_providers":{"type":"service","state":{"url":"http://x","owner":%q,"project":"web","stack":"dev"}},
			"resources":[{"urn":"urn:pulumi:dev::web::t:m:T::a","type":"t:m:T","outputs":{"s":{
			"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","ciphertext":%q}}}]}`, owner, sealed[0])
		_, err := l.store.ImportAsIs(t.Context(), statestore.Exchange{Stack: dev}, apitype.UntypedDeployment{Version: 3,
			Deployment: json.RawMessage(deployment)})
		l.ok(err)
		plain, err := l.store.Export(t.Context(), statestore.Exchange{Stack: dev}, 0, true)
		if shown := err == nil && strings.Contains(string(plain.Deployment), "hush"); shown != readable {
			t.Errorf("a deployment of %s is read as %s, %v", owner, plain.Deployment, err)
		}
	}
}

func TestCiphertextsOfEarlierReleasesAreRead(t *testing.T) {
	l := newLeasing(t)
	sealed, err := l.store.Secrets.Encrypt(t.Context(), dev, []string{"hush"})
	l.ok(err)
	text := `{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","ciphertext":"`
	if got := string(stacksecrets.WithBase64([]byte(text + "v1:bm9uY2U=:dGV4dA==\"}"))); got !=
		text+"djE6Ym05dVkyVT06ZEdWNGRBPT0=\"}" {
		t.Errorf("it becomes %s", got)
	}
	plain, err := l.store.Secrets.Decrypt(t.Context(), dev, sealed)
	if err != nil || plain[0] != "hush" {
		t.Errorf("it is decrypted as %q, %v", plain, err)
	}
}

func TestWhatAClientWritesOfAnotherStackIsNeverTheState(t *testing.T) {
	l := newLeasing(t)
	foreign := strings.Replace(resourceJSON("b"), "urn:pulumi:dev::web::", "urn:pulumi:prod::web::", 1)
	begin := func(resource string) json.RawMessage {
		return json.RawMessage(`[{"sequenceID":1,"kind":0,"operationID":1,"operation":{"type":"creating","resource":` +
			resource + `}}]`)
	}
	for name, write := range map[string]func(deployments.Leased) error{
		"a resource": func(lease deployments.Leased) error {
			return l.store.Leases.WriteSnapshot(t.Context(), lease, 1, []byte(strings.Replace(string(whole("a", "b")),
				resourceJSON("b"), foreign, 1)))
		},
		"a pending operation": func(lease deployments.Leased) error {
			return l.store.Leases.WriteJournal(t.Context(), lease, begin(foreign))
		},
	} {
		h, err := l.store.Head(t.Context(), dev)
		l.ok(err)
		lease := l.begin(fmt.Sprint(h.Next))
		if err := write(lease); deployments.CodeOf(err) != deployments.CodeInvalid ||
			!strings.Contains(err.Error(), "another stack") {
			t.Errorf("%s is answered %v", name, err)
		}
		_, err = l.store.FinishLease(t.Context(), lease.Update, "")
		l.ok(err)
		if h, err = l.store.Head(t.Context(), dev); err != nil || h.Version != 0 || h.Active != nil {
			t.Errorf("%s: the head is %+v, %v", name, h, err)
		}
	}
	_, err := l.store.ImportAsIs(t.Context(), statestore.Exchange{Stack: dev}, apitype.UntypedDeployment{Version: 3,
		Deployment: json.RawMessage(`{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"metadata":{},
			"resources":[],"pending_operations":[{"type":"creating","resource":` + foreign + `}]}`)})
	if deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("a pending operation is imported: %v", err)
	}
}
