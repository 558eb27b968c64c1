package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Span is a span that is under way, or the place in a trace of another process. A nil one does nothing.
type Span struct{ span trace.Span }

// Attribute is an attribute of a span.
type Attribute = attribute.KeyValue

// Kind says whether a span is a call to another process, one from another process, or neither.
type Kind = trace.SpanKind

// The kinds.
const (
	Internal = trace.SpanKindInternal
	Server   = trace.SpanKindServer
	Client   = trace.SpanKindClient
)

// Header is the name of the header, and in capitals of the environment variable, with the place of a caller in its
// trace; see https://www.w3.org/TR/trace-context.
const Header = "traceparent"

// codec reads and writes that header.
var codec propagation.TraceContext

// Place returns ctx's place in a trace as text, "" if the trace is not exported.
func Place(ctx context.Context) string { return placeOf(trace.SpanContextFromContext(ctx)) }

func placeOf(c trace.SpanContext) string {
	if !c.IsValid() || !c.IsSampled() {
		return ""
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-01"
}

// At returns ctx at a place in a trace; ctx itself if the text is none.
func At(ctx context.Context, place string) context.Context {
	if place == "" {
		return ctx
	}
	return codec.Extract(ctx, propagation.MapCarrier{Header: place})
}

// ID returns the id of the trace of a place; "" if the text is none.
func ID(place string) string {
	if parts := strings.Split(place, "-"); len(parts) == 4 {
		return parts[1]
	}
	return ""
}

// Within returns the place of a span whose id follows from the place of another one and from what the span is of, so
// that processes which know both agree on it; "" without a place.
func Within(place string, of ...string) string {
	c := contextOf(place)
	if !c.IsValid() {
		return ""
	}
	return placeOf(c.WithSpanID(derived(c.TraceID(), of)))
}

func contextOf(place string) trace.SpanContext {
	return trace.SpanContextFromContext(At(context.Background(), place))
}

// derived returns the id of the span of a trace that is of something.
func derived(in trace.TraceID, of []string) (id trace.SpanID) {
	sum := sha256.Sum256([]byte(in.String() + "\x00" + strings.Join(of, "\x00")))
	copy(id[:], sum[:])
	return id
}

// From returns a span for the place of a caller, such as that of the variable TRACEPARENT; nil if the text is none.
func From(place string) *Span {
	ctx := At(context.Background(), place)
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	return &Span{trace.SpanFromContext(ctx)}
}

// In returns ctx within the span.
func (s *Span) In(ctx context.Context) context.Context {
	if s == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// Of returns the span that ctx is within; nil if that is not exported.
func Of(ctx context.Context) *Span {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return &Span{span}
	}
	return nil
}

// TraceID returns the id of the span's trace, "" if it is not exported.
func (s *Span) TraceID() string {
	if s == nil || !s.span.SpanContext().IsSampled() {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// EndHTTP ends the span of a call that was answered with a status. One of the client's making is no failure of the
// server.
func (s *Span) EndHTTP(status int) {
	class := ""
	if status >= http.StatusInternalServerError {
		class = strconv.Itoa(status)
	}
	s.Set(HTTPStatus.Int(status))
	s.End(class)
}

// Set adds attributes.
func (s *Span) Set(attributes ...Attribute) {
	if s != nil {
		s.span.SetAttributes(attributes...)
	}
}

// End ends the span. The class of an error makes it a failed one; its text is nobody's business here.
func (s *Span) End(class string) {
	if s == nil {
		return
	}
	if class != "" {
		s.span.SetAttributes(ErrorType.Of(class))
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// Start begins a span within that of ctx. Without one, it begins a trace.
func (t *Tracing) Start(ctx context.Context, name string, kind Kind, attributes ...Attribute) (context.Context, *Span) {
	return t.StartAs(ctx, "", name, kind, attributes...)
}

// StartAs is Start for a span that has the id of a place, see Within.
func (t *Tracing) StartAs(
	ctx context.Context, as string, name string, kind Kind, attributes ...Attribute,
) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	return start(ctx, t.tracer, as, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
}

// Child begins a span within that of ctx, if that is one of this process and is exported.
func Child(ctx context.Context, name string, kind Kind, attributes ...Attribute) (context.Context, *Span) {
	of := trace.SpanFromContext(ctx)
	if !of.IsRecording() {
		return ctx, nil
	}
	return start(ctx, of.TracerProvider().Tracer(scope), "", name, trace.WithSpanKind(kind),
		trace.WithAttributes(attributes...))
}

func start(
	ctx context.Context, tracer trace.Tracer, as, name string, o ...trace.SpanStartOption,
) (context.Context, *Span) {
	given := ctx
	if as != "" {
		given = context.WithValue(ctx, idKey{}, contextOf(as).SpanID())
	}
	_, span := tracer.Start(given, name, o...)
	return trace.ContextWithSpan(ctx, span), &Span{span} // without the id, which is of this span alone
}

// Whole is a span that is made when it is over.
type Whole struct {
	// As is its place, In that of its parent; see Within.
	As, In     string
	Name       string
	Kind       Kind
	Begun      time.Time
	Ended      time.Time
	Class      string // of the error
	Attributes []Attribute
	// After is the place of the one that it goes on from; "" if it is the first.
	After string
}

// Add adds a span that is over. One without a place is of a trace that is not exported.
func (t *Tracing) Add(w Whole) {
	if t == nil || w.In == "" || w.As == "" {
		return
	}
	o := []trace.SpanStartOption{trace.WithSpanKind(w.Kind), trace.WithAttributes(w.Attributes...),
		trace.WithTimestamp(w.Begun)}
	if w.After != "" {
		o = append(o, trace.WithLinks(trace.Link{SpanContext: contextOf(w.After)}))
	}
	_, span := start(At(context.Background(), w.In), t.tracer, w.As, w.Name, o...)
	if w.Class != "" {
		span.Set(ErrorType.Of(w.Class))
		span.span.SetStatus(codes.Error, "")
	}
	span.span.End(trace.WithTimestamp(w.Ended))
}

// Follows says that the span goes on from the one at a place.
func (s *Span) Follows(place string) {
	if s != nil && place != "" {
		s.span.AddLink(trace.Link{SpanContext: contextOf(place)})
	}
}

// ids gives spans the ids that their contexts name, and others random ones.
type ids struct{}

type idKey struct{}

// NewIDs implements sdk.IDGenerator.
func (g ids) NewIDs(ctx context.Context) (in trace.TraceID, id trace.SpanID) {
	for !in.IsValid() {
		binary.NativeEndian.PutUint64(in[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(in[8:], rand.Uint64())
	}
	return in, g.NewSpanID(ctx, in)
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	id, _ := ctx.Value(idKey{}).(trace.SpanID)
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// StartAt is Start for a span that has begun at a time.
func (t *Tracing) StartAt(ctx context.Context, begun time.Time, name string, kind Kind) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	return start(ctx, t.tracer, "", name, trace.WithSpanKind(kind), trace.WithTimestamp(begun))
}
