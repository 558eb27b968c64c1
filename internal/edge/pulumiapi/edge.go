package pulumiapi

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// requestHeader is the header of an answer that has the call's id.
const requestHeader = "X-Deployctl-Request"

// edge is what every call goes through: it gets an id, its route is found, its caller is authenticated and checked
// against the route's rule, and its end is translated, logged and recorded. A call that panics ends alone.
type edge struct {
	Config
	gate *grpcapi.Gate
	api  *http.ServeMux
	// pages has what is for browsers. It is apart because a page of a stack may have a path that is also one of the API.
	pages *http.ServeMux

	firstBeat, nextBeat, reasonEvery time.Duration // see hold
	pushes                           *mempool.Pool
}

// Handler returns the handler of all routes.
func Handler(c Config) (http.Handler, error) {
	e, err := newEdge(c)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(e.serve), nil
}

func newEdge(c Config) (*edge, error) {
	e := &edge{Config: c, gate: grpcapi.NewGate(c.Authority, c.Memory, c.Calls), api: http.NewServeMux(),
		pages:     http.NewServeMux(),
		firstBeat: firstBeat, nextBeat: nextBeat, reasonEvery: reasonEvery, pushes: mempool.New(pushMemory)}
	for _, r := range routes() {
		if err := r.resolve(); err != nil {
			return nil, err
		}
		for _, pattern := range r.patterns() {
			e.muxOf(r.path).Handle(pattern, routed{e, r})
		}
	}
	return e, nil
}

// muxOf returns the mux that has the routes of a path.
func (e *edge) muxOf(path string) *http.ServeMux {
	if strings.HasPrefix(path, "/api/") {
		return e.api
	}
	return e.pages
}

// serve finds the route of a call. The mux alone would redirect unclean paths and answer unknown ones with text.
func (e *edge) serve(w http.ResponseWriter, r *http.Request) {
	if e.Console != nil && ofConsole(r.URL.Path) {
		e.Console.ServeHTTP(w, r)
		return
	}
	mux := e.muxOf(r.URL.Path)
	handler, pattern := mux.Handler(r)
	if _, ours := handler.(routed); !ours || pattern == "" {
		call := e.begin(w, r, route{})
		e.end(call, nil, notServed(r))
		return
	}
	mux.ServeHTTP(w, r) // sets the values of the path
}

// notServed returns the error about a path without a route, with the reason if the stock CLI may ask for it.
func notServed(r *http.Request) error {
	for prefix, why := range refusedPrefixes {
		if strings.HasPrefix(r.URL.Path, prefix) {
			return deployments.Errorf(deployments.CodeNotFound, "%s", why)
		}
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
	for root, after := range map[string]int{"stacks": 4, "orgs": 2} {
		if parts[0] == root && len(parts) > after && refusedParts[parts[after]] != "" {
			return deployments.Errorf(deployments.CodeNotFound, "%s", refusedParts[parts[after]])
		}
	}
	return deployments.Errorf(deployments.CodeNotFound, "deployctl does not serve %s of the Pulumi Service API",
		r.Method+" "+clean(r.URL.Path))
}

// clean shortens a text of a client for a message.
func clean(text string) string {
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}

// call is one call.
type call struct {
	*http.Request
	edge   *edge
	route  route
	answer http.ResponseWriter
	entry  deployments.AuditEntry

	stack   deployments.StackName // of the path; zero when the path names none
	caller  deployments.Caller
	lease   deployments.Leased // of an update's own call
	refused bool
	begun   bool // the answer has begun before its end is known, see hold
	// noWorker is the last error for which a held start waits for a worker.
	noWorker atomic.Pointer[error]
	oauth    error          // the kind of an error of a token exchange, if it is not known by its code
	memory   *mempool.Claim // see share; nil before
	sending  atomic.Bool    // the answer, from that claim
	release  []func()
	queried  url.Values    // see query
	span     *tracing.Span // nil: it is not exported, or the caller is not known
}

// query returns the query of a call. It is parsed once, however often it is looked at: its length is the caller's
// choice.
func (c *call) query() url.Values {
	if c.queried == nil {
		c.queried = c.URL.Query() //nolint:forbidigo // this is what is used instead
	}
	return c.queried
}

func (e *edge) begin(w http.ResponseWriter, r *http.Request, to route) *call {
	c := &call{Request: r, edge: e, route: to, answer: w}
	c.entry = deployments.AuditEntry{Time: time.Now().UTC(), Request: rand.Text()[:16], Peer: r.RemoteAddr,
		Method: to.method + " " + to.path}
	if to.does.Method() != "" {
		c.entry.Method = to.does.Method()
	}
	for name, value := range map[string]string{
		requestHeader: c.entry.Request, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
	} {
		w.Header().Set(name, value)
	}
	return c
}

// routed is a route of an edge.
type routed struct {
	edge  *edge
	route route
}

func (h routed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := h.edge.begin(w, r, h.route)
	answer, err := h.edge.run(c)
	for _, release := range c.release {
		defer release()
	}
	h.edge.end(c, answer, err)
}

// run admits a call and hands it to its handler.
func (e *edge) run(c *call) (answer any, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			e.Log.Error("call panicked", "request", c.entry.Request, "method", c.entry.Method, "panic",
				fmt.Sprint(broken), "stack", string(debug.Stack()))
			answer, err = nil, fmt.Errorf("panic: %v", broken)
		}
	}()
	if err := c.admit(); err != nil {
		c.refused = true
		return nil, err
	}
	if c.route.by != byAnyone {
		c.beginSpan()
	}
	if err := c.inMode(); err != nil {
		c.refused = true
		return nil, err
	}
	c.share()
	return c.route.handle(c)
}

