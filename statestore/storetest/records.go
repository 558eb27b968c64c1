package storetest

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/programs"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/klauspost/compress/zstd"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

var reader, _ = zstd.NewReader(nil)

// Readable gives what a person without keys can read in stored bytes: the bytes themselves, and what they decompress
// to.
func Readable(data []byte) [][]byte {
	if plain, err := reader.DecodeAll(data, nil); err == nil {
		return [][]byte{data, plain}
	}
	return [][]byte{data}
}

func finishAndLoad(t *testing.T, f fixture) {
	f.create(t)
	w := f.deploy(t, "a", "b")
	if w.Version != 1 || w.Resources != 4 {
		t.Fatalf("wrote %+v", w)
	}
	want := f.thing(t, statestore.Scope{Update: up(1)}, 3, "a")
	c, err := f.Checkpoint(t.Context(), dev, 1, deployments.SecretsProvider{})
	ok(t, err)
	got := c.States()[2]
	if got.Inputs.Digest != want.Inputs.Digest || got.Outputs.Digest != want.Outputs.Digest ||
		got.Trigger.Digest != want.Trigger.Digest || got.Extension.Digest != want.Extension.Digest {
		t.Error("the digests are others than before")
	}
	if got.Key != "b2" || got.Inputs.Ref != "base:2/in" || got.Outputs.Ref != "base:2/out" {
		t.Errorf("got %+v", got)
	}
	want.Key, want.Inputs, want.Outputs, want.Trigger = got.Key, got.Inputs, got.Outputs, got.Trigger
	want.Extension = got.Extension
	want.PropertyDependencies[1].URNs = got.PropertyDependencies[1].URNs // nil and empty are one
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	codec, err := f.Bags(t.Context(), statestore.Scope{Update: up(2), Base: 1})
	ok(t, err)
	for bag, want := range map[*engine.Bag]resource.PropertyMap{
		&got.Inputs: inputs("a"), &got.Outputs: outputs("a"), &got.Trigger: triggered("a"),
	} {
		values, err := codec.Decode(t.Context(), *bag)
		if err != nil || !values.DeepEquals(want) {
			t.Errorf("%s is %v, %v", bag.Ref, values, err)
		}
	}
	extension, err := codec.DecodeExtension(t.Context(), got.Extension)
	if err != nil || !reflect.DeepEqual(extension, extending) {
		t.Errorf("the extension is %+v, %v", extension, err)
	}
	parts := 0
	for from := 0; ; parts++ {
		h := c.Headers(from, 3)
		if from = h.Next; from == 0 {
			break
		}
	}
	if parts != 1 {
		t.Errorf("four headers came in %d parts of three", parts+1)
	}
}

func finishTwice(t *testing.T, f fixture) {
	f.create(t)
	f.claim(t, 1, "w1")
	sc := statestore.Scope{Update: up(1)}
	ok(t, f.Updates.SaveDeltas(t.Context(), up(1), 1, puts(engine.State{Key: "o1", URN: rootURN,
		Type: "pulumi:pulumi:Stack"})))
	first, err := f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 1})
	ok(t, err)
	again, err := f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 1})
	if err != nil || again != first {
		t.Fatalf("%+v, then %+v, %v", first, again, err)
	}
	_, err = f.Finish(t.Context(), statestore.Finish{Scope: statestore.Scope{Update: up(2), Base: 1}})
	wantCode(t, err, deployments.CodeConflict) // never claimed
}

