package pulumiapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/internal/service/identity"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

var dev = deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}

// callers are tokens by their text.
type callers map[string]deployments.Caller

func (c callers) Authenticate(_ context.Context, text string) (deployments.Caller, error) {
	caller, ok := c[text]
	if !ok {
		return caller, deployments.Errorf(deployments.CodeUnauthorized, "the service does not know this token")
	}
	return caller, nil
}

// both are tokens of tests, and those of a store.
type both struct {
	store *statestore.Store
	callers
}

func (b both) Authenticate(ctx context.Context, text string) (deployments.Caller, error) {
	if strings.HasPrefix(text, "dctl.") {
		return b.store.Access.Authenticate(ctx, text)
	}
	return b.callers.Authenticate(ctx, text)
}

func caller(name string, role deployments.Role, organization string) deployments.Caller {
	return deployments.Caller{Token: name, Authority: deployments.Authority{Grants: [][]deployments.Grant{
		{{Role: role, Organization: organization}}}}}
}

// log keeps the audit log in memory.
type log struct {
	mu      sync.Mutex
	entries []deployments.AuditEntry
}

func (l *log) Record(_ context.Context, e deployments.AuditEntry, _ bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	return nil
}

// offline is a service that asks no workflow.
type offline struct {
	*service.Service
	store *statestore.Store
}

func (o offline) Stack(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	return o.store.Stack(ctx, name)
}

func (o offline) StackBriefly(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	return o.store.Stack(ctx, name)
}

// bench is an edge over a store in memory. Its service has no Temporal.
type bench struct {
	testing.TB
	store   *statestore.Store
	handler http.Handler
	log     *log
	server  *service.Service
	memory  *mempool.Pool
	config  Config // of the handler
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return newBenchWith(t, slog.New(slog.DiscardHandler))
}

func newBenchWith(t testing.TB, logger *slog.Logger) *bench {
	t.Helper()
	objects := storetest.NewContended(&bucket.Memory{})
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	b := &bench{TB: t, store: store, log: &log{}, server: service.New(nil, store, service.Readers{}),
		memory: grpcapi.NewMemory()}
	b.server.Identities = identity.New(&outbound.Guard{Private: true})
	b.config = Config{Service: offline{b.server, store}, Auditor: b.log, Log: logger, Memory: b.memory,
		Authority: both{store, callers{"admin": caller("admin", deployments.RoleAdmin, "acme"),
			"deployer": caller("deployer", deployments.RoleDeployer, "acme"),
			"viewer":   caller("viewer", deployments.RoleViewer, "acme"),
			"stranger": caller("stranger", deployments.RoleAdmin, "other"),
			"nobody":   {Token: "nobody"}}}}
	b.serve()
	return b
}

// serve has the edge serve as its configuration says.
func (b *bench) serve() {
	b.Helper()
	var err error
	if b.handler, err = Handler(b.config); err != nil {
		b.Fatal(err)
	}
}

