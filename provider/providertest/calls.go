package providertest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"
)

// ErrCut is the error of a call that Run has cut off. For the provider the answer is lost: nobody knows whether the
// call has had its effect.
var ErrCut = errors.New("providertest: the connection was cut")

// Calls are the calls that a provider makes to its service. All of them must pass here, so that each can be cut off
// once: by Serve, by Transport, or by Do.
type Calls struct {
	things func() map[string]any

	mu sync.Mutex
	disturbance
	count  int
	met    bool   // the call number at was made
	what   string // that call, and what has happened to it
	effect bool   // that call, or one before it, has changed what the service has
}

// disturbance is what happens to the call number at.
type disturbance struct {
	kind   interruption
	at     int
	before map[string]any // what the service had before all calls
	dead   chan struct{}  // closed when the process of the provider has died
	held   chan struct{}  // closed when the call is held
	resume chan struct{}  // closed when it may go on
}

// interruption is what happens to one call.
type interruption int

const (
	undisturbed interruption = iota
	unsent                   // it does not reach the service
	unanswered               // it has its effect, and the answer is lost
	killed                   // it has its effect, and the provider's process dies: no call is made after it
	hold                     // it waits until it is told to go on
)

func (i interruption) String() string {
	return [...]string{"was not disturbed", "did not reach the service", "was made and not answered",
		"was the last one before the provider was killed", "was held up"}[i]
}

// Serve serves a handler on a loopback port until the test ends, and returns its URL, for the provider's configuration.
// The handler is the author's service in memory, or a reverse proxy to a real one.
func (c *Calls) Serve(t *testing.T, service http.Handler) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		if !c.pass(r.Method+" "+r.URL.Path, func() { service.ServeHTTP(answer, r) }) {
			panic(http.ErrAbortHandler) // hangs up
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Transport returns a transport for a provider whose client can be given one. A call that is cut off ends with ErrCut.
func (c *Calls) Transport(base http.RoundTripper) http.RoundTripper {
	return transport{c, base}
}

type transport struct {
	calls *Calls
	base  http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	answered := t.calls.pass(r.Method+" "+r.URL.Path, func() {
		resp, err = t.base.RoundTrip(r) //nolint:bodyclose // it is closed below, or by who has made the call
	})
	if answered {
		return resp, err
	}
	if resp != nil {
		_ = resp.Body.Close()
	}
	return nil, ErrCut
}

// Do makes a call that is no HTTP request, such as a statement of SQL or a command. What names it in failures. If it is
// cut off, the error is ErrCut.
func (c *Calls) Do(what string, call func() error) (err error) {
	if !c.pass(what, func() { err = call() }) {
		return ErrCut
	}
	return err
}

// arm counts the calls from now on, and has one of them disturbed.
func (c *Calls) arm(kind interruption, at int) disturbance {
	next := disturbance{kind: kind, at: at, before: c.things(), dead: make(chan struct{}), held: make(chan struct{}),
		resume: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disturbance, c.count, c.met, c.what, c.effect = next, 0, false, "", false
	return next
}

// deleted has what comes next judged by what the service has now: a create after a delete has done nothing yet.
func (c *Calls) deleted() {
	now := c.things()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = now
}

// disarm lets all calls pass: what was killed is started again.
func (c *Calls) disarm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disturbance = disturbance{}
}

// state returns what is armed.
func (c *Calls) state() disturbance {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.disturbance
}

// interrupted says whether the call was met, and whether there was an effect by then.
func (c *Calls) interrupted() (met, effect bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.met, c.effect
}

// disturbed describes the call that was disturbed, for failures.
func (c *Calls) disturbed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.what
}

// pass makes a call, unless it is cut off, and reports whether it is answered.
func (c *Calls) pass(what string, call func()) (answered bool) {
	now := c.begin(what)
	switch now.kind {
	case undisturbed:
		call()
		return true
	case hold:
		close(now.held)
		<-now.resume
		call()
		return true
	case unanswered, killed:
		call()
	}
	effect := !reflect.DeepEqual(now.before, c.things())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.effect = c.effect || effect
	if now.kind == killed {
		close(now.dead)
	}
	return false
}

// begin counts a call and says what becomes of it.
func (c *Calls) begin(what string) disturbance {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	now := c.disturbance
	switch {
	case c.kind == undisturbed:
	case c.kind == killed && c.met:
		now.kind = unsent
	case c.count != c.at:
		now.kind = undisturbed
	default:
		c.met, c.what = true, fmt.Sprintf("its call %d (%s) %s", c.at, what, c.kind)
	}
	return now
}

// killed says whether the provider's process was killed.
func (c *Calls) killed() bool {
	select {
	case <-c.state().dead:
		return true
	default:
		return false
	}
}
