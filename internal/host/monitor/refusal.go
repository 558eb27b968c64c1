package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	// longestRefusal bounds the message of a refusal in bytes: it may quote what the program sent.
	longestRefusal = 4 << 10
	// largestMessage bounds the message of a registration in bytes of JSON, without its values.
	largestMessage = 512 << 10
)

// An endingError is the response to a program whose update is ending for a reason that the Run has reported already.
// SDKs understand its code: the program exits without an error of its own.
type endingError struct{ *status.Status }

func (e *endingError) Error() string { return e.Message() }

// GRPCStatus returns the status of the response.
func (e *endingError) GRPCStatus() *status.Status { return e.Status }

// ending returns the response to a program whose update is ending. What the program logs about it is left out of the
// update's log; see Refusals.
func (m *Monitor) ending(text string) error {
	m.refusals.add(text)
	return &endingError{status.New(codes.Unavailable, text)}
}

// Refusals are the responses that said that the update is ending. It is safe for concurrent use.
type Refusals struct {
	mu    sync.Mutex
	texts []string
}

// maxRefusals bounds how many are kept: nearly all have the same text.
const maxRefusals = 100

func (r *Refusals) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.texts) < maxRefusals && !slices.Contains(r.texts, text) {
		r.texts = append(r.texts, text)
	}
}

// Explain reports whether an error that a program logs repeats such a response, so that it need not be shown again.
func (r *Refusals) Explain(said pluginhost.Message) bool {
	if said.Severity != diag.Error {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.texts, func(text string) bool { return strings.Contains(said.Text, text) })
}

// replyError returns the error of a call that the Run did not reply to or refused; nil if it did reply.
func (m *Monitor) replyError(reply engine.Reply, err error) error {
	var large *tooLargeError
	switch {
	case errors.As(err, &large):
		return status.Error(codes.InvalidArgument, large.Error())
	case err != nil:
		return m.ending("the update does not answer any more: " + err.Error())
	case reply.Error != "":
		return m.ending(reply.Error)
	}
	return nil
}

// A tooLargeError refuses a message that no Run could take.
type tooLargeError struct{ size int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("it has %d KiB of names, dependencies and options, and may have %d KiB at most", e.size>>10,
		largestMessage>>10)
}

// call makes a call to the Run, unless the message is too large.
func (m *Monitor) call(ctx context.Context, about func(epoch, seq int) deployments.Message) (engine.Reply, error) {
	data, err := json.Marshal(about(0, 0))
	if err != nil {
		return engine.Reply{}, err
	}
	if len(data) > largestMessage {
		return engine.Reply{}, &tooLargeError{len(data)}
	}
	return m.link.Call(ctx, about)
}

// refuse fails the update because of a request that is refused, even if the program handles the error, and returns the
// error for the response. An error that the Run has reported, or that nobody waits for any more, is returned as it is.
func (m *Monitor) refuse(ctx context.Context, err error, about engine.Refused) error {
	var known *endingError
	if err == nil || errors.As(err, &known) || ctx.Err() != nil {
		return err
	}
	about.Epoch = m.link.Epoch()
	about.Message = m.host.Redact(ctx, status.Convert(err).Message())
	if len(about.Message) > longestRefusal {
		about.Message = about.Message[:longestRefusal] + "…"
	}
	if data, jsonErr := json.Marshal(about); jsonErr != nil || len(data) > largestMessage {
		about = engine.Refused{Epoch: about.Epoch, Message: about.Message}
	}
	m.link.Send(deployments.Message{Refused: &about})
	if m.goal.ContinueOnError {
		return err
	}
	return m.ending(about.Message)
}

// callFailed fails the update because a call of the program could not be served.
func (m *Monitor) callFailed(err error) {
	_ = m.refuse(context.Background(), err, engine.Refused{})
}

// refuseFeature refuses a request for a feature that is not about one resource. The call itself succeeds, because SDKs
// ignore such errors; the program fails at its next registration.
func (m *Monitor) refuseFeature(ctx context.Context, err error) (*emptypb.Empty, error) {
	if err := m.refuse(ctx, err, engine.Refused{}); err != nil {
		m.closed.CompareAndSwap(nil, &err)
	}
	return &emptypb.Empty{}, nil
}

// refusedBefore returns the error of every registration after refuseFeature: without the feature, resources would be
// registered with other values.
func (m *Monitor) refusedBefore() error {
	if err := m.closed.Load(); err != nil {
		return m.ending(status.Convert(*err).Message())
	}
	return nil
}

// unsupported returns the error for a feature that programs can use and that is not implemented yet.
func unsupported(what string) error {
	return status.Errorf(codes.Unimplemented, "%s are not supported yet; remove them from the program", what)
}

// refusedRegistration returns what a refused registration was about, as far as the request is readable.
func refusedRegistration(ctx context.Context, req *pulumirpc.RegisterResourceRequest) engine.Refused {
	about := engine.Refused{Type: tokens.Type(req.GetType()), Name: req.GetName()}
	if parent, err := urn.ParseOptional(req.GetParent()); err == nil {
		about.Parent = parent
	}
	if aliases, err := readAliases(req, fromNode(ctx) && !req.GetAliasSpecs()); err == nil {
		about.Aliases = aliases
	}
	return about
}
