package http_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/provider"
	rest "github.com/deployctl/deployctl/providers/http"
)

// transport answers without a network, so that its time is that of a bubble.
type transport func(w http.ResponseWriter, r *http.Request)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	f(w, r)
	return w.Result(), nil
}

// declared is a resource with a name that the client gives.
func declared() rest.ResourceIn {
	request := rest.Request{Path: "/records/{name}"}
	return rest.ResourceIn{Name: "it", Properties: map[string]any{"a": 1.0}, Create: rest.GivenTo(request),
		Read: rest.GivenTo(request), Update: rest.GivenTo(request), Delete: rest.GivenTo(request)}
}

type (
	request  = provider.Request[rest.ResourceIn, rest.ResourceOut]
	existing = provider.Existing[rest.ResourceIn, rest.ResourceOut]
)

func TestWhatIsNotReadyInTimeExistsAndIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := false
		r := rest.Over(transport(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPost:
				made = true
				w.WriteHeader(http.StatusAccepted)
			case !made:
				w.WriteHeader(http.StatusNotFound)
			default:
				say(w, http.StatusOK, map[string]any{"a": 1, "state": "pending"})
			}
		}))
		in := declared()
		in.WaitUntil = rest.GivenTo(rest.Wait{Path: "state", OneOf: []any{"on", "off"}, Within: 40})
		began := time.Now()
		id, _, err := r.Reconcile(t.Context(), request{News: in})
		if id != "it" || err == nil || !strings.Contains(err.Error(), "not ready after 40s: state is pending") {
			t.Errorf("%q, %v", id, err)
		}
		if took := time.Since(began); took > 40*time.Second || took < 20*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAWaitTakesThePauseThatTheServerAsksForAndAFailedReadForNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		r := rest.Over(transport(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "20")
			switch reads++; reads {
			case 1:
				say(w, http.StatusOK, map[string]any{"a": 1})
			case 2:
				w.WriteHeader(http.StatusServiceUnavailable)
			default:
				say(w, http.StatusOK, map[string]any{"a": 1, "state": "on"})
			}
		}))
		in := declared()
		in.WaitUntil = rest.GivenTo(rest.Wait{Path: "state", Equals: "on"})
		in.Outputs = map[string]string{"state": "state"}
		began := time.Now()
		_, out, err := r.Reconcile(t.Context(), request{ID: "it", News: in})
		if took := time.Since(began); err != nil || out.Result["state"] != "on" || took != 20*time.Second {
			t.Errorf("%v, %v, after %s", out, err, took)
		}
	})
}

func TestWhatTheServerDoesNotKeepIsSaidByItsPath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		updates := 0
		r := rest.Over(transport(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPatch {
				updates++
			}
			say(w, http.StatusOK, map[string]any{"a": 2, "b": map[string]any{"c": 1}})
		}))
		in := declared()
		in.Properties = map[string]any{"a": 2.0, "b": map[string]any{"c": 2.0, "d": "x"}}
		id, _, err := r.Reconcile(t.Context(), request{ID: "it", News: in})
		if id != "it" || err == nil || !strings.Contains(err.Error(), "(b.c, b.d)") || updates != 1 {
			t.Errorf("%q, %v, after %d updates", id, err, updates)
		}
		in.WriteOnly = []string{"b"}
		if _, _, err := r.Reconcile(t.Context(), request{ID: "it", News: in, Olds: &in}); err != nil || updates != 1 {
			t.Errorf("what is written only: %v, after %d updates", err, updates)
		}
		was := in
		was.Properties = map[string]any{"a": 2.0, "b": "other"}
		if _, _, err := r.Reconcile(t.Context(), request{ID: "it", News: in, Olds: &was}); err != nil || updates != 2 {
			t.Errorf("a change of what is written only: %v, after %d updates", err, updates)
		}
	})
}

func TestADeleteThatHasBegunIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := 4
		r := rest.Over(transport(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodDelete:
				w.WriteHeader(http.StatusAccepted)
			case left == 0:
				w.WriteHeader(http.StatusGone)
			default:
				left--
				say(w, http.StatusOK, map[string]any{})
			}
		}))
		if err := r.Delete(t.Context(), existing{ID: "it", Inputs: declared()}); err != nil || left != 0 {
			t.Errorf("%v, with %d reads left", err, left)
		}
		left = -1
		if err := r.Delete(t.Context(), existing{ID: "it", Inputs: declared()}); err == nil ||
			!strings.Contains(err.Error(), "still there after") {
			t.Errorf("what is never gone: %v", err)
		}
	})
}

func TestABodyIsATemplateOfTypedValues(t *testing.T) {
	bodies := map[string]string{}
	seen := map[string]any(nil)
	r := rest.Over(transport(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			var body any
			_ = json.NewDecoder(r.Body).Decode(&body)
			text, _ := json.Marshal(body)
			bodies[r.Method] = string(text)
			seen = map[string]any{"a": 1, "version": 7}
		}
		if seen == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		say(w, http.StatusOK, seen)
	}))
	in := declared()
	in.Create = rest.GivenTo(rest.Request{Path: "/records", Body: map[string]any{
		"item": "{properties}", "text": "{{{name}} is {properties.a}", "list": []any{"{properties.a}", true}}})
	in.Update = rest.GivenTo(rest.Request{Method: "PUT", Path: "/records/{id}", Body: map[string]any{
		"version": "{observed.version}", "set": "{changes}"}})
	if _, _, err := r.Reconcile(t.Context(), request{News: in}); err != nil {
		t.Fatal(err)
	}
	seen["a"] = 5
	if _, _, err := r.Reconcile(t.Context(), request{ID: "it", News: in}); err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]string{
		"POST": `{"item":{"a":1},"list":[1,true],"text":"{it} is 1"}`,
		"PUT":  `{"set":{"a":1},"version":7}`,
	} {
		if bodies[method] != want {
			t.Errorf("%s sends %s, not %s", method, bodies[method], want)
		}
	}
}