func missingSave(t *testing.T, f fixture) {
	f.create(t)
	f.claim(t, 1, "w1")
	made := []string{"a", "b", "c"}
	sc := statestore.Scope{Update: up(1)}
	for n, name := range made {
		if n != 1 {
			ok(t, f.Updates.SaveDeltas(t.Context(), up(1), n+1, puts(f.thing(t, sc, 3+n, name))))
		}
	}
	_, err := f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 3})
	wantCode(t, err, deployments.CodeFormat)
	_, err = f.Updates.LoadDeltas(t.Context(), up(1), 0, 3)
	wantCode(t, err, deployments.CodeFormat)
	ok(t, f.Updates.SaveDeltas(t.Context(), up(1), 2, nil))
	_, err = f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 2})
	wantCode(t, err, deployments.CodeConflict) // it knows less than was saved
	w, err := f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 3})
	if err != nil || w.Version != 1 {
		t.Errorf("it came to %+v, %v", w, err)
	}
}

// staleHead puts an older head back beside a stack whose newest version then has lost what is in a folder.
func staleHead(folder string, adopted int) func(*testing.T, fixture) {
	return func(t *testing.T, f fixture) {
		const stack = "stacks/organization/web/dev/"
		f.create(t)
		f.update(t, 1)
		old, err := f.objects.Get(t.Context(), stack+"head.json")
		ok(t, err)
		f.update(t, 2)
		_, err = f.objects.Put(t.Context(), stack+"head.json", old.Data, bucket.Condition{})
		ok(t, err)
		l, err := f.objects.List(t.Context(), bucket.Query{Prefix: stack + folder})
		ok(t, err)
		if len(l.Keys) == 0 {
			t.Fatal("nothing is there to be lost")
		}
		for _, key := range l.Keys {
			ok(t, f.objects.Delete(t.Context(), key))
		}
		claim := statestore.Claimant{Update: up(3), Writer: "w"}
		_, err = f.Claim(t.Context(), claim)
		if wantCode(t, err, deployments.CodeFormat); !strings.Contains(err.Error(), "key adopt") {
			t.Errorf("the claim says %v", err)
		}
		ok(t, f.AdoptStack(t.Context(), dev))
		if c, err := f.Claim(t.Context(), claim); err != nil || c.Base != adopted {
			t.Errorf("the adopted stack is at version %d, %v", c.Base, err)
		}
	}
}

// headFromBeforeAnUpdate puts an older head back while an update has the stack.
func headFromBeforeAnUpdate(t *testing.T, f fixture) {
	const head = "stacks/organization/web/dev/head.json"
	f.create(t)
	f.update(t, 1)
	old, err := f.objects.Get(t.Context(), head)
	ok(t, err)
	f.claim(t, 2, "w2")
	thing := engine.State{Key: "o3", URN: thingURN("a"), Type: "cloud:index:Thing"}
	ok(t, f.Updates.SaveDeltas(t.Context(), up(2), 1, puts(thing)))
	_, err = f.objects.Put(t.Context(), head, old.Data, bucket.Condition{})
	ok(t, err)
	claim := statestore.Claimant{Update: up(3), Writer: "w"}
	_, err = f.Claim(t.Context(), claim)
	if wantCode(t, err, deployments.CodeFormat); !strings.Contains(err.Error(), "older than update 2") {
		t.Errorf("the claim of the next update says %v", err)
	}
	ok(t, f.AdoptStack(t.Context(), dev))
	c, err := f.Claim(t.Context(), claim)
	if err != nil || c.Base != 1 {
		t.Errorf("the adopted stack is at version %d, %v", c.Base, err)
	}
}

func answered(t *testing.T, f fixture) {
	f.create(t)
	f.claim(t, 1, "w1")
	ok(t, f.Updates.SaveDeltas(t.Context(), up(1), 1, []engine.Delta{
		{Seq: 1, Kind: engine.DeltaBegin, Op: 3, Pending: &engine.PendingOperation{Op: 3, Kind: "creating"}},
		{Seq: 2, Kind: engine.DeltaBegin, Op: 4, Pending: &engine.PendingOperation{Op: 4, Kind: "creating"}},
		{Seq: 3, Kind: engine.DeltaEnd, Op: 4}}))
	ok(t, f.Updates.PutOutcome(t.Context(), up(1), 2, engine.StepFinished{Op: 5, Outcome: engine.OutcomeDone}))
	got, err := f.Updates.Answered(t.Context(), up(1))
	if want := map[int]int{4: math.MaxInt, 5: 2}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v was answered (%v), not %v", got, err, want)
	}
}

