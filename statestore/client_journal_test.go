package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/pack"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/deployctl/deployctl/statestore/stackobjects"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// journaling is a store with a stack whose update a client executes.
type journaling struct {
	*testing.T
	objects *fetches
	store   *Store
	lease   deployments.Leased
}

// fetches are objects that count the reads of journals, and do something before the write of an object.
type fetches struct {
	bucket.Memory
	journal atomic.Int64
	states  atomic.Int64      // reads of checkpoints
	before  map[string]func() // by the end of the object's key; each once
}

func (f *fetches) Put(ctx context.Context, key string, data []byte, cond bucket.Condition) (string, error) {
	end := path.Base(key)
	if do := f.before[end]; do != nil {
		delete(f.before, end)
		do()
	}
	return f.Memory.Put(ctx, key, data, cond)
}

func (f *fetches) Get(ctx context.Context, key string) (bucket.Object, error) {
	if strings.Contains(key, "/journal/") {
		f.journal.Add(1)
	}
	if strings.Contains(key, "/checkpoints/") {
		f.states.Add(1)
	}
	return f.Memory.Get(ctx, key)
}

func newJournaling(t *testing.T) *journaling {
	t.Helper()
	j := &journaling{T: t, objects: &fetches{}}
	j.store = j.server()
	j.ok(j.store.Check(t.Context()))
	name := deployments.StackName{Organization: "acme", Project: "web", Stack: "dev"}
	j.ok(j.store.CreateStack(t.Context(), name, nil))
	u := deployments.UpdateName{StackName: name, Version: "1"}
	claim, err := j.store.Claim(t.Context(), Claimant{Update: u, Writer: leases.Writer})
	j.ok(err)
	j.lease = deployments.Leased{Update: u, Fence: claim.Fence}
	return j
}

// server returns what another server has.
func (j *journaling) server() *Store {
	j.Helper()
	store, err := New(j.objects, Options{Master: make([]byte, 32)})
	j.ok(err)
	return store
}

func (j *journaling) ok(err error) {
	j.Helper()
	if err != nil {
		j.Fatal(err)
	}
}

// made returns an entry that makes a resource, with a value of a length.
func made(n, length int) string {
	return fmt.Sprintf(`{"sequenceID":%d,"kind":1,"operationID":%d,"state":{"urn":"urn:pulumi:dev::web::t:m:T::r%d",`+
		`"type":"t:m:T","outputs":{"v":%q}}}`, n, n, n, strings.Repeat("v", length))
}

// put writes the object of a number as it is, whatever it has.
func (j *journaling) put(n int, size updates.LogSize, array string) {
	j.Helper()
	j.putLog(j.lease.Update, leases.JournalKey(j.lease.Update, n), size, array)
}

func (j *journaling) putLog(u deployments.UpdateName, key string, size updates.LogSize, array string) {
	j.Helper()
	line, err := json.Marshal(updates.LogLine{LogSize: size})
	j.ok(err)
	j.ok(j.store.stacks.Put(j.Context(), u.StackName, key, []byte(string(line)+"\n"+array)))
}

// resources returns the names of the resources of the newest state.
func (j *journaling) resources() (names []string) {
	j.Helper()
	d, err := j.store.Export(j.Context(), Exchange{Stack: j.lease.Update.StackName}, 0, false)
	j.ok(err)
	var deployment struct{ Resources []struct{ URN string } }
	j.ok(json.Unmarshal(d.Deployment, &deployment))
	for _, r := range deployment.Resources {
		names = append(names, r.URN[strings.LastIndex(r.URN, "::")+2:])
	}
	return names
}

