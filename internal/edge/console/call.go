package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/tracing"
)

// writePatience is how long a reader may take to read a page.
const writePatience = 30 * time.Second

// requestHeader is the header of an answer that has the call's id.
const requestHeader = "X-Deployctl-Request"

// answer is what a call is answered with.
type answer struct {
	status int // 0: OK
	kind   string
	text   []byte
	to     string // another page of the console, which the browser is sent to
}

func redirect(to string) answer { return answer{status: http.StatusSeeOther, to: to} }

// call is one call.
type call struct {
	*http.Request
	console *Console
	route   *route
	answer  http.ResponseWriter
	entry   deployments.AuditEntry
	stack   deployments.StackName // of the path; zero when the path names none
	caller  deployments.Caller
	refused bool
	exports bool // it has read a state, which the audit log is to have
	made    bool // it has made a token, which the audit log has before its owner
	release []func()
	span    *tracing.Span // nil: it is not exported, or the caller is not known
}

// routed is a route of a console.
type routed struct {
	console *Console
	route   *route
}

// ServeHTTP gives a call an id, has it admitted and handled, and logs and records its end. A call that panics ends
// alone.
func (h routed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{Request: r, console: h.console, route: h.route, answer: w}
	c.entry = deployments.AuditEntry{Time: time.Now().UTC(), Request: rand.Text()[:16], Peer: r.RemoteAddr,
		Method: h.route.method + " " + h.route.path}
	if len(h.route.does) > 0 {
		c.entry.Method = h.route.does[0].Method()
	}
	setHeaders(w.Header())
	w.Header().Set(requestHeader, c.entry.Request)
	a, err := c.run()
	c.end(a, err)
	for _, release := range c.release {
		release()
	}
}

// run admits a call and hands it to its handler.
func (c *call) run() (a answer, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			c.console.Log.Error("call panicked", "request", c.entry.Request, "method", c.entry.Method, "panic",
				fmt.Sprint(broken), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", broken)
		}
	}()
	if c.route.handle == nil {
		return a, deployments.Errorf(deployments.CodeNotFound, "the console has no such page")
	}
	if c.foreign() {
		c.refused = true
		return a, deployments.Errorf(deployments.CodeForbidden, "the request was made by a page of another site")
	}
	if len(c.route.does) > 0 {
		s, err := c.session()
		if err == nil {
			err = c.admit(s.Token, c.route.does)
		}
		if err != nil {
			return c.unadmitted(err)
		}
		c.begin()
	} else {
		c.claim("host " + grpcapi.Party(c.RemoteAddr)) // who has no token has only what their host has
	}
	return c.route.handle(c)
}

// foreign reports whether a page of another origin asks for something that is not to be shown as a page of its own: by
// a script, as an image, or in a frame.
func (c *call) foreign() bool {
	site := c.Header.Get("Sec-Fetch-Site")
	return (site == "cross-site" || site == "same-site") && (c.Header.Get("Sec-Fetch-Mode") != "navigate" ||
		c.Header.Get("Sec-Fetch-Dest") != "document")
}

// admit finds out who has a token, and checks the rules of what the path names. Nothing else decides who may see what.
// What the path names is looked at once it is known who names it.
func (c *call) admit(token string, rules []grpcapi.Rule) (err error) {
	c.caller, err = c.console.gate.Caller(c.Context(), token, grpcapi.Host(c.RemoteAddr))
	c.entry.Token, c.entry.Member, c.entry.Identity = c.caller.Token, c.caller.Member, c.caller.Identity
	if err != nil {
		return err
	}
	leave, err := c.console.gate.Enter(c.caller)
	if c.release = append(c.release, leave); err != nil {
		return err
	}
	if c.PathValue("stack") != "" {
		c.stack = deployments.StackName{Organization: c.PathValue("org"), Project: c.PathValue("project"),
			Stack: c.PathValue("stack")}
		if err := c.stack.Validate(); err != nil {
			return err
		}
		c.entry.Organization, c.entry.Stack = c.stack.Organization, c.stack.Project+"/"+c.stack.Stack
	}
	for _, rule := range rules {
		if c.stack == (deployments.StackName{}) {
			err = rule.Allow(c.caller, false) // the handler shows only what the caller may see
		} else {
			err = rule.Allow(c.caller, false, c.stack)
		}
		if err != nil {
			c.entry.Method = rule.Method()
			return err
		}
	}
	return nil
}