func sweep(t *testing.T, f fixture) {
	f.create(t)
	for n, name := range []string{"a", "b", "c"} {
		f.claim(t, n+1, "w")
		sc := statestore.Scope{Update: up(n + 1), Base: n}
		ok(t, f.Updates.SaveDeltas(t.Context(), up(n+1), 1, puts(engine.State{Key: "o3", URN: thingURN(name),
			Type: "cloud:index:Thing"})))
		ok(t, f.Updates.PutOutcome(t.Context(), up(n+1), 1, engine.StepFinished{Op: 3, Outcome: engine.OutcomeDone}))
		_, err := f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 1})
		ok(t, err)
		f.Sweep(t.Context(), dev, n)
	}
	for n, kept := range map[int]bool{1: false, 2: false, 3: true} {
		saves, err := f.Updates.LastSave(t.Context(), up(n))
		ok(t, err)
		outcome, err := f.Updates.Outcome(t.Context(), up(n), 3, 1)
		ok(t, err)
		if (saves == 1) != kept || (outcome != nil) != kept {
			t.Errorf("of update %d there are %d saves and the outcome %v", n, saves, outcome)
		}
		if _, err := f.Checkpoint(t.Context(), dev, n, deployments.SecretsProvider{}); err != nil {
			t.Errorf("version %d: %v", n, err)
		}
	}
	_, err := f.Restore(t.Context(), statestore.Exchange{Stack: dev}, 1)
	ok(t, err)
	if saves, err := f.Updates.LastSave(t.Context(), up(3)); err != nil || saves != 0 {
		t.Errorf("after version 1 was restored there are %d saves of update 3, %v", saves, err)
	}
}

func brokenSnapshot(t *testing.T, f fixture) {
	f.create(t)
	part := func(op int, name string, on ...urn.URN) engine.State {
		return engine.State{Key: engine.Key(fmt.Sprint("o", op)), URN: thingURN(name), Type: "cloud:index:Thing",
			Dependencies: on}
	}
	finish := func(n int, states ...engine.State) *statestore.Checkpoint {
		t.Helper()
		f.claim(t, n, "w")
		ok(t, f.Updates.SaveDeltas(t.Context(), up(n), 1, puts(states...)))
		_, err := f.Finish(t.Context(), statestore.Finish{Scope: statestore.Scope{Update: up(n), Base: n - 1},
			Saves: 1})
		ok(t, err)
		c, err := f.Checkpoint(t.Context(), dev, n, deployments.SecretsProvider{})
		ok(t, err)
		return c
	}
	c := finish(1, part(1, "b", thingURN("a"), thingURN("nowhere")), part(2, "a"))
	ok(t, c.CheckIntegrity())
	if s := c.States(); len(s) != 2 || s[0].URN != thingURN("a") || len(s[1].Dependencies) != 1 {
		t.Errorf("repaired: %+v", s)
	}
	c = finish(2, part(3, "a"))
	wantCode(t, c.CheckIntegrity(), deployments.CodeFormat)
	if s := c.States(); len(s) != 3 {
		t.Errorf("what was done is lost: %+v", s)
	}
}

