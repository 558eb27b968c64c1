package grpcapi

import (
	"context"
	"math"

	"google.golang.org/grpc/tap"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/sys/share"
)

// How many calls a process answers at a time: each takes some 25 KiB, and up to smallAnswer of an answer that nobody
// reads. Of all, a party and a token have a part, and leastOfOne whatever others have.
const (
	mostCalls, mostOfParty, mostOfToken = 6_000, 3_000, 2_500
	leastOfOne                          = 64
	// mostOpen are streams without a token at a time, and mostOfHost those of one host.
	mostOpen, mostOfHost = 1_000, 250
	// mostEntering are calls at a time whose token is not looked up yet, and mostOfConnections those on the connections of
	// one token, or of the strangers of one host.
	mostEntering, mostOfConnections = 1_000, 250
)

// Calls are the calls that are under way in a process, on all of its edges. It is safe for concurrent use.
type Calls struct {
	parties, tokens *share.Places
}

// NewCalls returns the calls of a process, of which there are none yet.
func NewCalls() *Calls { return newCalls(mostCalls, mostOfParty, mostOfToken) }

type enteredKey struct{}

// enter is asked about each call before anything is made for it, and counts it until its caller is known. It must not
// wait: nothing else of the connection is read meanwhile.
func (e *edge) enter(ctx context.Context, _ *tap.Info) (context.Context, error) {
	leave, err := e.entering.enter(partyOf(ctx, peerOf(ctx)), "")
	if err != nil {
		return nil, wire.FromError(err)
	}
	context.AfterFunc(ctx, leave)
	return context.WithValue(ctx, enteredKey{}, leave), nil
}

// entered notes that it is known who makes a call, or that nobody needs to.
func entered(ctx context.Context) {
	if leave, ok := ctx.Value(enteredKey{}).(func()); ok {
		leave()
	}
}

func newEntering() *Calls { return newCalls(mostEntering, mostOfConnections, mostOfConnections) }

func newCalls(most, party, token int) *Calls {
	return &Calls{
		parties: share.NewPlaces(share.Limits{All: most, OfOne: party, Least: leastOfOne}),
		tokens:  share.NewPlaces(share.Limits{All: math.MaxInt, OfOne: token}),
	}
}

// enter counts a call until leave is called. It is refused at once if there are too many: waiting would cost as much.
func (c *Calls) enter(party, token string) (leave func(), err error) {
	leaveParty, ok := c.parties.Take(party)
	if !ok {
		return func() {}, errTooManyCalls
	}
	leaveToken, ok := c.tokens.Take(party + "\x00" + token)
	if !ok {
		leaveParty()
		return func() {}, errTooManyCalls
	}
	return func() { leaveToken(); leaveParty() }, nil
}

var errTooManyCalls = busy("too many calls are made at once")

// Enter counts a call of a caller, of an edge of another protocol.
func (g *Gate) Enter(caller deployments.Caller) (leave func(), err error) {
	return g.edge.calls.enter(caller.Party(""), caller.Token)
}
