package pulumiapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// crowded is a service whose stack another update has until it is released.
type crowded struct {
	offline
	release chan error // the end of the wait
}

func (c crowded) Stack(context.Context, deployments.StackName) (deployments.StackInfo, error) {
	return deployments.StackInfo{Stack: dev, Active: &deployments.UpdateInfo{
		Update: deployments.UpdateName{StackName: dev, Version: "6"}, Kind: engine.KindUp, Initiator: "ann",
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}, nil
}

func (c crowded) StartUpdate(ctx context.Context, r deployments.StartRequest) (deployments.Leased, error) {
	l := deployments.Leased{ID: r.ID, Update: deployments.UpdateName{StackName: dev, Version: "7"},
		Expires: time.Now().Add(time.Hour)}
	if r.Patience() == 0 {
		return l, deployments.Errorf(deployments.CodeConflict, "the stack stays busy: update 6 (up) of ann has it")
	}
	select {
	case err := <-c.release:
		return l, err
	case <-ctx.Done():
		return l, ctx.Err()
	}
}

// newCrowded serves a busy stack, with signs of life each millisecond.
func newCrowded(t *testing.T) (crowded, *httptest.Server) {
	t.Helper()
	return newCrowdedBy(t, func(c crowded) Service { return c })
}

func newCrowdedBy(t *testing.T, by func(crowded) Service) (crowded, *httptest.Server) {
	t.Helper()
	b := newBench(t)
	c := crowded{offline{b.server, b.store}, make(chan error)}
	e, err := newEdge(Config{Service: by(c), Log: slog.New(slog.DiscardHandler),
		Authority: callers{"deployer": caller("deployer", deployments.RoleDeployer, "acme")}})
	if err != nil {
		t.Fatal(err)
	}
	e.firstBeat, e.nextBeat, e.reasonEvery = time.Millisecond, time.Millisecond, time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(server.Close)
	return c, server
}

// start starts an update, and returns the answer as soon as it begins.
func start(t *testing.T, server *httptest.Server, headers ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		server.URL+"/api/stacks/acme/shop/dev/update/mine", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "token deployer")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

func TestAStartThatWaitsShowsSignsOfLifeAndSaysBehindWhom(t *testing.T) {
	c, server := newCrowded(t)
	answer := start(t, server) // it begins while the stack is busy
	if warning := answer.Header.Get(warningHeader); answer.StatusCode != http.StatusOK || !strings.Contains(warning,
		"update 6 (up) of ann has it since 2026-01-02 03:04:05 UTC") {
		t.Errorf("it begins with %d and warns %q", answer.StatusCode, warning)
	}
	body := bufio.NewReader(answer.Body)
	for range 3 {
		if sign, err := body.ReadByte(); err != nil || sign != ' ' {
			t.Fatalf("its sign of life is %q, %v", sign, err)
		}
	}
	c.release <- nil
	rest, err := io.ReadAll(body)
	var lease apitype.StartUpdateResponse
	if err != nil || json.Unmarshal(rest, &lease) != nil || lease.Version != 7 || lease.Token == "" {
		t.Errorf("it ends with %q, %v", rest, err)
	}
}

// deserted is a service without a worker until it is released.
type deserted struct{ crowded }

func (d deserted) StartUpdate(ctx context.Context, r deployments.StartRequest) (deployments.Leased, error) {
	r.NoWorker(deployments.Errorf(deployments.CodeNoWorker, "Waiting for a worker: none takes this up."))
	return d.crowded.StartUpdate(ctx, r)
}

func TestAStartThatWaitsForAWorkerSaysSo(t *testing.T) {
	c, server := newCrowdedBy(t, func(c crowded) Service { return deserted{c} })
	answer := start(t, server)
	if warning := answer.Header.Get(warningHeader); answer.StatusCode != http.StatusOK ||
		warning != "Waiting for a worker: none takes this up." {
		t.Errorf("it begins with %d and warns %q", answer.StatusCode, warning)
	}
	c.release <- nil
	var lease apitype.StartUpdateResponse
	if err := json.NewDecoder(answer.Body).Decode(&lease); err != nil || lease.Version != 7 {
		t.Errorf("it ends with %+v, %v", lease, err)
	}
}

// noticedLate is a service without a worker that finds that out after the stack was looked at a few times.
type noticedLate struct {
	crowded
	looked chan struct{}
}

func (n noticedLate) Stack(context.Context, deployments.StackName) (deployments.StackInfo, error) {
	select {
	case n.looked <- struct{}{}:
	default:
	}
	return deployments.StackInfo{Stack: dev}, nil
}

func (n noticedLate) StartUpdate(ctx context.Context, r deployments.StartRequest) (deployments.Leased, error) {
	most := r.Patience()
	r.Patience = func() time.Duration { return most }
	for range 3 {
		<-n.looked
	}
	return deserted{n.crowded}.StartUpdate(ctx, r)
}

// An answer has its headers once: it does not begin before it is known what the start waits for.
func TestAStartSaysWhatItWaitsForHoweverLateThatIsKnown(t *testing.T) {
	c, server := newCrowdedBy(t, func(c crowded) Service { return noticedLate{c, make(chan struct{})} })
	answer := start(t, server)
	if warning := answer.Header.Get(warningHeader); warning != "Waiting for a worker: none takes this up." {
		t.Errorf("it warns %q", warning)
	}
	c.release <- nil
}

// endsMeanwhile is a service whose start ends while somebody looks at the stack, which takes as long as that is waited
// for.
type endsMeanwhile struct {
	crowded
	looking chan struct{}
}

func (e endsMeanwhile) Stack(ctx context.Context, _ deployments.StackName) (deployments.StackInfo, error) {
	close(e.looking)
	<-ctx.Done()
	return deployments.StackInfo{}, ctx.Err()
}

func (e endsMeanwhile) StartUpdate(ctx context.Context, r deployments.StartRequest) (deployments.Leased, error) {
	r.Patience()
	<-e.looking
	return deployments.Leased{}, deployments.Errorf(deployments.CodeConflict, "update 7 was cancelled")
}

func TestAStartThatEndsBeforeItsAnswerBeginsHasAStatus(t *testing.T) {
	_, server := newCrowdedBy(t, func(c crowded) Service { return endsMeanwhile{c, make(chan struct{})} })
	if answer := start(t, server); answer.StatusCode != http.StatusConflict {
		t.Errorf("it is answered with %d", answer.StatusCode)
	}
}

func TestAnErrorAfterSignsOfLifeIsNoLease(t *testing.T) {
	c, server := newCrowded(t)
	answer := start(t, server)
	c.release <- deployments.Errorf(deployments.CodeConflict, "update 7 was cancelled")
	body, err := io.ReadAll(answer.Body)
	var lease apitype.StartUpdateResponse
	if err != nil || json.Unmarshal(body, &lease) == nil || !strings.Contains(string(body), "update 7 was cancelled") {
		t.Errorf("it ends with %q, %v", body, err)
	}
}

func TestAClientThatCannotWaitIsToldWhoHasTheStack(t *testing.T) {
	_, server := newCrowded(t)
	for _, prefer := range []string{"wait=0", "respond-async, wait=0"} {
		answer := start(t, server, "Prefer", prefer)
		var said apitype.ErrorResponse
		if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || answer.StatusCode != http.StatusConflict ||
			!strings.Contains(said.Message, "update 6 (up) of ann") {
			t.Errorf("with %q it is answered %d: %+v %v", prefer, answer.StatusCode, said, err)
		}
	}
}

func TestNobodyWaitsForAStackWhoseTagSaysSo(t *testing.T) {
	c, server := newCrowded(t)
	if err := c.store.TagStack(t.Context(), dev, map[string]string{deployments.TagOnBusy: "fail"}); err != nil {
		t.Fatal(err)
	}
	answer := start(t, server)
	var said apitype.ErrorResponse
	if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || answer.StatusCode != http.StatusConflict ||
		!strings.Contains(said.Message, "update 6 (up) of ann") {
		t.Errorf("it is answered %d: %+v %v", answer.StatusCode, said, err)
	}
}

func TestAClientSaysHowLongItWaits(t *testing.T) {
	for prefer, want := range map[string]time.Duration{
		"": deployments.LeasePatience, "wait=7": 7 * time.Second, "Wait=7": 7 * time.Second,
		"wait=-1": deployments.LeasePatience, "wait=x": deployments.LeasePatience, "wait": deployments.LeasePatience,
		"wait=99999999999": deployments.LeasePatience,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Prefer", prefer)
		if got := (&call{Request: r}).patience(); got != want {
			t.Errorf("%q waits for %s, not %s", prefer, got, want)
		}
	}
	old := httptest.NewRequest(http.MethodPost, "/", nil)
	old.ProtoMajor, old.ProtoMinor = 1, 0
	if got := (&call{Request: old}).patience(); got != 0 {
		t.Errorf("a client that takes no pieces waits for %s", got)
	}
}