// do makes a call with an authorization header, and returns the status, the body and the headers of the answer.
func (b *bench) do(method, path, authorization string, body io.Reader, headers ...string) (int, string, http.Header) {
	b.Helper()
	r := httptest.NewRequest(method, path, body)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// want makes a call that must be answered with a status; an error must be an ErrorResponse with it.
func (b *bench) want(status int, method, path, authorization string, body string) string {
	b.Helper()
	got, said, _ := b.do(method, path, authorization, strings.NewReader(body))
	if got != status {
		b.Errorf("%s %s is answered %d, not %d: %s", method, path, got, status, said)
	}
	var e apitype.ErrorResponse
	if got >= 400 && method != http.MethodHead && (json.Unmarshal([]byte(said), &e) != nil || e.Code != got ||
		e.Message == "") {
		b.Errorf("%s %s is answered %q, which is not an ErrorResponse", method, path, said)
	}
	return said
}

func TestCallsAreCountedByTheirRoutesAndNotByTheirPaths(t *testing.T) {
	b := newBench(t)
	var counted []string
	b.config.Counted = func(route string, status int, took time.Duration) {
		counted = append(counted, fmt.Sprint(route, " ", status))
		if took <= 0 {
			t.Errorf("%s took %s", route, took)
		}
	}
	b.serve()
	b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev", "token viewer", "")
	b.want(http.StatusUnauthorized, http.MethodGet, "/api/stacks/acme/shop/dev", "token guessed", "")
	b.want(http.StatusNotFound, http.MethodGet, "/api/wp-login.php", "", "")
	want := []string{"GET /api/stacks/{org}/{project}/{stack} 200", "GET /api/stacks/{org}/{project}/{stack} 401",
		"unknown 404"}
	if !slices.Equal(counted, want) {
		t.Errorf("they are counted as %q", counted)
	}
}

func TestUnknownPathsAreNotFoundAndRefusedOnesSayWhy(t *testing.T) {
	b := newBench(t)
	for path, why := range map[string]string{
		"/": "does not serve", "/api": "does not serve", "/api/nothing": "does not serve",
		"/api/orgs/acme/teams":       noRoles,
		"/api/esc/environments/acme": noEnvironments, "/api/console/orgs/acme/integrations/github-app": noGitHubApp,
		"/api/stacks/acme/shop/dev/../../../tokens": "does not serve", "/api//user": "does not serve",
		"/api/user/%2e%2e/x": "does not serve",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, "STRANGE"} {
			if said := b.want(http.StatusNotFound, method, path, "token admin", ""); !strings.Contains(said, why) {
				t.Errorf("%s %s is answered %s, which does not say %q", method, path, said, why)
			}
		}
	}
}

func TestARefusedCallIsInTheAuditLog(t *testing.T) {
	b := newBench(t)
	b.want(http.StatusForbidden, http.MethodDelete, "/api/stacks/acme/shop/dev?force=true", "token deployer", "")
	b.want(http.StatusForbidden, http.MethodPost, "/api/stacks/acme/shop/dev/encrypt", "token viewer", "{}")
	b.want(http.StatusNoContent, http.MethodPatch, "/api/stacks/acme/shop/dev/tags", "token deployer", `{"a":"b"}`)
	b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev/export", "token viewer", "")
	var got []string
	for _, e := range b.log.entries {
		got = append(got, e.Method+" "+e.Token+" "+e.Stack+" "+string(e.Code))
	}
	want := []string{"Stacks/RemoveStack deployer shop/dev forbidden", "Stacks/Encrypt viewer shop/dev forbidden",
		"Stacks/TagStack deployer shop/dev ", "Stacks/Export viewer shop/dev "}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has\n%q, want\n%q", got, want)
	}
}

// zipped compresses a text.
func zipped(t testing.TB, text []byte) *bytes.Buffer {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &packed
}

func TestABodyThatGrowsWhenItIsDecompressedIsTooLarge(t *testing.T) {
	b := newBench(t)
	bomb := zipped(t, append([]byte(`{"plaintexts":["`), bytes.Repeat([]byte("A"), batchBody+1)...))
	got, said, _ := b.do(http.MethodPost, "/api/stacks/acme/shop/dev/batch-encrypt", "token deployer", bomb,
		"Content-Encoding", "gzip")
	if got != http.StatusRequestEntityTooLarge {
		t.Errorf("it is answered %d: %s", got, said)
	}
	got, said, _ = b.do(http.MethodPost, "/api/stacks/acme/shop/dev/encrypt", "token deployer",
		strings.NewReader("not gzip"), "Content-Encoding", "gzip")
	if got != http.StatusBadRequest {
		t.Errorf("what is not gzip is answered %d: %s", got, said)
	}
}

