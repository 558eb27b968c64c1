package storetest

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/creates"
	"github.com/deployctl/deployctl/statestore/programs"
	"github.com/deployctl/deployctl/statestore/updates"
)

const day = 24 * time.Hour

// later is the same store after some days.
func (f fixture) later(t *testing.T, days int) fixture {
	t.Helper()
	return f.at(t, func() time.Time { return time.Now().Add(time.Duration(days) * day) })
}

// at is the same store by another clock.
func (f fixture) at(t *testing.T, now func() time.Time) fixture {
	t.Helper()
	s, err := statestore.New(f.objects, statestore.Options{Master: Master, Now: now})
	ok(t, err)
	return fixture{s, f.objects}
}

// update carries out update n of dev, which makes a thing with a large value, and leaves all that updates leave.
func (f fixture) update(t *testing.T, n int) {
	t.Helper()
	f.claim(t, n, "w")
	sc := statestore.Scope{Update: up(n), Base: n - 1}
	ok(t, f.Updates.PutRequest(t.Context(), up(n), deployments.UpdateRequest{Message: "m"}))
	ok(t, f.Updates.AppendEvents(t.Context(), updates.Part{Update: up(n), Stream: "run", Number: 1}, []byte("said")))
	deltas := puts(f.thing(t, sc, 3, fmt.Sprint("thing-", n)))
	if n == 1 {
		deltas = append(puts(
			engine.State{Key: "o1", URN: rootURN, Type: "pulumi:pulumi:Stack"},
			engine.State{Key: "o2", URN: cloudURN, Type: "pulumi:providers:cloud", Custom: true, ID: "p1"},
		), deltas...)
	}
	ok(t, f.Updates.SaveDeltas(t.Context(), up(n), 1, deltas))
	_, err := f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 1})
	ok(t, err)
	ok(t, f.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(n), Status: "succeeded", Committed: true}))
}

// preview leaves what previews leave.
func (f fixture) preview(t *testing.T, name string) {
	t.Helper()
	u := deployments.UpdateName{StackName: dev, Version: name}
	ok(t, f.Updates.PutRequest(t.Context(), u, deployments.UpdateRequest{DryRun: true}))
	ok(t, f.Updates.AppendEvents(t.Context(), updates.Part{Update: u, Stream: "run", Number: 1}, []byte("said")))
}

func (f fixture) collect(t *testing.T, versions int, age time.Duration, want statestore.Collected) {
	t.Helper()
	got, err := f.Collect(t.Context(), dev, statestore.Retention{Versions: versions, Age: age})
	if err != nil || got != want {
		t.Errorf("collected %+v, %v; want %+v", got, err, want)
	}
}

// bundle sends a project of one file.
func (f fixture) bundle(t *testing.T, text string) string {
	t.Helper()
	m := deployments.Manifest{Files: []deployments.File{{Path: "Pulumi.yaml", Digest: programs.Digest([]byte(text))}}}
	ok(t, f.Programs.PutFile(t.Context(), dev, m.Files[0].Digest, []byte(text)))
	digest, err := f.Programs.PutManifest(t.Context(), dev, m)
	ok(t, err)
	return digest
}