// beginSpan begins the call's span.
func (c *call) beginSpan() {
	place := ""
	if said := c.Header.Values(tracing.Header); len(said) == 1 {
		place = said[0]
	}
	var ctx context.Context
	ctx, c.span = c.edge.Tracing.Start(tracing.At(c.Context(), place), c.route.name(), tracing.Server,
		tracing.HTTPMethod.Of(c.Method), tracing.HTTPRoute.Of(c.route.path), tracing.Request.Of(c.entry.Request))
	if c.span != nil {
		c.Request = c.WithContext(ctx)
	}
}

// admit authenticates the caller and checks the route's rule. What the path names is looked at once it is known who
// names it.
func (c *call) admit() error {
	switch c.route.by {
	case byAnyone:
		return c.validNames()
	case byIdentity:
		err := c.validNames()
		c.entry.Organization, c.entry.Stack = "", "" // the log of the organization is for callers who are known
		return err
	case byLease:
		return c.admitLease()
	}
	text, err := c.credentials("token")
	if err != nil {
		return err
	}
	c.caller, err = c.edge.gate.Caller(c.Context(), text, grpcapi.Host(c.RemoteAddr))
	c.identify()
	if err != nil {
		return err
	}
	leave, err := c.edge.gate.Enter(c.caller)
	if c.release = append(c.release, leave); err != nil {
		return err
	}
	if err := c.validNames(); err != nil {
		return err
	}
	raised := c.route.raised != nil && c.route.raised(c)
	c.entry.Secrets = c.route.does.ReadsSecrets(raised)
	if organization := c.PathValue("org"); c.stack == (deployments.StackName{}) && organization != "" {
		if err := c.route.does.AllowIn(c.caller, organization); err != nil {
			return err
		}
	}
	if c.stack == (deployments.StackName{}) {
		return c.route.does.Allow(c.caller, raised) // the handler checks what it answers with
	}
	return c.route.does.Allow(c.caller, raised, c.stack)
}

// names are the values of paths that name something, and what; what else a path has, its handler parses.
var names = map[string]string{"org": "organization", "project": "project", "member": "member", "team": "team",
	"role": "role"}

// validNames takes the names of the path, and rejects those that nothing can have.
func (c *call) validNames() error {
	if c.PathValue("stack") != "" {
		c.stack = deployments.StackName{Organization: c.PathValue("org"), Project: c.PathValue("project"),
			Stack: c.PathValue("stack")}
		if err := c.stack.Validate(); err != nil {
			return err
		}
		c.entry.Organization, c.entry.Stack = c.stack.Organization, c.stack.Project+"/"+c.stack.Stack
	}
	for value, what := range names {
		name := c.PathValue(value)
		if name == "" {
			continue
		}
		if err := deployments.ValidateName(what, name); err != nil {
			return err
		}
		if value == "org" {
			c.entry.Organization = name
		}
	}
	return nil
}