func operationValues(t *testing.T, f fixture) {
	f.create(t)
	f.claim(t, 1, "w")
	sc := statestore.Scope{Update: up(1)}
	codec, err := f.Bags(t.Context(), sc)
	ok(t, err)
	_, err = codec.Decode(t.Context(), engine.Bag{Digest: "x", Ref: "op:3/in"})
	wantCode(t, err, deployments.CodeInternal)
	ok(t, f.Updates.SaveDeltas(t.Context(), up(1), 1, puts(f.thing(t, sc, 3, "a"))))
	for n := 2; n < 12; n++ {
		ok(t, f.Updates.SaveDeltas(t.Context(), up(1), n, nil))
	}
	ok(t, f.Updates.SaveDeltas(t.Context(), up(1), 12, puts(f.thing(t, sc, 4, "b"))))
	for ref, want := range map[engine.Ref]resource.PropertyMap{"op:3/in": inputs("a"), "op:4/out": outputs("b")} {
		got, err := codec.Decode(t.Context(), engine.Bag{Digest: "x", Ref: ref})
		if err != nil || !got.DeepEquals(want) {
			t.Errorf("%s is %v, %v", ref, got, err)
		}
	}
	if n, err := f.Updates.LastSave(t.Context(), up(1)); err != nil || n != 12 {
		t.Errorf("the last save is %d, %v", n, err)
	}
}

func pendingOperations(t *testing.T, f fixture) {
	f.create(t)
	f.claim(t, 1, "w")
	sc := statestore.Scope{Update: up(1)}
	pending := engine.PendingOperation{Op: 9, Kind: "creating", State: f.thing(t, sc, 9, "lost"), Seed: []byte{1, 2, 3},
		Reason: "no route"}
	ok(t, f.Updates.SaveDeltas(t.Context(), up(1), 1, []engine.Delta{{Seq: 1, Kind: engine.DeltaBegin, Op: 9,
		Pending: &pending}}))
	_, err := f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 1})
	ok(t, err)
	c, err := f.Checkpoint(t.Context(), dev, 1, deployments.SecretsProvider{})
	ok(t, err)
	p := c.Pending()
	if len(p) != 1 || p[0].Op != -1 || p[0].Kind != "creating" || string(p[0].Seed) != "\x01\x02\x03" ||
		p[0].State.Key != "p0" || p[0].Reason != "no route" {
		t.Fatalf("got %+v", p)
	}
	values, err := c.Values(p[0].State.Inputs.Ref)
	if err != nil || !values.DeepEquals(inputs("lost")) {
		t.Fatalf("got %v, %v", values, err)
	}
	if st, err := f.Status(t.Context(), dev); err != nil || st.Pending != 1 || len(st.Needs()) != 1 {
		t.Errorf("its status is %+v, %v", st, err)
	}
	f.claim(t, 2, "w") // a later update that does not settle it hands it on
	_, err = f.Finish(t.Context(), statestore.Finish{Scope: statestore.Scope{Update: up(2), Base: 1}})
	ok(t, err)
	if c, err = f.Checkpoint(t.Context(), dev, 2, deployments.SecretsProvider{}); err != nil || len(c.Pending()) != 1 {
		t.Fatalf("got %+v, %v", c, err)
	}
	values, err = c.Values(c.Pending()[0].State.Inputs.Ref)
	if err != nil || !values.DeepEquals(inputs("lost")) {
		t.Fatalf("got %v, %v", values, err)
	}
}

