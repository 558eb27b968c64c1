package http_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/provider/providertest"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// The classes of errors, as the SDK sends them.
const (
	plain   = codes.Unknown
	notDone = codes.ResourceExhausted
	unknown = codes.Unavailable
)

func TestAnAnswerSaysWhetherTheCreateMayHaveHadItsEffect(t *testing.T) {
	cases := []struct {
		method string // whose answer it is; a GET says before that nothing is there
		code   int
		after  string
		want   codes.Code
		delay  time.Duration
		says   string
	}{
		{http.MethodPut, 400, "", plain, 0, "correct the properties"},
		{http.MethodPut, 401, "", plain, 0, "see whether the headers have credentials"},
		{http.MethodPut, 404, "", plain, 0, "see whether the endpoint, the path and the method"},
		{http.MethodPut, 409, "", plain, 0, "correct the properties"},
		{http.MethodPut, 412, "", notDone, 0, ""},
		{http.MethodPut, 429, "", notDone, 0, ""},
		{http.MethodPut, 429, "7", notDone, 7 * time.Second, ""},
		{http.MethodPut, 503, "7", notDone, 7 * time.Second, ""},
		{http.MethodPut, 503, "", unknown, 0, ""},
		{http.MethodPut, 429, "99999999999", notDone, time.Hour, ""},
		{http.MethodPut, 500, "", unknown, 0, ""},
		{http.MethodPut, 502, "", unknown, 0, ""},
		{http.MethodPut, 504, "", unknown, 0, ""},
		{http.MethodPut, 303, "", unknown, 0, ""},
		{http.MethodPut, 307, "", plain, 0, "give the endpoint that it leads to"},
		{http.MethodGet, 400, "", plain, 0, ""},
		{http.MethodGet, 403, "", plain, 0, "credentials"},
		{http.MethodGet, 429, "3", notDone, 3 * time.Second, ""},
		{http.MethodGet, 500, "", notDone, 0, ""},
		{http.MethodGet, 503, "", notDone, 0, ""},
	}
	for _, c := range cases {
		e := answering(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != c.method {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			if c.after != "" {
				w.Header().Set("Retry-After", c.after)
			}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.code)
			_, _ = io.WriteString(w, "the reason")
		})
		_, _, err := e.create(record("records", providertest.Inputs{"name": "it"}))
		name := fmt.Sprintf("%s %d %q", c.method, c.code, c.after)
		if status.Code(err) != c.want || !strings.Contains(err.Error(), "the reason") ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		var delay time.Duration
		for _, detail := range status.Convert(err).Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				delay = info.GetRetryDelay().AsDuration()
			}
		}
		if delay != c.delay {
			t.Errorf("%s asks for %s, not %s", name, delay, c.delay)
		}
	}
}

func TestAConnectionThatIsLostLeavesAChangeUnknownAndAReadNotDone(t *testing.T) {
	for method, want := range map[string]codes.Code{http.MethodPut: unknown, http.MethodGet: notDone} {
		e := answering(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == method {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusNotFound)
		})
		if _, _, err := e.create(record("records", providertest.Inputs{"name": "it"})); status.Code(err) != want {
			t.Errorf("a lost %s: %v", method, err)
		}
	}
	server := httptest.NewServer(nil)
	e := open(t, providertest.Inputs{"httpEndpoint": server.URL})
	server.Close()
	if _, _, err := e.create(record("records", providertest.Inputs{"name": "it"})); status.Code(err) != notDone {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestStatusCodesMeanWhatTheProgramExpects(t *testing.T) {
	exists := false
	e := answering(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && exists:
			w.WriteHeader(http.StatusMultipleChoices)
			_, _ = io.WriteString(w, `{"a":1}`)
		case r.Method == http.MethodPut:
			exists = true
			w.WriteHeader(http.StatusTeapot)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	})
	in := record("records", providertest.Inputs{"name": "it", "properties": map[string]any{"a": 1},
		"expect": map[string]any{"success": []any{200, 300}, "gone": []any{403}, "exists": []any{418}}})
	id, out := e.mustCreate(in)
	exists = false
	if err := e.remove(id, in, out); err != nil {
		t.Errorf("a delete of what is gone: %v", err)
	}
}

func TestADeleteOfWhatIsGoneSucceedsAndWhatAnotherOwnerHasTakenStays(t *testing.T) {
	a, e := serve(t)
	in := record("records", providertest.Inputs{"name": "it", "mark": "owner", "properties": map[string]any{"a": 1}})
	id, out := e.mustCreate(in)
	a.records["/records/it"]["owner"] = "another's"
	if err := e.remove(id, in, out); err != nil || a.things()["/records/it"] == nil {
		t.Errorf("what another owner has taken: %v, %v", err, a.things())
	}
	if err := e.update(id, in, out, in); status.Code(err) != codes.AlreadyExists {
		t.Errorf("an update of it: %v", err)
	}
	delete(a.records, "/records/it")
	if err := e.remove(id, in, out); err != nil {
		t.Errorf("what is gone: %v", err)
	}
	kept := over(in, providertest.Inputs{"delete": nil})
	if id, out = e.mustCreate(kept); e.remove(id, kept, out) != nil || a.things()["/records/it"] == nil {
		t.Errorf("without a delete the API has %v", a.things())
	}
}

