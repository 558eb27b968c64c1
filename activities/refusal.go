package activities

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
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

const (
	// longestRefusal bounds, in bytes, the sentence of a refusal: it may quote what the program sent.
	longestRefusal = 4 << 10
	// largestMessage bounds, in bytes of JSON, what a registration carries to the Run, beside its values.
	largestMessage = 512 << 10
)

// A toldError answers a program because the update is ending for a reason that the Run knows and has told people.
// SDKs understand its code: the program leaves, and adds no error of its own.
type toldError struct{ *status.Status }

func (e *toldError) Error() string { return e.Message() }

// GRPCStatus is what the program gets.
func (e *toldError) GRPCStatus() *status.Status { return e.Status }

// told is the error that answers a program once the update is ending. What the program itself then logs about it is
// left out of the update's log.
func (m *monitor) told(text string) error {
	m.session.excuses.add(text)
	return &toldError{status.New(codes.Unavailable, text)}
}

// excuses are the answers with which programs were told that their update is ending.
type excuses struct {
	mu    sync.Mutex
	texts []string
}

// mostExcuses bounds them: nearly all are the same.
const mostExcuses = 100

func (e *excuses) add(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.texts) < mostExcuses && !slices.Contains(e.texts, text) {
		e.texts = append(e.texts, text)
	}
}

// explain reports whether an error that a program logs is what it was told: people know it already.
func (e *excuses) explain(said pluginhost.Message) bool {
	if said.Severity != diag.Error {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.texts, func(text string) bool { return strings.Contains(said.Text, text) })
}

// refusal is the error of a call that was not answered or was refused.
func (m *monitor) refusal(reply engine.Reply, err error) error {
	var large *tooLargeError
	switch {
	case errors.As(err, &large):
		return status.Error(codes.InvalidArgument, large.Error())
	case err != nil:
		return m.told("the update does not answer any more: " + err.Error())
	case reply.Error != "":
		return m.told(reply.Error)
	}
	return nil
}

// A tooLargeError refuses a message that no Run could take.
type tooLargeError struct{ size int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("it has %d KiB of names, dependencies and options, and may have %d KiB at most", e.size>>10,
		largestMessage>>10)
}

// ask asks the Run, unless the message is too large to be sent.
func (m *monitor) ask(ctx context.Context, about func(epoch, seq int) deployments.Message) (engine.Reply, error) {
	data, err := json.Marshal(about(0, 0))
	if err != nil {
		return engine.Reply{}, err
	}
	if len(data) > largestMessage {
		return engine.Reply{}, &tooLargeError{len(data)}
	}
	return m.link.Call(ctx, about)
}

// refuse fails the update for what the program asked for and does not get, whatever the program makes of that, and
// returns the error to answer. What the Run knows already, or nobody waits for any more, is answered as it is.
func (m *monitor) refuse(ctx context.Context, err error, about engine.Refused) error {
	var known *toldError
	if err == nil || errors.As(err, &known) || ctx.Err() != nil {
		return err
	}
	about.Epoch = m.link.Epoch()
	about.Message = m.session.curtain(ctx)(status.Convert(err).Message())
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
	return m.told(about.Message)
}

// unserved fails the update because a call of the program could not be served.
func (m *monitor) unserved(err error) {
	_ = m.refuse(context.Background(), err, engine.Refused{})
}

// forgo refuses something that is not about one resource. The call itself is answered as if it were granted, because
// SDKs make little of such errors, and the program gets no further than to its next registration.
func (m *monitor) forgo(ctx context.Context, what string) (*emptypb.Empty, error) {
	if err := m.refuse(ctx, unsupported(what), engine.Refused{}); err != nil {
		m.closed.CompareAndSwap(nil, &err)
	}
	return &emptypb.Empty{}, nil
}

// open is the error of every registration after something was forgone without which resources would be others.
func (m *monitor) open() error {
	if err := m.closed.Load(); err != nil {
		return m.told(status.Convert(*err).Message())
	}
	return nil
}

// unsupported is the error about something that programs can ask for and that does not exist here yet.
func unsupported(what string) error {
	return status.Errorf(codes.Unimplemented, "%s are not supported yet; remove them from the program", what)
}

// refusedRegistration says what a refused registration was about, as far as that can be read.
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