func updateRecords(t *testing.T, f fixture) {
	f.create(t)
	u := deployments.UpdateName{StackName: dev, Version: "p-123"}
	request := deployments.UpdateRequest{Stack: dev, RequestID: "r", Environment: []string{"A=" + hush}}
	ok(t, f.Updates.PutRequest(t.Context(), u, request))
	if got, err := f.Updates.Request(t.Context(), u); err != nil || !reflect.DeepEqual(got, request) {
		t.Errorf("got %+v, %v", got, err)
	}
	info := deployments.UpdateInfo{Update: u, DryRun: true, Status: "running"}
	ok(t, f.Updates.PutInfo(t.Context(), info))
	info.Status = "succeeded"
	ok(t, f.Updates.PutInfo(t.Context(), info))
	if got, err := f.Updates.Info(t.Context(), u); err != nil || !reflect.DeepEqual(got, info) {
		t.Errorf("got %+v, %v", got, err)
	}
	for n := 1; n <= 12; n++ {
		part := updates.Part{Update: u, Stream: "steps", Number: n}
		ok(t, f.Updates.AppendEvents(t.Context(), part, []byte(fmt.Sprint("part ", n))))
		ok(t, f.Updates.AppendEvents(t.Context(), part, []byte(fmt.Sprint("part ", n))))
	}
	ok(t, f.Updates.AppendEvents(t.Context(), updates.Part{Update: u, Stream: "program-1", Number: 1}, nil))
	parts, err := f.Updates.ReadEvents(t.Context(), updates.Part{Update: u, Stream: "steps", Number: 9}, 100)
	if err != nil || len(parts) != 4 || string(parts[0]) != "part 9" || string(parts[3]) != "part 12" {
		t.Errorf("got %q, %v", parts, err)
	}
	if streams, err := f.Updates.Streams(t.Context(), u); err != nil || strings.Join(streams, " ") != "program-1 steps" {
		t.Errorf("got %q, %v", streams, err)
	}
	if got, err := f.Updates.Outcome(t.Context(), u, 3, 1); err != nil || got != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	finished := engine.StepFinished{Op: 3, Outcome: engine.OutcomeDone, ID: "i"}
	ok(t, f.Updates.PutOutcome(t.Context(), u, 2, finished))
	if got, err := f.Updates.Outcome(t.Context(), u, 3, 2); err != nil || !reflect.DeepEqual(*got, finished) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := f.Updates.Outcome(t.Context(), u, 3, 1); err != nil || got != nil {
		t.Errorf("another round has %+v, %v", got, err)
	}
}

func history(t *testing.T, f fixture) {
	f.create(t)
	for _, n := range []int{1, 2, 9, 10, 11} {
		ok(t, f.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(n), Status: "succeeded"}))
	}
	for _, n := range []int{3, 4, 5, 12, 13} {
		ok(t, f.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(n), Status: "cancelled", Ended: time.Now(),
			Unbegun: true}))
	}
	preview := deployments.UpdateName{StackName: dev, Version: "p1"}
	ok(t, f.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: preview, DryRun: true}))
	versions := func(list []deployments.UpdateInfo) string {
		var got []string
		for _, i := range list {
			got = append(got, i.Update.Version)
		}
		return strings.Join(got, " ")
	}
	for limit, want := range map[int]string{0: "11 10 9 2 1", 1: "11", 2: "11 10"} {
		list, err := f.Updates.History(t.Context(), dev, limit)
		if ok(t, err); versions(list) != want {
			t.Errorf("%d of the history are %q; want %q", limit, versions(list), want)
		}
	}
	for page, want := range map[int]string{1: "11 10", 2: "9 2", 3: "1", 4: ""} {
		list, err := f.Updates.HistoryPage(t.Context(), dev, deployments.Page{Number: page, Size: 2})
		if ok(t, err); versions(list) != want {
			t.Errorf("page %d of the history is %q; want %q", page, versions(list), want)
		}
	}
	info, err := f.Updates.Info(t.Context(), up(12))
	if ok(t, err); !info.Unbegun {
		t.Errorf("an update that never began is %+v", info)
	}
}

func lastOfStatus(t *testing.T, f fixture) {
	f.create(t)
	ended := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for n, info := range []deployments.UpdateInfo{{Status: "succeeded", Ended: ended}, {Status: "failed", Ended: ended},
		{Status: "running"}, {Status: "cancelled", Ended: ended, Unbegun: true}} {
		info.Update = up(n + 1)
		ok(t, f.Updates.PutInfo(t.Context(), info))
	}
	if st, err := f.Status(t.Context(), dev); err != nil || st.Last == nil || st.Last.Update != up(2) {
		t.Errorf("the last update that ended is %+v, %v", st.Last, err)
	}
}

