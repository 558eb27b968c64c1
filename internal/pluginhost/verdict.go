package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Outcome is what is known about the effect of a mutating call.
type Outcome int

const (
	// Answered: it was done, and the result is what the call returned.
	Answered Outcome = iota
	// Exists: it was done, but the resource failed to initialise; the call returned its id and state, and the error's
	// reasons belong into them.
	Exists
	// Failed: the provider refused or failed, and has changed nothing (the contract of providers). Retrying blindly is wrong.
	Failed
	// NotDone: it never reached the provider or was turned away for now. It may be made again after RetryAfter.
	NotDone
	// Unknown: it may or may not have been done. It must be found out before anything else happens to the resource.
	Unknown
)

// String is the outcome in words.
func (o Outcome) String() string {
	return [...]string{"answered", "exists, not initialised", "failed", "not done", "unknown"}[o]
}

// Verdict is the reading of a mutating call's error.
type Verdict struct {
	Outcome    Outcome
	RetryAfter time.Duration // with NotDone: what the provider asked for, or 0
	Died       bool          // the provider's process has ended; Host.Provider starts another
	Reason     string        // for people
}

// Classify reads the error of a Create, Update or Delete.
func (p *Provider) Classify(err error) Verdict {
	v := classify(err)
	if v.Died = !p.Alive(); v.Died && v.Outcome == Unknown && p.end.proc != nil {
		v.Reason = fmt.Sprintf("%s ended (%s) before it answered", p.end.name, p.end.proc.Exit())
	}
	return v
}

func classify(err error) Verdict {
	if err == nil {
		return Verdict{Outcome: Answered}
	}
	v := Verdict{Reason: err.Error()}
	var initialisation *plugin.InitError
	var garbled *garbledAnswer
	var answer *rpcerror.Error
	switch {
	case errors.As(err, &initialisation):
		v.Outcome = Exists
	case errors.As(err, &garbled):
		v.Outcome = Unknown
	case errors.As(err, &answer):
		v.Outcome, v.RetryAfter = readStatus(answer)
	default: // the call could not even be made
		v.Outcome = Failed
	}
	return v
}

// readStatus maps a gRPC status. Providers report whatever went wrong for them as Unknown, so that code is the plain error.
func readStatus(e *rpcerror.Error) (Outcome, time.Duration) {
	retryAfter, turnedAway := readDetails(e)
	switch e.Code() {
	case codes.ResourceExhausted:
		if strings.HasPrefix(e.Message(), "grpc: received message larger") {
			return Unknown, 0 // an answer that could not be taken is not a refusal
		}
		return NotDone, retryAfter
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		if turnedAway {
			return NotDone, retryAfter
		}
		return Unknown, 0
	case codes.Aborted, codes.Internal, codes.DataLoss:
		return Unknown, 0
	default:
		return Failed, 0
	}
}

// readDetails tells how long to wait, and whether the call was turned away: never sent, or refused with the time to come again.
func readDetails(e *rpcerror.Error) (retryAfter time.Duration, turnedAway bool) {
	for _, detail := range e.Details() {
		switch d := detail.(type) {
		case *errdetails.RetryInfo:
			retryAfter, turnedAway = d.GetRetryDelay().AsDuration(), true
		case *errdetails.ErrorInfo:
			if d.GetReason() == unsentReason && d.GetDomain() == unsentDomain {
				turnedAway = true
			}
		}
	}
	return retryAfter, turnedAway
}

// How markUnsent marks an error, in the details of its status because the SDK keeps nothing else of it.
const (
	unsentReason = "NOT_SENT"
	unsentDomain = "deployctl"
)

type sentKey struct{}

// markUnsent marks the errors of calls of which nothing was given to the transport: those cannot have had an effect.
func markUnsent(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	sent := new(atomic.Bool)
	err := invoke(context.WithValue(ctx, sentKey{}, sent), method, req, reply, conn, opts...)
	if err == nil || sent.Load() {
		return err
	}
	info := &errdetails.ErrorInfo{Reason: unsentReason, Domain: unsentDomain}
	if marked, detailErr := status.Convert(err).WithDetails(info); detailErr == nil {
		return marked.Err()
	}
	return err
}

// sendWatcher notes when a call's headers go to the transport. From then on it counts as sent.
type sendWatcher struct{}

func (sendWatcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sendWatcher) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sendWatcher) HandleConn(context.Context, stats.ConnStats)                       {}

func (sendWatcher) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ok := event.(*stats.OutHeader); !ok {
		return
	}
	if sent, ok := ctx.Value(sentKey{}).(*atomic.Bool); ok {
		sent.Store(true)
	}
}

// garbledAnswer is an error about an answer of the provider: the effect has happened or not, but the answer cannot be used.
type garbledAnswer struct{ err error }

func (e *garbledAnswer) Error() string { return e.err.Error() }
func (e *garbledAnswer) Unwrap() error { return e.err }

// Create makes a resource; see Classify about its errors.
func (p *Provider) Create(ctx context.Context, req plugin.CreateRequest) (plugin.CreateResponse, error) {
	before := p.wire.calls(req.URN)
	resp, err := p.Provider.Create(ctx, req)
	return resp, p.wire.explain(err, req.URN, before)
}

// Update changes a resource; see Classify about its errors.
func (p *Provider) Update(ctx context.Context, req plugin.UpdateRequest) (plugin.UpdateResponse, error) {
	before := p.wire.calls(req.URN)
	resp, err := p.Provider.Update(ctx, req)
	return resp, p.wire.explain(err, req.URN, before)
}

// Delete removes a resource; see Classify about its errors.
func (p *Provider) Delete(ctx context.Context, req plugin.DeleteRequest) (plugin.DeleteResponse, error) {
	before := p.wire.calls(req.URN)
	resp, err := p.Provider.Delete(ctx, req)
	return resp, p.wire.explain(err, req.URN, before)
}

// explain turns errors that the SDK made out of an answer into garbledAnswer: they come without a status, and after a call
// was made for the URN. One made before the call has no effect and stays as it is.
func (w *wire) explain(err error, urn resource.URN, before int) error {
	var answer *rpcerror.Error
	var initialisation *plugin.InitError
	if err == nil || errors.As(err, &answer) || errors.As(err, &initialisation) || w.calls(urn) == before {
		return err
	}
	return &garbledAnswer{err}
}

func (w *wire) calls(urn resource.URN) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[string(urn)]
}

func (w *wire) note(urn string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[urn]++
}

func (w *wire) Create(
	ctx context.Context, in *pulumirpc.CreateRequest, opts ...grpc.CallOption,
) (*pulumirpc.CreateResponse, error) {
	w.note(in.GetUrn())
	return w.ResourceProviderClient.Create(ctx, in, opts...)
}

func (w *wire) Update(
	ctx context.Context, in *pulumirpc.UpdateRequest, opts ...grpc.CallOption,
) (*pulumirpc.UpdateResponse, error) {
	w.note(in.GetUrn())
	return w.ResourceProviderClient.Update(ctx, in, opts...)
}

func (w *wire) Delete(
	ctx context.Context, in *pulumirpc.DeleteRequest, opts ...grpc.CallOption,
) (*emptypb.Empty, error) {
	w.note(in.GetUrn())
	return w.ResourceProviderClient.Delete(ctx, in, opts...)
}