// admitLease checks the token of a lease: it is good for its own update only.
func (c *call) admitLease() error {
	text, err := c.credentials("update-token")
	if err != nil {
		return err
	}
	c.lease, err = c.edge.Service.LeaseOf(text)
	if err != nil {
		if deployments.CodeOf(err) == deployments.CodeUnauthorized {
			c.edge.gate.Wrong(c.Context(), grpcapi.Host(c.RemoteAddr))
		}
		return err
	}
	c.entry.Token, c.entry.Member = c.lease.Caller.Token, c.lease.Caller.Member
	if err := c.validNames(); err != nil {
		return err
	}
	if since := c.edge.Since; !since.IsZero() && c.lease.Created().Before(since) {
		return deployments.Errorf(deployments.CodeForbidden, "this update began before the service was started again, and "+
			"ends: run the command again")
	}
	if c.lease.Update.StackName != c.stack || c.lease.ID != c.PathValue("id") {
		return deployments.Errorf(deployments.CodeForbidden, "this token is of another update")
	}
	c.entry.Subject = "version=" + c.lease.Update.Version
	c.edge.gate.Known(c.Context(), c.lease.Caller.Token)
	return c.edge.gate.Pace(c.Context(), "update "+c.lease.ID)
}

// identify writes into the call's entry who the caller is.
func (c *call) identify() {
	c.entry.Token, c.entry.Member, c.entry.Identity = c.caller.Token, c.caller.Member, c.caller.Identity
}

// credentials returns the token that a call sends with an authorization scheme.
func (c *call) credentials(scheme string) (string, error) {
	said := c.Header.Values("Authorization")
	if len(said) == 1 {
		if got, token, _ := strings.Cut(said[0], " "); got == scheme && token != "" {
			return token, nil
		}
	}
	return "", deployments.Errorf(deployments.CodeUnauthorized, "this call needs a header `Authorization: %s …`: set "+
		"PULUMI_ACCESS_TOKEN to a token of the service (`deployctl token create`), and run `pulumi login`", scheme)
}

// end answers a call, logs it, and records it when the audit log is to have it.
func (e *edge) end(c *call, answer any, err error) {
	status := http.StatusOK
	if err != nil {
		status, answer = c.translate(err)
		c.entry.Code, c.entry.Error = deployments.CodeOf(err), err.Error()
		if status == http.StatusInternalServerError {
			e.Log.Error("call failed", "request", c.entry.Request, "method", c.entry.Method, "error", err)
			c.entry.Error = internalError(c.entry.Request)
		}
	}
	if _, ok := answer.(redirect); ok {
		status = http.StatusSeeOther
	}
	grpcapi.Account(&c.entry, c.caller, c.refused)
	if err != nil && c.route.failed != nil {
		status, answer = c.route.failed(c, status, answer.(apitype.ErrorResponse))
	}
	e.record(c)
	log := e.Log
	if err != nil {
		log = log.With("error", c.entry.Error)
	}
	if id := c.span.TraceID(); id != "" {
		log = log.With("trace_id", id)
	}
	log.Info("pulumi call", "request", c.entry.Request, "method", c.Method, "route", c.route.path, "code", status,
		"token", c.entry.Token, "member", c.entry.Member, "identity", c.entry.Identity, "peer", c.entry.Peer,
		"organization", c.entry.Organization,
		"stack", c.entry.Stack, "subject", c.entry.Subject, "took", time.Since(c.entry.Time).Round(time.Microsecond).String())
	c.write(status, answer)
	c.span.EndHTTP(status)
	if e.Counted != nil {
		e.Counted(c.route.name(), status, time.Since(c.entry.Time))
	}
}

// name names a route in metrics, which must be few.
func (r route) name() string {
	if r.path == "" {
		return "unknown"
	}
	return r.method + " " + r.path
}

// record adds the call to the audit log if its rule, or its refusal, asks for that.
func (e *edge) record(c *call) {
	recorded, now := c.route.does.Recorded()
	if e.Auditor == nil || c.route.by == byAnyone || !recorded && !c.refused {
		return
	}
	if err := e.Auditor.Record(context.WithoutCancel(c.Context()), c.entry, now && !c.entry.Refused); err != nil {
		e.Log.Error("audit entry was not written", "entry", c.entry, "error", err)
	}
}
