package pluginhost

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// delivery is how far a call that ended with an error got. The status code does not say: an Unavailable of the
// provider, one of a connection that broke, and one of a connection that could not be made look alike.
type delivery string

const (
	deliveryAnswered delivery = ""            // the error is the provider's own
	deliveryUnsent   delivery = "CALL_UNSENT" // nothing was sent: no effect
	deliveryLost     delivery = "CALL_LOST"   // sent, without an answer
	deliveryOversize delivery = "CALL_LARGE"  // the request is too large for gRPC, and was not sent
)

const deliveryDomain = "deployctl" // of the status detail with a delivery

// deliveryOf returns the delivery with which markDelivery marked an error.
func deliveryOf(err error) delivery {
	var e *rpcerror.Error
	if !errors.As(err, &e) {
		return deliveryAnswered
	}
	for _, detail := range e.Details() {
		if d, ok := detail.(*errdetails.ErrorInfo); ok && d.GetDomain() == deliveryDomain {
			return delivery(d.GetReason())
		}
	}
	return deliveryAnswered
}

// progress is what the transport did for one call.
type progress struct{ sent, payload, answered atomic.Bool }

type progressKey struct{}

// markDelivery marks the errors of calls that the provider has not answered. The mark is a detail of the status,
// because the SDK passes nothing else of an error on.
func markDelivery(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	p := new(progress)
	err := invoke(context.WithValue(ctx, progressKey{}, p), method, req, reply, conn, opts...)
	if err == nil || p.answered.Load() {
		return err
	}
	reached := deliveryLost
	if !p.sent.Load() {
		reached = deliveryUnsent
	}
	st := status.Convert(err)
	if st.Code() == codes.ResourceExhausted && !p.payload.Load() && strings.Contains(st.Message(), "larger than max") {
		reached = deliveryOversize
	}
	if st.Code() == codes.Canceled && ctx.Err() == nil {
		// we closed the connection as the process died; nobody cancelled
		st = status.New(codes.Unavailable, st.Message())
	}
	info := &errdetails.ErrorInfo{Reason: string(reached), Domain: deliveryDomain}
	if marked, detailErr := st.WithDetails(info); detailErr == nil {
		return marked.Err()
	}
	return err
}

// markStream does for calls with many answers, which change nothing, what is needed of markDelivery: that a lost
// provider is told from one that refuses, or was asked to give up.
func markStream(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil {
		return nil, ifClosed(conn, err)
	}
	return markedStream{stream, conn}, nil
}

type markedStream struct {
	grpc.ClientStream
	conn *grpc.ClientConn
}

// RecvMsg receives an answer.
func (s markedStream) RecvMsg(m any) error { return ifClosed(s.conn, s.ClientStream.RecvMsg(m)) }

// ifClosed is the error of a call: where gRPC says that it was cancelled because we closed the connection as the
// process died, nobody cancelled it.
func ifClosed(conn *grpc.ClientConn, err error) error {
	if status.Code(err) != codes.Canceled || conn.GetState() != connectivity.Shutdown {
		return err
	}
	return status.Error(codes.Unavailable, status.Convert(err).Message())
}

// callWatcher notes the progress of calls: sent from when the headers are given to the transport, payload from when
// the request was, answered when the status has come back.
type callWatcher struct{}

func (callWatcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (callWatcher) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (callWatcher) HandleConn(context.Context, stats.ConnStats)                       {}

func (callWatcher) HandleRPC(ctx context.Context, event stats.RPCStats) {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return
	}
	switch event.(type) {
	case *stats.OutHeader:
		p.sent.Store(true)
	case *stats.OutPayload:
		p.payload.Store(true)
	case *stats.InTrailer:
		p.answered.Store(true)
	}
}
