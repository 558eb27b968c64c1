package fakecloud_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

func TestNamesAreUniqueWithinAKind(t *testing.T) {
	cloud := launch(t)
	must(t, 201, cloud.post("disk", object("", "a")))
	must(t, 409, cloud.post("disk", object("", "a")))
	must(t, 201, cloud.post("bucket", object("", "a")))
	must(t, 201, cloud.post("disk", object("", "")))
	must(t, 201, cloud.post("disk", object("", "")))
}

func TestObjectsAreReadUpdatedListedAndDeleted(t *testing.T) {
	cloud := launch(t)
	must(t, 201, cloud.post("disk", `{"id":"d1","name":"a","tags":{"urn":"u1"},"properties":{"size":1}}`))
	must(t, 201, cloud.post("disk", `{"id":"d2","tags":{"urn":"u2"}}`))
	must(t, 200, cloud.send("PUT", "disk/d1", `{"properties":{"size":2},"tags":{"urn":"u1"}}`))
	if body := must(t, 200, cloud.send("GET", "disk/d1", "")); !strings.Contains(body, `"size":2`) ||
		!strings.Contains(body, `"name":"a"`) {
		t.Errorf("read back: %s", body)
	}
	if body := must(t, 200, cloud.send("GET", "disk?tag.urn=u2", "")); strings.Contains(body, "d1") ||
		!strings.Contains(body, "d2") {
		t.Errorf("listed: %s", body)
	}
	must(t, 204, cloud.send("DELETE", "disk/d1", ""))
	must(t, 404, cloud.send("DELETE", "disk/d1", ""))
	must(t, 404, cloud.send("GET", "disk/d1", ""))
	must(t, 201, cloud.post("disk", object("", "a")))
	var ops []string
	for _, e := range effects(t, cloud) {
		ops = append(ops, string(e.Op)+" "+e.Name)
	}
	if got := strings.Join(ops, ", "); got != "create a, create , update a, delete a, create a" {
		t.Errorf("effects: %s", got)
	}
}

func TestARequestWaitsAtAGateUntilItIsOpened(t *testing.T) {
	for _, at := range []fakecloud.Moment{fakecloud.Before, fakecloud.After} {
		t.Run(string(at), func(t *testing.T) {
			cloud := launch(t)
			gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "g", At: at, Op: fakecloud.Create,
				Object: "web-*"})
			ok(t, err)
			must(t, 201, cloud.post("disk", object("", "db")))
			held := make(chan response, 1)
			go func() { held <- cloud.post("disk", object("", "web-1")) }()
			ok(t, gate.Wait(t.Context()))
			effected := len(effects(t, cloud)) == 2
			if effected != (at == fakecloud.After) {
				t.Errorf("at the gate, the effect is there: %v", effected)
			}
			ok(t, gate.Open(t.Context()))
			must(t, 201, <-held)
			must(t, 201, cloud.post("disk", object("", "web-2")))
		})
	}
}

func TestACallerThatDiesAtAGateHasNoEffectUnlessItIsLate(t *testing.T) {
	for _, late := range []bool{false, true} {
		cloud := launch(t)
		gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "g", Op: fakecloud.Create, Late: late})
		ok(t, err)
		dying, die := context.WithCancel(t.Context())
		gone := make(chan response, 1)
		go func() { gone <- cloud.with(dying, "POST", "disk", object("", "a")) }()
		ok(t, gate.Wait(t.Context()))
		die()
		if r := <-gone; r.err == nil {
			t.Fatalf("answered %d", r.status)
		}
		if !late {
			ok(t, gate.WaitEmpty(t.Context()))
		}
		ok(t, gate.Open(t.Context()))
		ok(t, gate.WaitEmpty(t.Context()))
		want := 0
		if late {
			want = 1
		}
		waittest.Until(t, "the effects are all there", func() bool { return len(effects(t, cloud)) == want })
	}
}