func TestAClientThatWritesATooLargeBodyToItsEndIsAnswered(t *testing.T) {
	b := newBench(t)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	const size = smallBody + 8<<20 // more than the buffers of a connection
	for name, header := range map[string]string{
		"of a size that is said": fmt.Sprintf("Content-Length: %d", size), "in pieces": "Transfer-Encoding: chunked",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(waittest.Patience))
			body := bytes.Repeat([]byte("A"), size)
			if strings.HasPrefix(header, "Transfer") {
				body = fmt.Appendf(nil, "%x\r\n%s\r\n0\r\n\r\n", size, body)
			}
			request := fmt.Appendf(nil, "POST /api/stacks/acme/shop/dev/encrypt HTTP/1.1\r\nHost: x\r\n"+
				"Authorization: token deployer\r\n%s\r\n\r\n%s", header, body)
			if _, err := conn.Write(request); err != nil {
				t.Fatalf("the body cannot be written: %v", err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || answer.StatusCode != http.StatusRequestEntityTooLarge {
				t.Fatalf("it is answered %v, %v", answer, err)
			}
			_ = answer.Body.Close()
		})
	}
}

// TestASmallBodyWaitsForNoMemoryAndALargeOneOnlyUntilThereIsSome runs in a bubble, whose time is not the machine's.
func TestASmallBodyWaitsForNoMemoryAndALargeOneOnlyUntilThereIsSome(t *testing.T) {
	newBench(t) // the compressor of the process must not be of a bubble
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		const path = "/api/stacks/acme/shop/dev/batch-encrypt"
		values := func(n int) []byte { return []byte(`{"plaintexts":["` + strings.Repeat("YWFh", n/4) + `"]}`) }
		all := b.memory.Claim("evil", nil)
		if err := all.Take(t.Context(), math.MaxInt64, 0); err != nil {
			t.Fatal(err)
		}
		got, said, _ := b.do(http.MethodPost, path, "token deployer", zipped(t, values(freeBody/2)),
			"Content-Encoding", "gzip")
		if got != http.StatusOK {
			t.Errorf("a small one is answered %d: %s", got, said)
		}
		for _, body := range [][]byte{values(2 * freeBody), values(2 * mempool.Step)} {
			gone, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // it waits for longer
			defer cancel()
			r := httptest.NewRequestWithContext(gone, http.MethodPost, path, bytes.NewReader(body))
			r.Header.Set("Authorization", "token deployer")
			w := httptest.NewRecorder()
			b.handler.ServeHTTP(w, r)
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("a large one is answered %d: %s", w.Code, w.Body)
			}
		}
		all.Release()
		b.want(http.StatusOK, http.MethodPost, path, "token deployer", string(values(2*mempool.Step)))
	})
}