func TestWhatIsGoneIsMadeAgainUnderItsNameAndSaidWhereTheServerAssignsIDs(t *testing.T) {
	a, e := serve(t)
	in := record("records", providertest.Inputs{"name": "it", "properties": map[string]any{"a": 1}})
	id, out := e.mustCreate(in)
	delete(a.records, "/records/it")
	if err := e.update(id, in, out, in); err != nil || a.things()["/records/it"] == nil {
		t.Errorf("a record: %v, %v", err, a.things())
	}
	in = user(providertest.Inputs{"name": "it", "properties": map[string]any{"login": "me"}})
	id, out = e.mustCreate(in)
	a.users = nil
	if err := e.update(id, in, out, in); status.Code(err) != plain || !strings.Contains(err.Error(), "deployctl refresh") {
		t.Errorf("a user: %v", err)
	}
}

func TestSecretsAreNotInErrorsAndConfiguredHeadersStayWithTheirEndpoint(t *testing.T) {
	var seen http.Header
	echo := func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		if r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Path, "/fails") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprintf(w, "%s %v %s", r.URL, r.Header, body)
	}
	e := answering(t, echo)
	in := record("records", providertest.Inputs{"name": "it",
		"headers":    map[string]any{"X-Key": providertest.Secret("key of the resource")},
		"properties": map[string]any{"a": providertest.Secret("a long password"), "token": providertest.Secret("a/b token")},
		"create":     map[string]any{"path": "/a/{properties.token}"}})
	_, _, err := e.create(in)
	for _, secret := range []string{"token-of-the-api", "key of the resource", "a long password", "a/b token", "a%2Fb"} {
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in %v", secret, err)
		}
	}
	failing := over(in, providertest.Inputs{"read": map[string]any{"path": "/fails/{properties.token}"}})
	_, err = e.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urn, Id: "it", Inputs: wire(t, failing)})
	if err == nil || strings.Contains(err.Error(), "a%2Fb") || strings.Contains(err.Error(), "token-of-the-api") {
		t.Errorf("a read fails with %v", err)
	}
	if seen.Get("Authorization") != "Bearer token-of-the-api" || seen.Get("X-Key") != "key of the resource" {
		t.Errorf("the headers are %v", seen)
	}
	other := httptest.NewServer(http.HandlerFunc(echo))
	defer other.Close()
	if _, _, err := e.create(over(in, providertest.Inputs{"endpoint": other.URL})); err == nil {
		t.Error("it was created")
	}
	if seen.Get("Authorization") != "" || seen.Get("X-Key") == "" {
		t.Errorf("another endpoint gets the headers %v", seen)
	}
}

func TestARedirectIsFollowedByReadsToTheSameServerAlone(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server gets %s with %v", r.URL, r.Header)
	}))
	defer other.Close()
	to := "/records/it/"
	e := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/records/it/" {
			_, _ = io.WriteString(w, `{"a":1}`)
			return
		}
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	})
	in := record("records", providertest.Inputs{"name": "it", "properties": map[string]any{"a": 1}})
	if ownership, _ := e.read("it", in, nil); ownership != "owned" {
		t.Errorf("a read is redirected and finds it %s", ownership)
	}
	to = other.URL
	_, _, err := e.create(in)
	if status.Code(err) != plain || !strings.Contains(err.Error(), "redirects are followed only") {
		t.Errorf("a redirect to another server: %v", err)
	}
	to = "/loop"
	if _, _, err := e.create(in); status.Code(err) != plain {
		t.Errorf("a redirect without an end: %v", err)
	}
}

func TestAnswersAndPagesAreBoundedAndOfOneServer(t *testing.T) {
	page := func(next string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"items":[],"page":{"next":%q}}`, next)
		}
	}
	in := user(providertest.Inputs{"name": "it", "properties": map[string]any{"login": "me"}})
	for says, handler := range map[string]http.HandlerFunc{
		"more than 100 pages":     page("/users?again"),
		"must be on the same":     page("http://127.0.0.2/users"),
		"the answer is larger":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 9<<20)) },
		"the answer is no JSON":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"nothing at lookup.items": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") },
		"finds 2 resources, with the IDs 1, 2: delete": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"items":[{"id":1,"login":"me"},{"id":2,"login":"me"}]}`)
		},
	} {
		e := answering(t, handler)
		_, _, err := e.create(over(in, providertest.Inputs{"mark": nil}))
		if status.Code(err) != plain || !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in: %v", says, err)
		}
	}
}

func TestNoValueReachesOutOfItsSegmentOfAPath(t *testing.T) {
	a, e := serve(t)
	escaped := "a%2Fb%3Fc%23d"
	cases := map[string]string{"a/b?c#d": "/records/" + escaped + "?q=" + escaped, "..": "", ".": "", "": ""}
	for value, sent := range cases {
		in := record("records", providertest.Inputs{"name": "it", "properties": map[string]any{"x": value},
			"read": map[string]any{"path": "/records/{properties.x}?q={properties.x}"}})
		_, err := e.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urn, Id: "it", Inputs: wire(t, in)})
		made := a.made()
		if sent == "" && (len(made) > 0 || err == nil || !strings.Contains(err.Error(), "no part of a path")) {
			t.Errorf("%q sends %q: %v", value, made, err)
		}
		if sent != "" && (err != nil || made[0] != "GET "+sent) {
			t.Errorf("%q sends %q: %v", value, made, err)
		}
	}
}