func retention(t *testing.T, f fixture) {
	f.create(t)
	for n := 1; n <= 5; n++ {
		f.update(t, n)
	}
	f.preview(t, "p-1")
	f.claim(t, 6, "w") // an update is under way
	none := statestore.Collected{}
	f.collect(t, 2, 0, none) // all of it is young
	future := f.later(t, 40)
	future.collect(t, 100, 30*day, statestore.Collected{Previews: 1})
	future.collect(t, 2, 50*day, none)
	future.collect(t, 2, 30*day, statestore.Collected{Checkpoints: 3, Updates: 3})
	future.collect(t, 2, 30*day, none)
	future.collect(t, 1, 30*day, statestore.Collected{Checkpoints: 1, Updates: 1})
	future.collect(t, 0, 0, none) // what is the head is kept
	_, err := f.later(t, 0).Checkpoint(t.Context(), dev, 4, deployments.SecretsProvider{})
	wantCode(t, err, deployments.CodeNotFound)
	list, err := f.Updates.History(t.Context(), dev, 0)
	ok(t, err)
	var kept []string
	for _, info := range list {
		kept = append(kept, fmt.Sprint(info.Update.Version, " ", info.Kept))
	}
	if got := strings.Join(kept, ", "); got != "5 true, 4 false, 3 false, 2 false, 1 false" {
		t.Errorf("the history is %s", got)
	}
	// The update that is under way ends as if nothing had been removed.
	sc := statestore.Scope{Update: up(6), Base: 5}
	ok(t, f.Updates.SaveDeltas(t.Context(), up(6), 1, puts(f.thing(t, sc, 3, "last"))))
	future.collect(t, 1, 0, none)
	_, err = future.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 1})
	ok(t, err)
	c, err := f.later(t, 0).Checkpoint(t.Context(), dev, 6, deployments.SecretsProvider{})
	ok(t, err)
	if n := len(c.States()); n != 8 {
		t.Errorf("there are %d resources", n)
	}
	for _, state := range c.States() {
		if state.URN != thingURN("last") {
			continue
		}
		if values, err := c.Values(state.Outputs.Ref); err != nil || !values.DeepEquals(outputs("last")) {
			t.Errorf("the values that it made are %v, %v", values, err)
		}
	}
}

// collectBeside has somebody collect all the time, with a clock by which everything is old.
func collectBeside(t *testing.T, f fixture) {
	f.create(t)
	future, done, ended := f.later(t, 20), make(chan struct{}), make(chan struct{})
	removed := 0
	collect := func() {
		c, err := future.Collect(t.Context(), dev, statestore.Retention{Versions: 1})
		if err != nil {
			t.Error(err)
		}
		removed += c.Checkpoints
	}
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				collect()
			}
		}
	}()
	const updates = 6
	for n := 1; n <= updates; n++ {
		f.update(t, n)
	}
	close(done)
	<-ended
	if collect(); removed != updates-1 {
		t.Errorf("%d checkpoints were removed", removed)
	}
	c, err := f.later(t, 0).Checkpoint(t.Context(), dev, updates, deployments.SecretsProvider{})
	ok(t, err)
	made := 0
	for _, state := range c.States() {
		if name := state.URN.Name(); strings.HasPrefix(name, "thing-") {
			made++
			if values, err := c.Values(state.Outputs.Ref); err != nil || !values.DeepEquals(outputs(name)) {
				t.Errorf("the values of %s are %v, %v", name, values, err)
			}
		}
	}
	if made != updates {
		t.Errorf("%d things are left", made)
	}
}

func filesByMonth(t *testing.T, f fixture) {
	f.create(t)
	// From the tenth of the next month on, whatever day it is: what is kept depends on how long ago a month has ended.
	today := time.Now().UTC()
	after := func(days int) fixture {
		return f.at(t, func() time.Time {
			return time.Date(today.Year(), today.Month()+1, 10+days, 12, 0, 0, 0, time.UTC)
		})
	}
	first := after(0)
	used, unused := first.bundle(t, "used"), first.bundle(t, "unused")
	read := func(f fixture, bundle string) error {
		m, err := f.Programs.Bundle(t.Context(), dev, bundle)
		if err == nil {
			_, err = f.Programs.File(t.Context(), dev, m.Files[0].Digest)
		}
		return err
	}
	// A month later, a client sends anew what it needs, and what is used without being sent is kept.
	next := after(32)
	ok(t, read(next, used))
	m, err := next.Programs.Bundle(t.Context(), dev, used)
	ok(t, err)
	if missing, err := next.Programs.Missing(t.Context(), dev, m); err != nil || len(missing) != 1 {
		t.Errorf("in the next month %q are missing, %v", missing, err)
	}
	// sent in the last moment of the month before
	if again, err := next.Programs.PutManifest(t.Context(), dev, m); err != nil || again != used {
		t.Errorf("got %s, %v", again, err)
	}
	next.collect(t, 1, 0, statestore.Collected{})
	later := after(64)
	ok(t, later.Programs.KeepBundle(t.Context(), dev, used))
	ok(t, later.Programs.KeepBundle(t.Context(), dev, used))
	last := after(140)
	ok(t, last.Programs.KeepBundle(t.Context(), dev, used))
	got, err := last.Collect(t.Context(), dev, statestore.Retention{Versions: 1})
	if err != nil || got.Files < 8 || got != (statestore.Collected{Files: got.Files}) {
		t.Errorf("collected %+v, %v", got, err)
	}
	ok(t, read(last, used))
	wantCode(t, read(last, unused), deployments.CodeNotFound)
	wantCode(t, last.Programs.KeepBundle(t.Context(), dev, unused), deployments.CodeNotFound)
}