// TestABodyTakesTheMemoryOfItsTextAndOfWhatIsMadeOfIt has nearly as much memory as a body needs, and then as much: its
// text as it arrives, copies of that, and the values that are made of it.
func TestABodyTakesTheMemoryOfItsTextAndOfWhatIsMadeOfIt(t *testing.T) {
	const length = 2 * mempool.Step
	text := strings.Repeat("YWFh", length/4)
	for name, c := range map[string]struct{ path, body string }{
		"all of it":              {"/api/stacks/acme/shop/dev/encrypt", `{"plaintext":"` + text + `"}`},
		"what is beside a state": {"/api/stacks/acme/shop/dev/import", `{"x":"` + text + `","deployment":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, free := range []int64{6*length - 3*freeBody, 12 * length} {
				b := newBench(t)
				b.config.Memory = mempool.New(16 * length)
				b.serve()
				all := b.config.Memory.Claim("evil", nil)
				if err := all.Take(t.Context(), 16*length-free, 0); err != nil {
					t.Fatal(err)
				}
				short, ctx := free < 6*length, waittest.Context(t)
				if short { // it waits for longer
					var cancel func()
					ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
					defer cancel()
				}
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, c.path, strings.NewReader(c.body))
				r.Header.Set("Authorization", "token deployer")
				w := httptest.NewRecorder()
				b.handler.ServeHTTP(w, r)
				if short != (w.Code >= http.StatusInternalServerError) { // however soon it is gone
					t.Errorf("with %d bytes it is answered %d: %.200s", free, w.Code, w.Body)
				}
			}
		})
	}
}

// TestSlowBodiesOfAnOrganizationHoldUpNobodyElse runs in a bubble, whose time is not the machine's.
func TestSlowBodiesOfAnOrganizationHoldUpNobodyElse(t *testing.T) {
	newBench(t) // the compressor of the process must not be of a bubble
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.config.Memory = mempool.New(16 << 20)
		p := serve(t, b.config)
		ctx, end := context.WithCancel(t.Context())
		var flood sync.WaitGroup
		defer flood.Wait()
		defer end()
		call := func(host, path, token string, body io.Reader, size int64) (int, string) {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://service"+path, body)
			if err != nil {
				return 0, err.Error()
			}
			r.ContentLength = size
			r.Header.Set("Authorization", token)
			client := p.from(host)
			client.Timeout = 0
			answer, err := client.Do(r)
			if err != nil {
				return 0, err.Error()
			}
			defer func() { _ = answer.Body.Close() }()
			text, _ := io.ReadAll(answer.Body) // the status says enough
			return answer.StatusCode, string(text)
		}
		for range 20 {
			flood.Go(func() {
				for ctx.Err() == nil {
					begin := strings.NewReader(`{"a":"` + strings.Repeat("x", 3<<20))
					call("203.0.113.1", "/api/stacks/other/shop/dev/import", "token stranger",
						io.MultiReader(begin, drip{ctx}), 48<<20)
					<-time.After(100 * time.Millisecond)
				}
			})
		}
		<-time.After(time.Second)
		for range 3 {
			body := `{"plaintexts":["` + strings.Repeat("YWFh", 1<<18) + `"]}`
			begun := time.Now()
			status, text := call("198.51.100.1", "/api/stacks/acme/shop/dev/batch-encrypt", "token deployer",
				strings.NewReader(body), int64(len(body)))
			if took := time.Since(begun); status != http.StatusOK || took > 5*time.Second {
				t.Errorf("another organization is answered %d after %s: %.200s", status, took, text)
			}
		}
	})
}

func TestValuesAreEncryptedAndDecryptedByteByByte(t *testing.T) {
	b := newBench(t)
	plain := []byte{0, 0xff, 0xfe, 'x', '"'}
	ask, err := json.Marshal(apitype.EncryptValueRequest{Plaintext: plain})
	if err != nil {
		t.Fatal(err)
	}
	_, said, _ := b.do(http.MethodPost, "/api/stacks/acme/shop/dev/encrypt", "token deployer",
		zipped(t, ask), "Content-Encoding", "gzip")
	var sealed apitype.EncryptValueResponse
	if err := json.Unmarshal([]byte(said), &sealed); err != nil || bytes.Contains(sealed.Ciphertext, plain) {
		t.Fatalf("it is answered %s", said)
	}
	ask, err = json.Marshal(apitype.BatchDecryptRequest{Ciphertexts: [][]byte{sealed.Ciphertext}})
	if err != nil {
		t.Fatal(err)
	}
	var opened apitype.BatchDecryptResponse
	if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodPost, "/api/stacks/acme/shop/dev/batch-decrypt",
		"token deployer", string(ask))), &opened); err != nil {
		t.Fatal(err)
	}
	for _, value := range opened.Plaintexts {
		if !bytes.Equal(value, plain) {
			t.Errorf("it is decrypted as %q", value)
		}
	}
	if len(opened.Plaintexts) != 1 {
		t.Errorf("%d values are answered", len(opened.Plaintexts))
	}
}