// TestAJournalIsReplayedUpToWhatCannotBeReplayed writes what is rejected at the door.
func TestAJournalIsReplayedUpToWhatCannotBeReplayed(t *testing.T) {
	rebuilds := ""
	for n := range 20 {
		rebuilds += fmt.Sprintf(`{"sequenceID":%d,"kind":7},`, 3+n)
	}
	for name, bad := range map[string]string{
		"a field of another type": `{"sequenceID":3,"kind":1,"operationID":3,"state":{"urn":"urn:pulumi:dev::web::t:m:T::b",` +
			`"type":"t:m:T","protect":"yes"}}`,
		"an entry that is none":        `{"sequenceID":3,"kind":"x"}`,
		"a resource of another stack":  `{"sequenceID":3,"kind":1,"state":{"urn":"urn:pulumi:x::web::t:m:T::b","type":"t:m:T"}}`,
		"the base rebuilt without end": strings.TrimSuffix(rebuilds, ","),
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournaling(t)
			j.put(1, updates.LogSize{}, `[`+bad+`,`+made(1, 1)+`]`)
			j.put(2, updates.LogSize{}, `[`+made(100, 1)+`,`+made(2, 1)+`]`)
			for range 2 { // a repeated end has the same answer
				w, err := j.store.FinishLease(t.Context(), j.lease.Update, "")
				if deployments.CodeOf(err) != deployments.CodeInvalid {
					t.Errorf("it ends with %v", err)
				}
				if w.Version != 1 {
					t.Errorf("it has written %+v", w)
				}
			}
			h, err := j.store.Head(t.Context(), j.lease.Update.StackName)
			j.ok(err)
			if h.Active != nil {
				t.Errorf("%+v has the stack", h.Active)
			}
			if got := j.resources(); len(got) < 2 || got[0] != "r1" || got[1] != "r2" {
				t.Errorf("the state has %v", got)
			}
		})
	}
}

// TestAStateThatAJournalMakesTooLargeEndsItsUpdate has one entry with as many resources as a client may write, and two.
func TestAStateThatAJournalMakesTooLargeEndsItsUpdate(t *testing.T) {
	var all strings.Builder
	for n := range deployments.MaxClientResources {
		fmt.Fprintf(&all, `,{"urn":"urn:pulumi:dev::web::t:m:T::m%d","type":"t:m:T"}`, n)
	}
	j := newJournaling(t)
	j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, json.RawMessage(`[{"sequenceID":0,"kind":5,"newSnapshot":{"resources":[`+
		all.String()[1:]+`]}},`+made(1, 1)+`,`+made(2, 1)+`]`)))
	w, err := j.store.FinishLease(t.Context(), j.lease.Update, "")
	if !errors.Is(err, deployments.ErrTooLarge) || w.Resources != deployments.MaxClientResources+1 {
		t.Errorf("it has written %+v, %v", w, err)
	}
}

// TestALargeJournalIsReplayedInOrderWithFewReads replays more than is kept in memory, whose entries come nearly in
// order.
func TestALargeJournalIsReplayedInOrderWithFewReads(t *testing.T) {
	j := newJournaling(t)
	const objects, each, length = 40, 4, 1 << 14
	numbers := make([]int, objects*each)
	for n := range numbers {
		numbers[n] = n + 1
	}
	random := rand.New(rand.NewPCG(1, 2))
	for at := 0; at+3*each <= len(numbers); at += 3 * each {
		random.Shuffle(3*each, func(a, b int) { numbers[at+a], numbers[at+b] = numbers[at+b], numbers[at+a] })
	}
	for n := range objects {
		var entries []string
		for _, number := range numbers[n*each : (n+1)*each] {
			entries = append(entries, made(number, length))
		}
		j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, json.RawMessage("["+strings.Join(entries, ",")+"]")))
	}
	r, err := j.store.Leases.End(t.Context(), j.lease.Update)
	j.ok(err)
	r.Memory = 2 * objects * each * length / 5
	j.objects.journal.Store(0)
	next := int64(1)
	for e, err := range r.Entries(t.Context()) {
		j.ok(err)
		if e.Sequence != next {
			t.Fatalf("entry %d comes where %d is due", e.Sequence, next)
		}
		if next++; r.Bytes > r.Memory {
			t.Fatalf("%d bytes are in memory", r.Bytes)
		}
	}
	if reads := j.objects.journal.Load(); next != objects*each+1 || reads > 3*objects {
		t.Errorf("%d entries of %d objects are read with %d reads", next-1, objects, reads)
	}
}

