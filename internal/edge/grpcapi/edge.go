package grpcapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Auditor keeps the audit log.
type Auditor interface {
	// Record writes an entry. With now it returns when the entry is durable, else at once, and the entry is written
	// soon.
	Record(ctx context.Context, e deployments.AuditEntry, now bool) error
}

// edge is what every call goes through: it gets an id, its caller is found by the header alone before a message is
// read, its first message is checked against the table of rules, and its end is translated, logged and recorded. A call
// that panics ends alone.
type edge struct {
	authority Authority
	auditor   Auditor
	log       *slog.Logger
	streams   context.Context // ends when streams shall end
	// methods that are one message each way; they may go on for a while when the service stops
	unary  map[string]bool
	bounds *bounds
	calls  *Calls // of callers that are known
	open   *Calls // streams of those who need not be
	// entering are calls whose caller is not known yet.
	entering *Calls
	away     func() error // which part of the service does not answer; may be nil
	// mode returns the mode that the service is in; nil: it has none.
	mode func(context.Context) (deployments.Mode, error)
	// recheckEvery is how often the caller of an open stream is checked again.
	recheckEvery time.Duration
	tracing      *tracing.Tracing
}

// requestHeader is the header of an answer that has the call's id.
const requestHeader = "deployctl-request"

// call is one call, and the stream that its method sees.
type call struct {
	grpc.ServerStream
	ctx      context.Context
	cancel   context.CancelCauseFunc // of ctx
	edge     *edge
	rule     rule
	full     string // the method's full name
	method   string // such as Stacks/Export
	caller   deployments.Caller
	entry    deployments.AuditEntry
	first    proto.Message // was admitted, and is for the method's first RecvMsg
	admitted bool
	refused  error
	memory   *mempool.Claim // see share
	release  []func()
	unread   unread
	span     *tracing.Span // nil: it is not exported, or the caller is not known

	sending sync.Mutex
	sent    bool // the header, at least; under sending
}

func (c *call) Context() context.Context { return c.ctx }

// serve is the interceptor of every method; see asStreams.
func (e *edge) serve(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	r := rules[info.FullMethod]
	if r.scope == open {
		return e.serveOpen(srv, s, info.FullMethod, handle)
	}
	c := &call{ServerStream: s, ctx: s.Context(), edge: e, rule: r, full: info.FullMethod,
		method: shortMethod(info.FullMethod)}
	c.entry = deployments.AuditEntry{Time: time.Now().UTC(), Request: rand.Text()[:16], Method: c.method,
		Peer: peerOf(s.Context())}
	_ = s.SetHeader(metadata.Pairs(requestHeader, c.entry.Request)) // it is a help only
	told := c.tellWaiting()
	err := e.run(c, srv, handle)
	told()
	c.unread.end(s.Context(), c.memory, func() {
		for _, release := range c.release {
			release()
		}
	})
	if err != nil && !e.unary[c.full] && e.streams.Err() != nil && s.Context().Err() == nil {
		err = status.Error(codes.Unavailable, "the service is stopping")
	}
	ended := c.end(e.unanswered(s.Context(), err))
	c.span.EndRPC(ended)
	return ended
}

// run authenticates the call and hands it to its method.
func (e *edge) run(c *call, srv any, handle grpc.StreamHandler) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			e.log.Error("call panicked", "request", c.entry.Request, "method", c.method, "panic", fmt.Sprint(broken),
				"stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", broken)
		}
	}()
	e.expectMode(c.ctx)
	if c.caller, c.refused = e.authenticate(c); c.refused != nil {
		return c.refused
	}
	c.ctx, c.span = e.tracing.Start(tracing.At(c.ctx, tracing.CallerPlace(c.ctx)), c.full[1:], tracing.Server,
		append(tracing.RPC(c.full), tracing.Request.Of(c.entry.Request))...)
	c.ctx, c.cancel = context.WithCancelCause(context.WithValue(c.ctx, callerKey{}, c.caller))
	defer c.cancel(nil)
	if !e.unary[c.full] {
		defer context.AfterFunc(e.streams, func() { c.cancel(nil) })()
	}
	if err = c.begin(); err == nil {
		err = handle(srv, c)
	}
	if ended := c.ended(); err != nil && ended != nil {
		err = ended
		if isRefusal(ended) {
			c.refused = ended
		}
	}
	return err
}

