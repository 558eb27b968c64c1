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

// delivery is how far a call got that ended with an error. The status code does not show it: Unavailable may come from
// the provider, from a connection that broke, or from a connection that could not be made.
type delivery string

const (
	deliveryAnswered delivery = ""            // the error is the provider's own
	deliveryUnsent   delivery = "CALL_UNSENT" // nothing was sent: no effect
	deliveryLost     delivery = "CALL_LOST"   // sent, without an answer
	deliveryOversize delivery = "CALL_LARGE"  // the request is too large for gRPC, and was not sent
)

const deliveryDomain = "deployctl" // the domain of the status detail with a delivery

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

// progress records what the transport did for one call.
type progress struct{ sent, payload, answered atomic.Bool }

type progressKey struct{}

// markDelivery marks the errors of calls that the provider has not answered. The mark is a detail of the status,
// because the SDK passes on nothing else of an error.
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
		// we closed the connection because the process died: not a cancel
		st = status.New(codes.Unavailable, st.Message())
	}
	info := &errdetails.ErrorInfo{Reason: string(reached), Domain: deliveryDomain}
	if marked, detailErr := st.WithDetails(info); detailErr == nil {
		return marked.Err()
	}
	return err
}

// markStream is markDelivery for streaming calls. They change nothing, so it only distinguishes a lost provider from
// one that returns an error or was cancelled.
func markStream(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil {
		return nil, plain(ifClosed(conn, err))
	}
	return markedStream{stream, conn}, nil
}

type markedStream struct {
	grpc.ClientStream
	conn *grpc.ClientConn
}

// RecvMsg receives a message, and checks it as the answer of a unary call.
func (s markedStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return plain(ifClosed(s.conn, err))
	}
	if err := checkValues(m); err != nil {
		return unreadable(err)
	}
	return nil
}

// ifClosed returns the error of a call. If gRPC reports a cancel because we closed the connection when the process
// died, the error becomes Unavailable.
func ifClosed(conn *grpc.ClientConn, err error) error {
	if status.Code(err) != codes.Canceled || conn.GetState() != connectivity.Shutdown {
		return err
	}
	return status.Error(codes.Unavailable, status.Convert(err).Message())
}

// callWatcher records the progress of calls: sent once the transport has the headers, payload once it has the request,
// answered once the status was received.
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