// TestAnUpdateWritesNoMoreThanItsBudgetOnWhicheverServer fills a log up to its limit.
func TestAnUpdateWritesNoMoreThanItsBudgetOnWhicheverServer(t *testing.T) {
	j := newJournaling(t)
	j.put(1, updates.LogSize{Items: deployments.MaxJournalEntries - 3}, `[`+made(1, 1)+`]`)
	one, other := j.server(), j.server()
	write := func(s *Store, n int) error {
		return s.Leases.WriteJournal(t.Context(), j.lease, json.RawMessage("["+made(n, 1)+"]"))
	}
	j.ok(write(one, 2))
	j.ok(write(other, 3))
	j.ok(write(one, 4))
	for n, s := range []*Store{one, other, j.server()} {
		err := write(s, 5+n)
		if !errors.Is(err, deployments.ErrTooLarge) || deployments.CodeOf(err) != deployments.CodeInvalid ||
			!strings.Contains(err.Error(), "divide the stack") {
			t.Errorf("server %d answers %v", n, err)
		}
	}
	w, err := j.store.FinishLease(t.Context(), j.lease.Update, "")
	j.ok(err)
	if w.Resources != 4 {
		t.Errorf("it has written %+v", w)
	}
	preview := deployments.Leased{Update: deployments.CreatedName(j.lease.Update.StackName, "x")}
	j.putLog(preview.Update,
		stackobjects.UpdateKey(preview.Update, updates.EventsFolder, updates.ClientStream, "00000001"),
		updates.LogSize{Bytes: deployments.MaxClientEventBytes - 10}, "[]")
	j.ok(one.Leases.WriteClientEvents(t.Context(), preview, []byte(`[{}]`), 1))
	if err := one.Leases.WriteClientEvents(t.Context(), preview, []byte(`[{},{}]`), 2); !errors.Is(err, deployments.ErrTooLarge) {
		t.Errorf("events are answered %v", err)
	}
}

// TestWhatIsDeletedOfAJournalBeforeItsEndIsNoticed has the last of its objects deleted after the client has said that
// it is done, and before, while the server knows it that has written it. With what was deleted nothing is lost.
func TestWhatIsDeletedOfAJournalBeforeItsEndIsNoticed(t *testing.T) {
	for _, before := range []bool{false, true} {
		j := newJournaling(t)
		for n := 1; n <= 3; n++ {
			j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, json.RawMessage("["+made(n, 1)+"]")))
		}
		key := leases.JournalKey(j.lease.Update, 3)
		deleted, err := j.objects.Get(t.Context(), key)
		j.ok(err)
		if before {
			j.ok(j.objects.Delete(t.Context(), key))
		}
		for range 2 { // a repeated call
			j.ok(j.store.Leases.EndJournal(t.Context(), j.lease))
		}
		if !before {
			j.ok(j.objects.Delete(t.Context(), key))
		}
		_, err = j.server().FinishLease(t.Context(), j.lease.Update, "")
		if deployments.CodeOf(err) != deployments.CodeFormat ||
			!strings.Contains(err.Error(), "put back the last good copy") {
			t.Errorf("deleted before its end (%v): it ends with %v", before, err)
		}
		_, err = j.objects.Put(t.Context(), key, deleted.Data, bucket.Condition{Absent: true})
		j.ok(err)
		_, err = j.server().FinishLease(t.Context(), j.lease.Update, "")
		j.ok(err)
		if got := j.resources(); len(got) != 3 {
			t.Errorf("deleted before its end (%v): the state has %v", before, got)
		}
		j.ok(j.store.Leases.EndJournal(t.Context(), j.lease)) // a client that repeats what it said
	}
}

// TestWhatIsDeletedOfAJournalIsNoticedWhileMoreIsWritten ends a journal, whose last object was deleted, while the write
// of the next one is under way.
func TestWhatIsDeletedOfAJournalIsNoticedWhileMoreIsWritten(t *testing.T) {
	j := newJournaling(t)
	for n := 1; n <= 3; n++ {
		j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, json.RawMessage("["+made(n, 1)+"]")))
	}
	j.objects.before = map[string]func(){"00000004": func() {
		if err := errors.Join(
			j.objects.Delete(t.Context(), leases.JournalKey(j.lease.Update, 3)), j.store.Leases.EndJournal(t.Context(), j.lease),
		); err != nil {
			t.Error(err)
		}
	}}
	err := j.store.Leases.WriteJournal(t.Context(), j.lease, json.RawMessage("["+made(4, 1)+"]"))
	if deployments.CodeOf(err) != deployments.CodeForbidden {
		t.Errorf("what is written after the end is answered %v", err)
	}
	_, err = j.server().FinishLease(t.Context(), j.lease.Update, "")
	if deployments.CodeOf(err) != deployments.CodeFormat {
		t.Errorf("it ends with %v", err)
	}
}