// serveOpen serves what needs no token.
func (e *edge) serveOpen(srv any, s grpc.ServerStream, method string, handle grpc.StreamHandler) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			e.log.Error("call panicked", "method", method, "panic", fmt.Sprint(broken), "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "the service failed; its log says why")
		}
	}()
	entered(s.Context())
	if !e.unary[method] {
		leave, err := e.open.enter(Party(peerOf(s.Context())), "")
		if err != nil {
			return wire.FromError(err)
		}
		defer leave()
	}
	return handle(srv, s)
}

// authenticate finds the caller. Wrong tokens are slowed by their address, all calls of a token by that.
func (e *edge) authenticate(c *call) (deployments.Caller, error) {
	caller, err := e.identify(c.ctx, c.method)
	entered(c.ctx) // those with a wrong token wait below, and take no place of others from their host meanwhile
	c.entry.Token, c.entry.Member, c.entry.Identity = caller.Token, caller.Member, caller.Identity
	if err != nil {
		if deployments.CodeOf(err) == deployments.CodeUnauthorized {
			e.bounds.slow(c.ctx, hostOf(c.entry.Peer))
		}
		return caller, err
	}
	knownCaller(c.ctx, caller.Token)
	leave, err := e.calls.enter(caller.Party(""), caller.Token)
	if c.release = append(c.release, leave); err != nil {
		return caller, err
	}
	return caller, e.bounds.pace(c.ctx, caller.Token)
}

// managing are the services that a caller may use who may only manage tokens and members.
var managing = map[string]bool{"Tokens": true, "Members": true, "Teams": true, "Trusts": true}

// identify looks up the caller by the header.
func (e *edge) identify(ctx context.Context, method string) (deployments.Caller, error) {
	text, err := bearer(ctx)
	if err != nil {
		return deployments.Caller{}, err
	}
	done, err := e.bounds.lookup(ctx)
	if err != nil {
		return deployments.Caller{}, err
	}
	defer done()
	caller, err := e.authority.Authenticate(ctx, text)
	if service, _, _ := strings.Cut(method, "/"); err == nil && caller.TokensOnly && !managing[service] {
		err = errTokensOnly
	}
	return caller, err
}