// formerPlaces moves large values and project files to where they were once.
func formerPlaces(t *testing.T, f fixture) {
	f.create(t)
	bundle := f.bundle(t, "name: old")
	f.claim(t, 1, "w")
	sc := statestore.Scope{Update: up(1)}
	ok(t, f.Updates.SaveDeltas(t.Context(), up(1), 1, puts(f.thing(t, sc, 3, "a"))))
	h, err := f.Head(t.Context(), dev)
	ok(t, err)
	l, err := f.objects.List(t.Context(), bucket.Query{})
	ok(t, err)
	moved := 0
	for _, key := range l.Keys {
		if !strings.Contains(key, "/blob/") && !strings.Contains(key, "/files/") {
			continue
		}
		o, err := f.objects.Get(t.Context(), key)
		ok(t, err)
		_, err = f.objects.Put(t.Context(), "blobs/"+h.ID+"/"+path.Base(key), o.Data, bucket.Condition{})
		ok(t, err)
		ok(t, f.objects.Delete(t.Context(), key))
		moved++
	}
	m, err := f.Programs.Bundle(t.Context(), dev, bundle)
	ok(t, err)
	if text, err := f.Programs.File(t.Context(), dev, m.Files[0].Digest); err != nil || string(text) != "name: old" {
		t.Errorf("the file is %q, %v", text, err)
	}
	f.later(t, 40).collect(t, 1, 0, statestore.Collected{}) // the update may need them
	_, err = f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 1})
	ok(t, err)
	c, err := f.Checkpoint(t.Context(), dev, 1, deployments.SecretsProvider{})
	ok(t, err)
	if values, err := c.Values("base:0/out"); err != nil || !values.DeepEquals(outputs("a")) {
		t.Errorf("the values are %v, %v", values, err)
	}
	f.later(t, 20).collect(t, 1, 0, statestore.Collected{})
	f.later(t, 40).collect(t, 1, 0, statestore.Collected{Blobs: moved})
}

func restore(t *testing.T, f fixture) {
	f.create(t)
	x := statestore.Exchange{Stack: dev}
	for n := 1; n <= 3; n++ {
		f.update(t, n)
	}
	claim := f.claim(t, 4, "w")
	_, err := f.Restore(t.Context(), x, 1)
	wantCode(t, err, deployments.CodeConflict)
	ok(t, f.Commit(t.Context(), claim, statestore.Written{}))
	for version, says := range map[int]string{0: "no version 0", 9: "no version 9", 3: "newest already",
		4: "ended before it had a state"} {
		if _, err := f.Restore(t.Context(), x, version); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("version %d gives %v", version, err)
		}
	}
	version, err := f.Restore(t.Context(), x, 1)
	if err != nil || version != 5 {
		t.Fatalf("version 1 was restored as %d, %v", version, err)
	}
	before, err := f.Export(t.Context(), x, 1, true)
	ok(t, err)
	after, err := f.Export(t.Context(), x, 5, true)
	ok(t, err)
	_, was, _ := strings.Cut(string(before.Deployment), `"secrets_providers"`)
	if _, is, _ := strings.Cut(string(after.Deployment), `"secrets_providers"`); is != was || was == "" {
		t.Errorf("what was\n%s\nis\n%s", was, is)
	}
	h, err := f.Head(t.Context(), dev)
	if err != nil || h.Version != 5 || h.Resources != 3 || h.Active != nil {
		t.Errorf("the head is %+v, %v", h, err)
	}
	future := f.later(t, 40)
	future.collect(t, 2, 0, statestore.Collected{Checkpoints: 2, Updates: 2})
	_, err = future.Restore(t.Context(), x, 2)
	wantCode(t, err, deployments.CodeNotFound)
	if !strings.Contains(err.Error(), "not kept any more: 3 is the oldest") {
		t.Errorf("it says %v", err)
	}
	if version, err := future.Restore(t.Context(), x, 3); err != nil || version != 6 {
		t.Errorf("version 3 was restored as %d, %v", version, err)
	}
	to := deployments.StackName{Organization: "organization", Project: "web", Stack: "live"}
	ok(t, f.RenameStack(t.Context(), dev, to))
	_, err = f.Restore(t.Context(), statestore.Exchange{Stack: to}, 5)
	wantCode(t, err, deployments.CodeInvalid)
}