func drift(t *testing.T, f fixture) {
	f.create(t)
	_, err := f.Jobs.Drift(t.Context(), dev)
	wantCode(t, err, deployments.CodeNotFound)
	found := deployments.Drift{Update: up(1), Resources: []deployments.DriftedResource{{URN: "u", Gone: true}}}
	ok(t, f.Jobs.PutDrift(t.Context(), dev, found))
	found.Remediation = &deployments.UpdateName{StackName: dev, Version: "2"}
	ok(t, f.Jobs.PutDrift(t.Context(), dev, found))
	if got, err := f.Jobs.Drift(t.Context(), dev); err != nil || !reflect.DeepEqual(got, found) {
		t.Errorf("got %+v, %v", got, err)
	}
	if st, err := f.Status(t.Context(), dev); err != nil || st.Drift == nil || st.Drift.Resources != 1 ||
		!st.Drift.Remediated || st.Drifted() != 0 || st.Last != nil {
		t.Errorf("its status is %+v, %v", st, err)
	}
}

func bundles(t *testing.T, f fixture) {
	f.create(t)
	page, script := []byte("<p>hello"), []byte(strings.Repeat("x", 10_000))
	m := deployments.Manifest{Files: []deployments.File{
		{Path: "Pulumi.yaml", Digest: programs.Digest(script), Mode: 0o644, Size: 10_000},
		{Path: "www/index.html", Digest: programs.Digest(page), Mode: 0o644, Size: 8},
	}}
	missing, err := f.Programs.Missing(t.Context(), dev, m)
	if err != nil || len(missing) != 2 {
		t.Fatalf("got %q, %v", missing, err)
	}
	wantCode(t, f.Programs.PutFile(t.Context(), dev, programs.Digest(page), []byte("something else")),
		deployments.CodeInvalid)
	ok(t, f.Programs.PutFile(t.Context(), dev, programs.Digest(page), page))
	_, err = f.Programs.PutManifest(t.Context(), dev, m)
	wantCode(t, err, deployments.CodeInvalid)
	ok(t, f.Programs.PutFile(t.Context(), dev, programs.Digest(script), script))
	digest, err := f.Programs.PutManifest(t.Context(), dev, m)
	ok(t, err)
	got, err := f.Programs.Bundle(t.Context(), dev, digest)
	if err != nil || !reflect.DeepEqual(got, m) {
		t.Fatalf("got %+v, %v", got, err)
	}
	content, err := f.Programs.File(t.Context(), dev, m.Files[1].Digest)
	if err != nil || string(content) != string(page) {
		t.Fatalf("got %q, %v", content, err)
	}
	ok(t, f.CreateStack(t.Context(), prod, nil))
	if missing, err = f.Programs.Missing(t.Context(), prod, m); err != nil || len(missing) != 2 {
		t.Errorf("another stack misses %q, %v", missing, err)
	}
	for _, path := range []string{"../x", "/etc/passwd", "a/../../x", "", "..", "a\\b", "./a"} {
		_, err := f.Programs.Missing(t.Context(), dev, deployments.Manifest{
			Files: []deployments.File{{Path: path, Digest: programs.Digest(page)}}})
		wantCode(t, err, deployments.CodeInvalid)
	}
}