// begin gives an admitted call its span, and a claim to the memory that the organizations share.
func (c *call) begin() {
	ctx := c.Context()
	ctx, c.span = c.console.Tracing.Start(ctx, c.route.name(), tracing.Server, tracing.HTTPMethod.Of(c.Method),
		tracing.HTTPRoute.Of(c.route.path), tracing.Request.Of(c.entry.Request))
	c.Request = c.WithContext(ctx)
	c.claim(c.party())
}

// claim gives a call a claim of a party to the memory that the organizations share.
func (c *call) claim(party string) {
	claim := c.console.gate.Memory.Claim(party, nil)
	c.release = append(c.release, claim.Release)
	c.Request = c.WithContext(mempool.With(c.Context(), claim, grpcapi.Patience))
}

// party is who pays for what the call uses.
func (c *call) party() string { return c.caller.Party(c.PathValue("org")) }

// statuses translates codes; others are internal errors.
var statuses = map[deployments.Code]int{
	deployments.CodeInvalid: http.StatusBadRequest, deployments.CodeNotFound: http.StatusNotFound,
	deployments.CodeConflict: http.StatusConflict, deployments.CodeUnauthorized: http.StatusUnauthorized,
	deployments.CodeForbidden: http.StatusForbidden, deployments.CodeUnavailable: http.StatusServiceUnavailable,
	deployments.CodeNoWorker: http.StatusServiceUnavailable, deployments.CodeFormat: http.StatusUnprocessableEntity,
	deployments.CodeCancelled: http.StatusServiceUnavailable, deployments.CodeMaintenance: http.StatusServiceUnavailable,
}

// told returns the status of an error and what a reader is told of it. The text of an internal error is for the log.
func (c *call) told(err error) (int, string) {
	status, known := statuses[deployments.CodeOf(err)]
	switch {
	case known:
		return status, err.Error()
	case c.Context().Err() != nil || errors.Is(err, context.Canceled):
		return http.StatusServiceUnavailable, "the call was ended"
	}
	return http.StatusInternalServerError, "the service failed; its log says why (request " + c.entry.Request + ")"
}

// end answers a call, logs it, and records it when the audit log is to have it.
func (c *call) end(a answer, err error) {
	if err != nil {
		status, text := c.told(err)
		c.entry.Code, c.entry.Error = deployments.CodeOf(err), text
		if status == http.StatusInternalServerError {
			c.console.Log.Error("call failed", "request", c.entry.Request, "method", c.entry.Method, "error", err)
		}
		a = c.failed(status, text)
	}
	grpcapi.Account(&c.entry, c.caller, c.refused)
	c.record()
	if a.status == 0 {
		a.status = http.StatusOK
	}
	log := c.console.Log
	if err != nil {
		log = log.With("error", c.entry.Error)
	}
	if id := c.span.TraceID(); id != "" {
		log = log.With("trace_id", id)
	}
	log.Info("console call", "request", c.entry.Request, "method", c.Method, "route", c.route.path, "code", a.status,
		"token", c.entry.Token, "member", c.entry.Member, "identity", c.entry.Identity, "peer", c.entry.Peer,
		"organization", c.entry.Organization, "stack", c.entry.Stack,
		"took", time.Since(c.entry.Time).Round(time.Microsecond).String())
	c.write(a)
	c.span.EndHTTP(a.status)
	if c.console.Counted != nil {
		c.console.Counted(c.route.name(), a.status, time.Since(c.entry.Time))
	}
}

// record adds the call to the audit log if one of its rules, or its refusal, asks for that.
func (c *call) record() {
	recorded := c.refused || c.exports || c.made
	for _, rule := range c.route.does {
		discloses, _ := rule.Recorded()
		recorded = recorded || discloses
	}
	if c.console.Auditor == nil || !recorded {
		return
	}
	if err := c.console.Auditor.Record(context.WithoutCancel(c.Context()), c.entry, c.made); err != nil {
		c.console.Log.Error("audit entry was not written", "entry", c.entry, "error", err)
	}
}

func (c *call) write(a answer) {
	if a.to != "" {
		c.answer.Header().Set("Location", a.to)
	} else {
		c.answer.Header().Set("Content-Type", a.kind)
		c.answer.Header().Set("Content-Length", strconv.Itoa(len(a.text)))
	}
	// a reader who does not read holds the page, and what the call has claimed for it, no longer than that
	at := http.NewResponseController(c.answer)
	_ = at.SetWriteDeadline(time.Now().Add(writePatience)) // which a test's recorder has not
	defer func() { _ = at.SetWriteDeadline(time.Time{}) }()
	c.answer.WriteHeader(a.status)
	if c.Method != http.MethodHead {
		_, _ = c.answer.Write(a.text) // its reader has gone
	}
}