func TestOneCallWritesSoManyEntriesAtMost(t *testing.T) {
	j := newJournaling(t)
	entry := `{"sequenceID":1,"kind":2,"operationID":1}`
	entries := func(n int) json.RawMessage {
		return json.RawMessage("[" + strings.Repeat(entry+",", n-1) + entry + "]")
	}
	j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, entries(deployments.MaxBatch)))
	err := j.store.Leases.WriteJournal(t.Context(), j.lease, entries(deployments.MaxBatch+1))
	if !errors.Is(err, deployments.ErrTooLarge) || !strings.Contains(err.Error(), "fewer at once") {
		t.Errorf("one more is answered %v", err)
	}
}

// TestTheEndOfALeaseTakesItsMemoryFromWhatItsOrganizationHas has an end wait while there is none.
func TestTheEndOfALeaseTakesItsMemoryFromWhatItsOrganizationHas(t *testing.T) {
	j := newJournaling(t)
	j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, json.RawMessage("["+made(1, 100<<10)+"]")))
	pool := mempool.New(1 << 20)
	other := pool.Claim("evil", nil)
	j.ok(other.Take(t.Context(), 1<<20, time.Second))
	own := pool.Claim("acme", nil)
	defer own.Release()
	_, err := j.store.FinishLease(mempool.With(t.Context(), own, 0), j.lease.Update, "")
	if !errors.Is(err, mempool.ErrBusy) {
		t.Errorf("without memory it ends with %v", err)
	}
	other.Release()
	w, err := j.store.FinishLease(mempool.With(t.Context(), own, 0), j.lease.Update, "")
	j.ok(err)
	if w.Resources != 1 {
		t.Errorf("it has written %+v", w)
	}
}

// largeState returns a deployment of so many resources with values that compress well.
func largeState(resources, length int) []byte {
	var list []string
	for n := range resources {
		list = append(list, fmt.Sprintf(`{"urn":"urn:pulumi:dev::web::t:m:T::r%d","type":"t:m:T","outputs":{"v":%q}}`, n,
			strings.Repeat("v", length)))
	}
	return []byte(`{"version":3,"deployment":{"manifest":{"time":"2026-01-02T03:04:05Z"},"resources":[` +
		strings.Join(list, ",") + `]}}`)
}

// TestAWholeStateTakesItsMemoryHoweverSmallItsObjectIs has the client of an update write a state that becomes a small
// object, and has it ended.
func TestAWholeStateTakesItsMemoryHoweverSmallItsObjectIs(t *testing.T) {
	j := newJournaling(t)
	state := largeState(512, 16<<10)
	j.ok(j.store.Leases.WriteSnapshot(t.Context(), j.lease, 1, state))
	pool := mempool.New(1 << 30)
	own := pool.Claim("acme", nil)
	defer own.Release()
	w, err := j.server().FinishLease(mempool.With(t.Context(), own, 0), j.lease.Update, "")
	j.ok(err)
	if w.Resources != 512 {
		t.Errorf("it has written %+v", w)
	}
	if taken := pool.Taken(); taken < int64(2*len(state)) {
		t.Errorf("the end of a state of %d bytes has taken %d", len(state), taken)
	}
}

// TestTheEndOfAWholeStateMakesNoOtherCopyOfIt counts the bytes that an end allocates: those of the state that it reads,
// and those of each resource while it is judged.
func TestTheEndOfAWholeStateMakesNoOtherCopyOfIt(t *testing.T) {
	j := newJournaling(t)
	state := largeState(2048, 16<<10)
	j.ok(j.store.Leases.WriteSnapshot(t.Context(), j.lease, 1, state))
	server := j.server()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := server.FinishLease(t.Context(), j.lease.Update, "")
	runtime.ReadMemStats(&after)
	j.ok(err)
	if made, most := after.TotalAlloc-before.TotalAlloc, uint64(len(state))*11/4; made > most {
		t.Errorf("the end of a state of %d bytes allocates %d, more than %d", len(state), made, most)
	}
}

// TestACollectionReadsNoStateWithoutOldRecords collects the garbage of a stack whose state a client has written.
func TestACollectionReadsNoStateWithoutOldRecords(t *testing.T) {
	j := newJournaling(t)
	j.ok(j.store.Leases.WriteSnapshot(t.Context(), j.lease, 1, largeState(1, 10)))
	_, err := j.store.FinishLease(t.Context(), j.lease.Update, "")
	j.ok(err)
	before := j.objects.states.Load()
	_, err = j.server().Collect(t.Context(), j.lease.Update.StackName, Retention{Versions: 1})
	j.ok(err)
	if read := j.objects.states.Load() - before; read > 0 {
		t.Errorf("%d checkpoints are read", read)
	}
}