func tokens(t *testing.T, f fixture) {
	text, err := f.Access.CreateToken(t.Context(), deployments.Token{Name: "ci", Grant: &adminOfAll})
	ok(t, err)
	_, err = f.Access.CreateToken(t.Context(), deployments.Token{Name: "ci", Grant: &adminOfAll})
	wantCode(t, err, deployments.CodeExists)
	other, err := f.Access.CreateToken(t.Context(), deployments.Token{Name: "b-dev", Grant: &adminOfAll})
	ok(t, err)
	for _, text := range []string{text, other} {
		if got, err := f.Access.Authenticate(t.Context(), text); err != nil || !got.May(deployments.RoleAdmin, dev) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	for _, wrong := range []string{"", "x", text + "0", text[:len(text)-1], "dctl.none." + text[8:],
		strings.Replace(text, "ci", "b-dev", 1)} {
		_, err := f.Access.Authenticate(t.Context(), wrong)
		wantCode(t, err, deployments.CodeUnauthorized)
	}
	list, err := f.Access.ListTokens(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "b-dev" || list[1].Name != "ci" || list[1].Created.IsZero() {
		t.Errorf("got %+v, %v", list, err)
	}
	ok(t, f.Access.RemoveToken(t.Context(), "ci"))
	_, err = f.Access.Authenticate(t.Context(), text)
	wantCode(t, err, deployments.CodeUnauthorized)
	wantCode(t, f.Access.RemoveToken(t.Context(), "ci"), deployments.CodeNotFound)
}

func members(t *testing.T, f fixture) {
	viewer := deployments.Grant{Role: deployments.RoleViewer, Organization: dev.Organization}
	deployer := deployments.Grant{Role: deployments.RoleDeployer, Organization: dev.Organization,
		Stacks: []string{"*/dev"}}
	laptop := deployments.Token{Name: "laptop", Member: "ann", Organization: dev.Organization}
	_, err := f.Access.CreateToken(t.Context(), laptop)
	wantCode(t, err, deployments.CodeNotFound)
	ok(t, f.Access.GrantMember(t.Context(), "ann", viewer))
	text, err := f.Access.CreateToken(t.Context(), laptop)
	ok(t, err)
	may := func(role deployments.Role) bool {
		caller, err := f.Access.Authenticate(t.Context(), text)
		ok(t, err)
		return caller.May(role, dev) && caller.Name() == "ann"
	}
	if !may(deployments.RoleViewer) || may(deployments.RoleDeployer) {
		t.Error("the token of a viewer is not a viewer's")
	}
	ok(t, f.Access.GrantMember(t.Context(), "ann", deployer))
	if !may(deployments.RoleDeployer) {
		t.Error("a member was given a role, and their token does not have it")
	}
	wantCode(t, f.Access.RemoveMember(t.Context(), "ann", "elsewhere"), deployments.CodeNotFound)
	elsewhere := deployments.Grant{Role: deployments.RoleViewer, Organization: "elsewhere"}
	ok(t, f.Access.GrantMember(t.Context(), "ann", elsewhere))
	ok(t, f.Access.RemoveMember(t.Context(), "ann", dev.Organization))
	_, err = f.Access.Authenticate(t.Context(), text)
	wantCode(t, err, deployments.CodeUnauthorized)
	ok(t, f.Access.GrantMember(t.Context(), "ann", viewer)) // another one of the same name
	_, err = f.Access.Authenticate(t.Context(), text)
	wantCode(t, err, deployments.CodeUnauthorized)
	list, err := f.Access.ListMembers(t.Context())
	if err != nil || len(list) != 2 || list[0].Organization != "elsewhere" || !reflect.DeepEqual(*list[1].Grant, viewer) {
		t.Errorf("got %+v, %v", list, err)
	}
}

func configSecrets(t *testing.T, f fixture) {
	f.create(t)
	ok(t, f.CreateStack(t.Context(), prod, nil))
	sealed, err := f.Secrets.Encrypt(t.Context(), dev, []string{hush, ""})
	ok(t, err)
	plain, err := f.Secrets.Decrypt(t.Context(), dev, sealed)
	if err != nil || !reflect.DeepEqual(plain, []string{hush, ""}) {
		t.Fatalf("got %q, %v", plain, err)
	}
	_, err = f.Secrets.Decrypt(t.Context(), prod, sealed)
	wantCode(t, err, deployments.CodeInvalid)
}

// adminOfAll is what an admin of every organization has.
var adminOfAll = deployments.Grant{Role: deployments.RoleAdmin, Organization: deployments.AnyOrganization}