func TestTheCapabilitiesAreOnesThatTheClientCanRead(t *testing.T) {
	b := newBench(t)
	var answer apitype.CapabilitiesResponse
	if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet, "/api/capabilities", "", "")),
		&answer); err != nil {
		t.Fatal(err)
	}
	c, err := answer.Parse()
	if err != nil || !c.BatchEncryption || c.DeltaCheckpointUpdates == nil || c.DeploymentSchemaVersion != 4 ||
		!c.BeginUpdate || !c.StackOutputs || c.APIVersion == nil {
		t.Errorf("they are %+v, %v", c, err)
	}
	if c.CoherenceWindowsVersion != 0 {
		t.Error("coherence windows are offered, and not served")
	}
}

func TestTheStateOfAStackWithoutUpdatesIsNull(t *testing.T) {
	b := newBench(t)
	if said := b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev/export", "token viewer",
		""); said != `{"version":3,"deployment":null}` {
		t.Errorf("it is %s", said)
	}
}

func TestPreviewsAreListedTheNewestFirst(t *testing.T) {
	b := newBench(t)
	const path = "/api/stacks/acme/shop/dev/updates/latest/previews"
	if said := b.want(http.StatusOK, http.MethodGet, path, "token viewer", ""); said != `{"updates":[]}` {
		t.Errorf("without a preview it is %s", said)
	}
	for i, version := range []string{"p-b", "p-a", "3"} {
		info := deployments.UpdateInfo{Update: deployments.UpdateName{StackName: dev, Version: version},
			DryRun: version != "3", Started: time.Unix(int64(i), 0)}
		if err := b.store.Updates.PutInfo(t.Context(), info); err != nil {
			t.Fatal(err)
		}
	}
	if said := b.want(http.StatusOK, http.MethodGet, path, "token viewer", ""); said !=
		`{"updates":[{"updateID":"p-a"},{"updateID":"p-b"}]}` {
		t.Errorf("it is %s", said)
	}
}

func TestTheTokenOfALeaseIsGoodForItsUpdateAndUntilItsEnd(t *testing.T) {
	b := newBench(t)
	l := deployments.Leased{ID: "mine", Update: deployments.UpdateName{StackName: dev, Version: "7"},
		Expires: time.Now().Add(time.Hour)}
	events := `{"events":[{"sequence":1,"timestamp":1,"stdoutEvent":{"message":"x","color":"never"}}]}`
	path := "/api/stacks/acme/shop/dev/update/mine/events/batch"
	b.want(http.StatusNoContent, http.MethodPost, path, "update-token "+b.server.Leases.LeaseToken(l), events)
	for _, other := range []string{"/api/stacks/acme/shop/dev/update/other/events/batch",
		"/api/stacks/acme/shop/prod/update/mine/events/batch"} {
		b.want(http.StatusForbidden, http.MethodPost, other, "update-token "+b.server.Leases.LeaseToken(l), events)
	}
	b.config.Since = time.Now()
	b.serve()
	for begins, status := range map[time.Time]int{b.config.Since.Add(-time.Second): http.StatusForbidden,
		b.config.Since.Add(time.Second): http.StatusNoContent} {
		l.Last = begins.Add(deployments.LeaseLife)
		b.want(status, http.MethodPost, path, "update-token "+b.server.Leases.LeaseToken(l), events)
	}
	l.Expires = time.Now().Add(-time.Second)
	b.want(http.StatusForbidden, http.MethodPost, path, "update-token "+b.server.Leases.LeaseToken(l), events)
	l.Expires = time.Now().Add(time.Hour)
	b.want(http.StatusForbidden, http.MethodPatch, "/api/stacks/acme/shop/dev/update/mine/journalentries",
		"update-token "+b.server.Leases.LeaseToken(l), `{"entries":[{"sequenceID":1,"kind":0,"operationID":1}]}`)
}

// ownWords matches what only the code and the bucket know.
var ownWords = regexp.MustCompile(`Go (struct|value)|statestore|storedResource|deploymentFile|stacks/acme/|history/`)