// TestAKeptCheckpointHasNoMoreMemoryThanItCounts has ends leave checkpoints that compress well.
func TestAKeptCheckpointHasNoMoreMemoryThanItCounts(t *testing.T) {
	for _, resources := range []int{64, 512} {
		j := newJournaling(t)
		j.ok(j.store.Leases.WriteSnapshot(t.Context(), j.lease, 1, largeState(resources, 16<<10)))
		_, err := j.store.FinishLease(t.Context(), j.lease.Update, "")
		j.ok(err)
		for key, o := range j.store.recent.objects {
			if cap(o.Data) > 2*len(o.Data) {
				t.Errorf("%s has %d bytes, and a buffer of %d", key, len(o.Data), cap(o.Data))
			}
		}
		if len(j.store.recent.objects) == 0 {
			t.Error("nothing is kept")
		}
	}
}

// FuzzDeployments takes deployments apart as encoding/json does; what is accepted when it is written becomes a state.
func FuzzDeployments(f *testing.F) {
	const resource = `{"urn":"urn:pulumi:dev::web::t:m:T::a","type":"t:m:T"}`
	for _, text := range []string{
		`{"version":3,"deployment":{"manifest":{"time":"2026-01-02T03:04:05Z"},"resources":[` + resource + `,` + resource + `]}}`,
		`{"version":4,"features":["views"],"deployment":{"resources":null,"Resources":[` + resource + `]}}`,
		`{"version":3,"deployment":{"pending_operations":[{"type":"creating","resource":` + resource + `}]},"deployment":{}}`,
		`{"version":3,"deployment":{"resources":{}}}`, `{"version":3,"deployment":[]}`, `[]`, `{"version":3`,
		`{"version":3,"deployment":{"secrets_providers":{"type":"service","state":{"owner":"x"}},"resources":[{}]}}`,
	} {
		f.Add([]byte(text))
	}
	store, err := New(&bucket.Memory{}, Options{Master: make([]byte, 32)})
	name := deployments.StackName{Organization: "acme", Project: "web", Stack: "dev"}
	if err == nil {
		err = store.CreateStack(f.Context(), name, nil)
	}
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := takeApart(t.Context(), deploymentText{around: data}, false)
		var plain deploymentFile
		if plainErr := json.Unmarshal(data, &plain); err == nil && plainErr == nil && strings.Count(string(data), `"resources"`) == 1 {
			same := len(file.Deployment.Resources) == len(plain.Deployment.Resources)
			for i := range file.Deployment.Resources {
				same = same && string(file.Deployment.Resources[i]) == string(plain.Deployment.Resources[i])
			}
			if !same {
				t.Errorf("%s has the resources %s, and not %s", data, file.Deployment.Resources, plain.Deployment.Resources)
			}
		}
		if err := checkWritten(t.Context(), name, data); err != nil {
			if deployments.CodeOf(err) != deployments.CodeInvalid {
				t.Errorf("%s is answered %v", data, err)
			}
			return
		}
		if file, err = parseFile(t.Context(), deploymentText{around: data}, false); err != nil {
			t.Fatal(err)
		}
		d, err := store.clientDraft(t.Context(), name, file)
		if err != nil {
			t.Fatalf("%s is accepted and cannot be a state: %v", data, err)
		}
		if _, _, err := parseDeployment(t.Context(), pack.Whole(d.written)); err != nil {
			t.Errorf("%s becomes %s: %v", data, pack.Whole(d.written), err)
		}
	})
}

func TestAStateSaysWhichVersionOfTheClientHasWrittenItsJournal(t *testing.T) {
	for client, want := range map[string]string{"v3.259.0": "v3.259.0", "3.246.0-dev.0+x1": "3.246.0-dev.0+x1",
		"": engineVersion, "v3\x1b[31m": engineVersion, "3.1.0 and more": engineVersion} {
		j := newJournaling(t)
		j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, json.RawMessage("["+made(1, 1)+"]")))
		_, err := j.store.FinishLease(t.Context(), j.lease.Update, client)
		j.ok(err)
		out, err := j.store.Export(t.Context(), Exchange{Stack: j.lease.Update.StackName}, 0, false)
		j.ok(err)
		var d apitype.DeploymentV3
		j.ok(json.Unmarshal(out.Deployment, &d))
		if m := d.Manifest; m.Version != want || m.Magic != m.NewMagic() {
			t.Errorf("written by %q, it has the manifest %+v", client, m)
		}
	}
}