func TestFaultsStrikeAsOftenAsTheyShould(t *testing.T) {
	cloud := launch(t)
	ok(t, cloud.Set(t.Context(), fakecloud.Fault{
		Name: "busy", Do: fakecloud.Fail, Op: fakecloud.Create, Skip: 1, Times: 2, Status: 503, RetryAfter: 7}))
	must(t, 201, cloud.post("disk", object("", "")))
	if r := cloud.post("disk", object("", "")); r.status != 503 || r.header.Get("Retry-After") != "7" {
		t.Errorf("answered %d, Retry-After %q", r.status, r.header.Get("Retry-After"))
	}
	must(t, 503, cloud.post("disk", object("", "")))
	must(t, 201, cloud.post("disk", object("", "")))
	all, err := cloud.Faults(t.Context())
	ok(t, err)
	if all[0].Seen != 4 || all[0].Struck != 2 || all[0].Held != 0 {
		t.Errorf("counted %+v", all[0])
	}
}

func TestChanceStrikesTheSameRequestsWhateverTheirOrder(t *testing.T) {
	struck := func(seed uint64, order func(i int) int) (names []string) {
		cloud := launch(t)
		ok(t, cloud.Set(t.Context(), fakecloud.Fault{Name: "busy", Do: fakecloud.Fail, Status: 429, Chance: 0.2,
			Seed: seed}))
		for i := range 200 {
			cloud.owner = fmt.Sprintf("urn:pulumi:s::p::t::web-%03d", order(i))
			if cloud.post("disk", object("", "")).status == 429 {
				names = append(names, cloud.owner)
			}
		}
		slices.Sort(names)
		return names
	}
	forth, back := struck(1, func(i int) int { return i }), struck(1, func(i int) int { return 199 - i })
	if !slices.Equal(forth, back) || len(forth) < 20 || len(forth) > 60 {
		t.Errorf("struck %d one way and %d the other", len(forth), len(back))
	}
	if slices.Equal(forth, struck(2, func(i int) int { return i })) {
		t.Error("another seed strikes the same")
	}
}

func TestACrashDropsTheConnectionBeforeOrAfterTheEffect(t *testing.T) {
	for at, want := range map[fakecloud.Moment]int{fakecloud.Before: 0, fakecloud.After: 1} {
		cloud := launch(t)
		ok(t, cloud.Set(t.Context(), fakecloud.Fault{Name: "c", Do: fakecloud.Crash, At: at, Times: 1}))
		if r := cloud.post("disk", object("", "a")); r.err == nil {
			t.Errorf("%s: answered %d", at, r.status)
		}
		if got := len(effects(t, cloud)); got != want {
			t.Errorf("%s: %d effects", at, got)
		}
	}
}

func TestAHangEndsWhenTheFaultIsLifted(t *testing.T) {
	cloud := launch(t)
	ok(t, cloud.Set(t.Context(), fakecloud.Fault{Name: "h", Do: fakecloud.Hang}))
	hung := make(chan response, 1)
	go func() { hung <- cloud.post("disk", object("", "a")) }()
	ok(t, cloud.Gate("h").Wait(t.Context()))
	ok(t, cloud.Lift(t.Context(), "h"))
	if r := <-hung; r.err == nil {
		t.Errorf("answered %d", r.status)
	}
	must(t, 201, cloud.post("disk", object("", "a")))
}

func TestABadFaultIsRefused(t *testing.T) {
	cloud := launch(t)
	for _, f := range []fakecloud.Fault{{Name: "x", Do: fakecloud.Crash, Chance: 7}, {Name: "x", Do: "explode"},
		{Name: "x", Do: fakecloud.Fail}, {Name: "x", Do: fakecloud.Hang, At: "never"}} {
		if cloud.Set(t.Context(), f) == nil {
			t.Errorf("accepted %+v", f)
		}
	}
}

