package tracing

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// CallerPlace returns the place of the caller of a gRPC method in its trace; "" if it names none.
func CallerPlace(ctx context.Context) string {
	if said := metadata.ValueFromIncomingContext(ctx, Header); len(said) == 1 {
		return said[0]
	}
	return ""
}

// RPC returns the attributes of a call of a method, whose full name is given.
func RPC(full string) []Attribute {
	service, method, _ := strings.Cut(strings.TrimPrefix(full, "/"), "/")
	return []Attribute{RPCSystem.Of("grpc"), RPCService.Of(service), RPCMethod.Of(method)}
}

// EndRPC ends the span of a call that has come to a status.
func (s *Span) EndRPC(err error) {
	if s == nil {
		return
	}
	code, class := status.Code(err), ""
	if err != nil {
		class = code.String()
	}
	s.Set(RPCStatus.Int(int(code)))
	s.End(class)
}

// Unary makes a span of each call of a client within a span, and tells the server its place.
func Unary(within *Span) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		if within == nil || !ours(method) {
			return invoke(ctx, method, req, reply, conn, opts...)
		}
		ctx, span := calling(within.In(ctx), method)
		err := invoke(ctx, method, req, reply, conn, opts...)
		span.EndRPC(err)
		return err
	}
}

// ours reports whether a method is one of the API: a check of the service's health is nobody's work.
func ours(method string) bool { return strings.HasPrefix(method, "/deployctl.") }

// calling begins the span of a call.
func calling(ctx context.Context, method string) (context.Context, *Span) {
	ctx, span := Child(ctx, method[1:], Client, RPC(method)...)
	carrier := propagation.MapCarrier{}
	codec.Inject(ctx, carrier) // also that of a trace that is not exported, which then is not exported there
	if place := carrier[Header]; place != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, Header, place)
	}
	return ctx, span
}

// Streaming is Unary for streams.
func Streaming(within *Span) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
		opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if within == nil || !ours(method) {
			return open(ctx, desc, conn, method, opts...)
		}
		ctx, span := calling(within.In(ctx), method)
		stream, err := open(ctx, desc, conn, method, opts...)
		if err != nil || span == nil {
			span.EndRPC(err)
			return stream, err
		}
		s := &tracedStream{ClientStream: stream, span: span, single: !desc.ServerStreams}
		context.AfterFunc(ctx, func() { s.end(nil) }) // the caller wants no more of it
		return s, nil
	}
}

// tracedStream ends its span with the stream.
type tracedStream struct {
	grpc.ClientStream
	span   *Span
	single bool // there is one answer
	once   sync.Once
}

// RecvMsg receives a message.
func (s *tracedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case errors.Is(err, io.EOF):
		s.end(nil)
	case err != nil || s.single:
		s.end(err)
	}
	return err
}

func (s *tracedStream) end(err error) { s.once.Do(func() { s.span.EndRPC(err) }) }

// Serving puts the calls of a server within the span.
func (s *Span) Serving() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		return handle(s.In(ctx), req)
	}
}