func TestWhatCannotBeAStateIsRejectedWithASentence(t *testing.T) {
	b := newBench(t)
	l := deployments.Leased{ID: "mine", Update: deployments.UpdateName{StackName: dev, Version: "7"},
		Expires: time.Now().Add(time.Minute)}
	const update = "/api/stacks/acme/shop/dev/update/mine/"
	for _, c := range []struct{ route, body, why string }{
		{"checkpoint", `{"version":99,"deployment":{}}`, "deployment version 99"},
		{"checkpoint", `{"version":3}`, "no deployment"},
		{"checkpoint", `{"version":3,"deployment":"x"}`, "deployment must be an object, and is a string"},
		{"checkpoint", `{"version":3,"deployment":{"resources":[{"custom":"yes"}]}}`, "custom must be true or false"},
		{"checkpoint", "{\"version\":3,\"deployment\":{\"x\":\"\xe9\"}}", "the body of the request is not UTF-8"},
		{"journalentries", `{"entries":[{"sequenceID":1,"kind":1,"state":{"custom":"yes"}}]}`,
			"custom must be true or false"},
		{"checkpoint", `{}`, "deployment version 0"},
		{"checkpoint", `{"version":3,"deployment":{"resources":[null]}}`, "no URN"},
		{"checkpointverbatim", `{"version":3,"sequenceNumber":1,"untypedDeployment":{"version":99}}`, "deployment version 99"},
		{"journalentries", `{"entries":[{"sequenceID":1,"kind":5,"newSnapshot":{"resources":[null]}}]}`, "is missing"},
		{"journalentries", `{"entries":[{"sequenceID":1,"kind":1,"state":{"urn":"u","type":"t:m:T"}}]}`, "not valid"},
	} {
		said := b.want(http.StatusBadRequest, http.MethodPatch, update+c.route, "update-token "+b.server.Leases.LeaseToken(l),
			c.body)
		if !strings.Contains(said, c.why) {
			t.Errorf("%s with %s is answered %s", c.route, c.body, said)
		}
		if ownWords.MatchString(said) {
			t.Errorf("%s with %s is answered with names of the code: %s", c.route, c.body, said)
		}
	}
}

func TestAStackIsCreatedListedTaggedAndRemoved(t *testing.T) {
	b := newBench(t)
	b.want(http.StatusOK, http.MethodPost, "/api/stacks/acme/shop", "token deployer",
		`{"stackName":"new","tags":{"team":"blue"}}`)
	said := b.want(http.StatusConflict, http.MethodPost, "/api/stacks/acme/shop", "token deployer",
		`{"stackName":"new"}`)
	if !strings.Contains(said, "already exists") { // which the CLI looks for
		t.Errorf("a second creation is answered %s", said)
	}
	b.want(http.StatusOK, http.MethodPost, "/api/stacks/acme/shop", "token deployer", `{"stackName":"dev-2"}`)
	b.want(http.StatusForbidden, http.MethodPost, "/api/stacks/other/shop", "token deployer", `{"stackName":"new"}`)
	b.want(http.StatusNoContent, http.MethodHead, "/api/stacks/acme/shop", "token viewer", "")
	b.want(http.StatusNotFound, http.MethodHead, "/api/stacks/acme/shop", "token stranger", "")
	for query, want := range map[string]string{"": "[dev dev-2 new]", "?project=shop": "[dev dev-2 new]",
		"?organization=other": "[]", "?tagName=team": "[new]", "?tagName=team&tagValue=red": "[]",
		"?continuationToken=acme/shop/dev": "[dev-2 new]"} {
		var list apitype.ListStacksResponse
		if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet, "/api/user/stacks"+query, "token viewer",
			"")), &list); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, s := range list.Stacks {
			names = append(names, s.StackName)
		}
		if fmt.Sprint(names) != want { // also in this order, by which pages go on
			t.Errorf("%q lists %v, want %s", query, names, want)
		}
	}
}