// collectAbsences makes a hundred creates that note an absence and a mark, of which one is still open.
func collectAbsences(t *testing.T, f fixture) {
	f.create(t)
	f.update(t, 1)
	for n := range 100 {
		ok(t, f.Creates.NoteAbsence(t.Context(), dev, []byte{byte(n), 1}, "x", 1))
		ok(t, f.Creates.NoteMark(t.Context(), dev, []byte{byte(n), 1}, creates.Mark{Place: "tags.m", Text: "x"}))
	}
	open := []byte{7, 1}
	f.claim(t, 2, "w")
	sc := statestore.Scope{Update: up(2), Base: 1}
	ok(t, f.Updates.PutRequest(t.Context(), up(2), deployments.UpdateRequest{}))
	pending := engine.PendingOperation{Op: 1, Kind: "creating", Seed: open, State: engine.State{
		Key: "o1", URN: thingURN("open"), Type: "cloud:index:Thing", Custom: true, Provider: string(cloudURN) + "::p1",
	}}
	ok(t, f.Updates.SaveDeltas(t.Context(), up(2), 1, []engine.Delta{{Seq: 1, Kind: engine.DeltaBegin, Op: 1,
		Pending: &pending}}))
	_, err := f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 1})
	ok(t, err)
	collect := func(days, absences, marks int) {
		t.Helper()
		_, err := f.later(t, days).Collect(t.Context(), dev, statestore.Retention{Versions: 1})
		ok(t, err)
		seen, marked := 0, 0
		for n := range 100 {
			seed := []byte{byte(n), 1}
			saw, err := f.Creates.SawAbsence(t.Context(), dev, seed, "x", 1)
			ok(t, err)
			mark, err := f.Creates.NotedMark(t.Context(), dev, seed)
			ok(t, err)
			if saw {
				seen++
			}
			if mark.Text == "x" {
				marked++
			}
			if bytes.Equal(seed, open) && (saw != (absences > 0) || (mark.Text == "x") != (marks > 0)) {
				t.Errorf("after %d days, the absence of the open create is there: %t, and its mark %q", days, saw, mark)
			}
		}
		if seen != absences || marked != marks {
			t.Errorf("after %d days %d absences and %d marks are left, not %d and %d", days, seen, marked, absences, marks)
		}
	}
	collect(0, 100, 100)
	collect(400, 100, 1) // an object may tell of several creates
	f.claim(t, 3, "w")
	ok(t, f.Updates.PutRequest(t.Context(), up(3), deployments.UpdateRequest{}))
	ok(t, f.Updates.SaveDeltas(t.Context(), up(3), 1, []engine.Delta{{Seq: 1, Kind: engine.DeltaEnd, Op: -1}}))
	_, err = f.Finish(t.Context(), statestore.Finish{Scope: statestore.Scope{Update: up(3), Base: 2}, Saves: 1})
	ok(t, err)
	collect(800, 0, 0)
}
