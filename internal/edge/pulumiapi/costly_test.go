package pulumiapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestOutputsAreAnsweredAsTheyAreStored(t *testing.T) {
	b := newBench(t)
	outputs := `{"a":[` + strings.Repeat(`{"":0},`, 50_000) + `12345678901234567890]}`
	state := `{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"metadata":{},"secrets_providers":` +
		`{"type":"service","state":{"owner":"acme","project":"shop","stack":"dev"}},"resources":[{"urn":` +
		`"urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev","type":"pulumi:pulumi:Stack","outputs":` + outputs + `}]}`
	if _, err := b.store.ImportAsIs(t.Context(), statestore.Exchange{Stack: dev}, apitype.UntypedDeployment{Version: 3,
		Deployment: json.RawMessage(state)}); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	said := b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev/outputs", "token viewer", "")
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 40*uint64(len(state)) {
		t.Errorf("the outputs of a state of %d bytes take %d", len(state), took)
	}
	var answer map[string]json.RawMessage
	if err := json.Unmarshal([]byte(said), &answer); err != nil || string(answer["outputs"]) != outputs ||
		!strings.Contains(string(answer["secretsProviders"]), `"owner":"acme"`) {
		t.Errorf("they are answered %.300s, %v", said, err)
	}
}

// counted is an answer of which only the length is kept.
type counted struct {
	header http.Header
	status int
	length int
}

func (c *counted) Header() http.Header    { return c.header }
func (c *counted) WriteHeader(status int) { c.status = status }
func (c *counted) Write(p []byte) (int, error) {
	c.length += len(p)
	return len(p), nil
}

// TestAnExportIsSentWithoutACopyOfTheState counts the bytes that the export of a large state allocates.
func TestAnExportIsSentWithoutACopyOfTheState(t *testing.T) {
	b := newBench(t)
	one := `{"urn":"urn:pulumi:dev::shop::t:m:T::%d","type":"t:m:T","outputs":{"v":"` + strings.Repeat("v", 16<<10) + `"}}`
	var resources []string
	for n := range 1024 {
		resources = append(resources, fmt.Sprintf(one, n))
	}
	state := `{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"metadata":{},"secrets_providers":` +
		`{"type":"service","state":{"owner":"acme","project":"shop","stack":"dev"}},"resources":[` +
		strings.Join(resources, ",") + `]}`
	if _, err := b.store.ImportAsIs(t.Context(), statestore.Exchange{Stack: dev}, apitype.UntypedDeployment{Version: 3,
		Deployment: json.RawMessage(state)}); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/api/stacks/acme/shop/dev/export", nil)
	r.Header.Set("Authorization", "token viewer")
	answer := &counted{header: http.Header{}, status: http.StatusOK}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.handler.ServeHTTP(answer, r)
	runtime.ReadMemStats(&after)
	if answer.status != http.StatusOK || answer.length < len(state) {
		t.Errorf("it is answered %d with %d bytes", answer.status, answer.length)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 2*uint64(len(state)) {
		t.Errorf("the export of a state of %d bytes allocates %d", len(state), took)
	}
}

func TestABodyHasFewMembersAroundItsLargeOne(t *testing.T) {
	b := newBench(t)
	var many bytes.Buffer
	for i := range 101 {
		fmt.Fprintf(&many, `,"%d":1`, i)
	}
	for _, path := range []string{"/dev/batch-encrypt", "/dev/import", ""} {
		status, said, _ := b.do(http.MethodPost, "/api/stacks/acme/shop"+path, "token admin",
			strings.NewReader(`{"plaintexts":[]`+many.String()+`}`))
		if status != http.StatusRequestEntityTooLarge || !strings.Contains(said, "100 members") {
			t.Errorf("%q is answered %d: %s", path, status, said)
		}
	}
}

// recorded is a service whose stack has had so many updates, each with a large configuration.
type recorded struct {
	offline
	updates *deployments.Page // that was asked for
}

func (r recorded) HistoryPage(
	_ context.Context, _ deployments.StackName, p deployments.Page,
) (list []deployments.UpdateInfo, err error) {
	*r.updates = p
	for range min(p.Size, 100) {
		list = append(list, deployments.UpdateInfo{Update: deployments.UpdateName{StackName: dev, Version: "1"}})
	}
	return list, nil
}

func (r recorded) Request(context.Context, deployments.UpdateName) (deployments.UpdateRequest, error) {
	return deployments.UpdateRequest{Lease: &deployments.Lease{}, Config: map[string]deployments.ConfigValue{
		"shop:a": {Value: strings.Repeat("a", 1<<20)}}}, nil
}

func TestAHistoryIsAnsweredInPages(t *testing.T) {
	b := newBench(t)
	var asked deployments.Page
	b.config.Service = recorded{offline{b.server, b.store}, &asked}
	b.serve()
	const path = "/api/stacks/acme/shop/dev/updates"
	said := b.want(http.StatusRequestEntityTooLarge, http.MethodGet, path, "token viewer", "")
	if !strings.Contains(said, "--page-size") || asked.Size != 1000 {
		t.Errorf("all of it is answered %.300s, and %+v was asked for", said, asked)
	}
	b.want(http.StatusRequestEntityTooLarge, http.MethodGet, path+"?page=1&pageSize=100000000", "token viewer", "")
	if asked.Size != 1000 {
		t.Errorf("a huge page asks for %d updates", asked.Size)
	}
	b.want(http.StatusOK, http.MethodGet, path+"?page=1&pageSize=10", "token viewer", "")
}

// begun is a service whose updates begin at once.
type begun struct {
	offline
	started  chan struct{}
	exported chan struct{}
}

func (s begun) CreateUpdate(context.Context, deployments.UpdateRequest) (string, error) {
	return "mine", nil
}

func (s begun) StartUpdate(context.Context, deployments.StartRequest) (deployments.Leased, error) {
	return deployments.Leased{ID: "mine", Update: deployments.UpdateName{StackName: dev, Version: "pmine"}}, nil
}

func (s begun) Head(context.Context, deployments.StackName) (statestore.Head, error) {
	select {
	case s.started <- struct{}{}:
	default:
	}
	return statestore.Head{Version: 1}, nil
}

func (s begun) Export(
	context.Context, deployments.StackName, int, deployments.SecretsProvider, bool,
) (apitype.UntypedDeployment, error) {
	close(s.exported)
	return apitype.UntypedDeployment{}, io.EOF
}

// The begin of an update answers with a whole deployment, as an export does, and few of those are in memory at a time.
func TestABeginWaitsForItsPlaceToAnswerWithADeployment(t *testing.T) {
	b := newBench(t)
	s := begun{offline{b.server, b.store}, make(chan struct{}), make(chan struct{})}
	e, err := newEdge(Config{Service: s, Log: slog.New(slog.DiscardHandler),
		Authority: callers{"deployer": caller("deployer", deployments.RoleDeployer, "acme")}})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // all that an organization has
		release, err := e.gate.HoldExport(t.Context(), "acme")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
	}
	server := httptest.NewServer(http.HandlerFunc(e.serve))
	ctx, leave := context.WithCancel(t.Context())
	body := `{"updateKind":"preview"}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/api/stacks/acme/shop/dev/begin-update",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "token deployer")
	go func() {
		<-s.started
		leave()
	}()
	if answer, err := server.Client().Do(r); err == nil {
		_ = answer.Body.Close()
		t.Errorf("it is answered %d", answer.StatusCode)
	}
	server.Close()
	select {
	case <-s.exported:
		t.Error("a deployment is read without a place for it")
	default:
	}
}