// begin receives the call's first message, admits it, and takes the memory that the rest of the call needs. No method
// runs before that, also one that does not look at its messages.
func (c *call) begin() error {
	service, method, _ := strings.Cut(c.full[1:], "/")
	described, err := methodOf(service, method)
	if err != nil {
		return err
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(described.Input().FullName())
	if err != nil {
		return err
	}
	first := kind.New().Interface()
	a := c.arriving(first)
	of := sender{c.caller.Party(""), Party(c.entry.Peer), c.caller.Token}
	if err := c.edge.bounds.first(c.ctx, of, a.whole, func(turn context.Context) error { return c.receiveFirst(turn, a) },
		func(turn context.Context) error {
			if a.taken > 0 {
				c.memory = a.claim
			}
			if err := c.take(first); err != nil || a.taken == 0 {
				return err
			}
			return c.hold(turn, first, a.taken)
		}); err != nil || a.taken > 0 {
		return err
	}
	return c.hold(c.ctx, first, 0)
}

func (c *call) receiveFirst(turn context.Context, a *arriving) error {
	a.turn = turn
	err := c.ServerStream.RecvMsg(a)
	if a.err != nil {
		return a.err
	}
	if errors.Is(err, io.EOF) {
		return deployments.Errorf(deployments.CodeInvalid, "the call ended without a message")
	}
	return readable(err)
}

// take admits the first message.
func (c *call) take(first proto.Message) error {
	c.admitted = true
	if c.refused = c.admit(first); c.refused != nil {
		return c.refused
	}
	c.first = first
	c.share()
	if !c.edge.unary[c.full] {
		go c.recheck(first)
	}
	return nil
}

// RecvMsg gives the method the first message, which was admitted, and receives the others.
func (c *call) RecvMsg(m any) error {
	if c.first == nil {
		err := c.edge.bounds.receive(c.ctx, chunkPatience, nil, func() error { return c.ServerStream.RecvMsg(m) })
		return readable(c.received(err))
	}
	to, ok := m.(proto.Message)
	if first := c.first.ProtoReflect(); !ok || to.ProtoReflect().Descriptor() != first.Descriptor() {
		return deployments.Errorf(deployments.CodeInternal, "%s asks for a %T, and its first message is a %T", c.method,
			m, c.first)
	}
	shareFields(to.ProtoReflect(), c.first.ProtoReflect())
	c.first = nil
	return nil
}

// shareFields gives an empty message what another one has, without a copy of its contents.
func shareFields(to, from protoreflect.Message) {
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
	to.SetUnknown(from.GetUnknown())
}

// readable gives a message that gRPC could not read as what it is, the client's fault.
func readable(err error) error {
	if status.Code(err) == codes.Internal {
		return deployments.Errorf(deployments.CodeInvalid, "a message of the call cannot be read: %s",
			status.Convert(err).Message())
	}
	return err
}

// SendMsg sends an answer; one that no message can carry is refused with a sentence. Nothing is sent once recheck has
// ended the stream.
func (c *call) SendMsg(m any) error {
	if ended := c.ended(); ended != nil {
		return ended
	}
	size := 0
	if answer, ok := m.(proto.Message); ok {
		if size = proto.Size(answer); size > MaxMessage {
			return deployments.Errorf(deployments.CodeInvalid,
				"the answer of %s has %d MiB, and at most %d can be sent: ask for less at a time", c.method, size>>20,
				MaxMessage>>20)
		}
		if len(c.rule.answered) > 0 {
			c.entry.Subject = strings.TrimSpace(c.entry.Subject + " " + fields(answer, c.rule.answered))
		}
	}
	c.sending.Lock()
	c.sent = true
	c.sending.Unlock()
	sent := &answer{message: m, of: &c.unread}
	if c.rule.room == ofExport { // which has taken its memory
		return c.sendSlowly(sent)
	}
	if size <= smallAnswer {
		return c.ServerStream.SendMsg(sent)
	}
	if err := c.takeAnswer(int64(size)); err != nil {
		return err
	}
	sent.taken = int64(size)
	return c.sendSlowly(sent)
}

// admit checks the first message: what it says can be meant, and the caller may ask for it.
func (c *call) admit(m proto.Message) error {
	if err := printable(m.ProtoReflect()); err != nil {
		return err
	}
	c.rule.about(m, &c.entry)
	if err := c.rule.allow(c.caller, c.method, m); err != nil {
		return err
	}
	if err := validate(m); err != nil {
		return err
	}
	return c.edge.inMode(c.ctx, c.rule.work())
}

// end translates how the call ended, logs it, and records it when the audit log is to have it.
func (c *call) end(err error) error {
	translated := wire.FromError(err)
	code := status.Code(translated)
	if code == codes.Internal || code == codes.DataLoss {
		c.edge.log.Error("call failed", "request", c.entry.Request, "method", c.method, "error", err)
	}
	if code == codes.Internal {
		translated = wire.WithNote(translated, "request "+c.entry.Request)
	}
	if err != nil {
		c.entry.Code, c.entry.Error = deployments.CodeOf(wire.ToError(translated)), status.Convert(translated).Message()
	}
	Account(&c.entry, c.caller, c.refused != nil)
	log := c.edge.log
	if err != nil {
		log = log.With("error", c.entry.Error)
	}
	if id := c.span.TraceID(); id != "" {
		log = log.With("trace_id", id)
	}
	log.Info("call", "request", c.entry.Request, "method", c.method, "code", code.String(), "token",
		c.entry.Token, "member", c.entry.Member,
		"peer", c.entry.Peer, "organization", c.entry.Organization, "stack", c.entry.Stack, "subject", c.entry.Subject,
		"took", time.Since(c.entry.Time).Round(time.Microsecond).String())
	if c.edge.auditor == nil || (c.rule.does == reads || c.rule.does == uploads) && c.refused == nil {
		return translated
	}
	now := c.rule.does == changes && !c.entry.Refused && c.admitted
	if failed := c.edge.auditor.Record(context.WithoutCancel(c.ctx), c.entry, now); failed != nil {
		c.edge.log.Error("audit entry was not written", "entry", c.entry, "error", failed)
	}
	return translated
}

// shortMethod gives Stacks/Export of /deployctl.v1.Stacks/Export.
func shortMethod(full string) string { return full[strings.LastIndexByte(full, '.')+1:] }

func peerOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}