func TestOutsideChangesAreForeignUnlessTheObjectWasThere(t *testing.T) {
	cloud := launch(t)
	must(t, 201, cloud.post("disk", object("mine", "a")))
	ok(t, cloud.Put(t.Context(), fakecloud.Object{Kind: "disk", ID: "mine", Properties: map[string]any{"size": 9}}))
	ok(t, cloud.Put(t.Context(), fakecloud.Object{Kind: "disk", ID: "theirs", Name: "b"}))
	all, err := cloud.Objects(t.Context(), "disk")
	ok(t, err)
	if len(all) != 2 || all[0].Foreign || all[0].Name != "a" || all[0].Properties["size"] != 9.0 || !all[1].Foreign {
		t.Errorf("objects: %+v", all)
	}
	ok(t, cloud.Remove(t.Context(), "disk", "mine"))
	if cloud.Remove(t.Context(), "disk", "mine") == nil {
		t.Error("removed twice")
	}
	must(t, 409, cloud.post("disk", object("", "b")))
}

func TestTwoObjectsOfOneOwnerAreDuplicates(t *testing.T) {
	cloud := launch(t)
	cloud.owner, cloud.operation = "urn:pulumi:s::p::t::web", "op-1"
	must(t, 201, cloud.post("server", object("", "")))
	none, err := cloud.Duplicates(t.Context())
	ok(t, err)
	must(t, 201, cloud.post("server", object("", "")))
	two, err := cloud.Duplicates(t.Context())
	ok(t, err)
	if len(none) != 0 || len(two) != 1 || len(two[0]) != 2 {
		t.Errorf("before %v, after %v", none, two)
	}
	if log := effects(t, cloud); log[0].Repeat || !log[1].Repeat {
		t.Errorf("repeats: %+v", log)
	}
}

func TestAJournalOutlivesTheProcess(t *testing.T) {
	journal := filepath.Join(t.TempDir(), "journal")
	first := launch(t, "-journal", journal)
	must(t, 201, first.post("disk", object("", "a")))
	must(t, 201, first.post("disk", object("b", "b")))
	must(t, 204, first.send("DELETE", "disk/b", ""))
	ok(t, first.Kill())
	second := launch(t, "-journal", journal)
	if log := effects(t, second); len(log) != 3 {
		t.Errorf("effects: %+v", log)
	}
	must(t, 409, second.post("disk", object("", "a")))
	must(t, 201, second.post("disk", object("b", "b")))
}

func TestAWrongTokenIsRefused(t *testing.T) {
	t.Setenv("FAKECLOUD_TOKEN", "hush")
	cloud := launch(t)
	must(t, 401, cloud.post("disk", object("", "")))
	cloud.token = "hush"
	must(t, 201, cloud.post("disk", object("", "")))
}

// binary is cmd/fakecloud, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fakecloud")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary = filepath.Join(dir, "fakecloud")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/fakecloud").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// tenant is a cloud and somebody who uses it.
type tenant struct {
	*fakecloud.Process
	owner, operation, token string
}

type response struct {
	status int
	header http.Header
	body   string
	err    error
}

func launch(t *testing.T, args ...string) *tenant {
	t.Helper()
	p, err := fakecloud.Launch(binary, args...)
	ok(t, err)
	t.Cleanup(func() { _ = p.Stop() }) // a test may have killed it
	return &tenant{Process: p}
}

func (c *tenant) post(kind, body string) response { return c.send("POST", kind, body) }

func (c *tenant) send(method, path, body string) response {
	return c.with(context.Background(), method, path, body)
}

func (c *tenant) with(ctx context.Context, method, path, body string) response {
	req, err := http.NewRequestWithContext(ctx, method, c.URL()+"/v1/objects/"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return response{err: err}
	}
	req.Header.Set(fakecloud.HeaderOwner, c.owner)
	req.Header.Set(fakecloud.HeaderOperation, c.operation)
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{err: err}
	}
	all, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, string(all), errors.Join(err, res.Body.Close())}
}

func object(id, name string) string {
	b, _ := json.Marshal(fakecloud.Object{ID: id, Name: name})
	return string(b)
}

func effects(t *testing.T, c *tenant) []fakecloud.Effect {
	t.Helper()
	log, err := c.Effects(t.Context(), 0)
	ok(t, err)
	return log
}

func must(t *testing.T, status int, r response) string {
	t.Helper()
	if r.err != nil || r.status != status {
		t.Fatalf("answered %d %s (%v), want %d", r.status, r.body, r.err, status)
	}
	return r.body
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
