package grpcapi

import (
	"cmp"
	"context"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
)

// Gate lets callers in for an edge that speaks another protocol: it finds who they are by their tokens, and bounds what
// they may ask for, as the edge of this package does.
type Gate struct {
	// Memory is what the organizations share.
	Memory *mempool.Pool
	edge   *edge
}

// NewGate returns the gate of one edge; memory and calls are nil if the edge has its own.
func NewGate(a Authority, memory *mempool.Pool, calls *Calls) *Gate {
	bounds := newBounds(memory)
	return &Gate{bounds.memory, &edge{
		authority: a, bounds: bounds, calls: cmp.Or(calls, NewCalls()), entering: newEntering(),
	}}
}

// Caller returns the caller with a token. Wrong tokens are slowed by the host that they come from, and all calls of a
// token by that.
func (g *Gate) Caller(ctx context.Context, text, host string) (deployments.Caller, error) {
	entered, err := g.edge.entering.enter(partyOf(ctx, host), "")
	if err != nil {
		return deployments.Caller{}, err
	}
	defer entered()
	done, err := g.edge.bounds.lookup(ctx)
	if err != nil {
		return deployments.Caller{}, err
	}
	caller, err := g.edge.authority.Authenticate(ctx, text)
	done()
	entered() // a wrong token waits below
	if err != nil {
		if deployments.CodeOf(err) == deployments.CodeUnauthorized {
			g.Wrong(ctx, host)
		}
		return caller, err
	}
	if caller.TokensOnly {
		return caller, errTokensOnly
	}
	g.Known(ctx, caller.Token)
	return caller, g.edge.bounds.pace(ctx, caller.Token)
}

// Known notes that the sender of a call is known by a name, and so its connection is no stranger's; see Limited.
func (g *Gate) Known(ctx context.Context, name string) { knownCaller(ctx, name) }

var errTokensOnly = deployments.Errorf(deployments.CodeForbidden,
	"the token that serve was started with may only manage tokens and members once there is an admin's token: use that "+
		"one")

// Wrong delays the answer to a call without a right token.
func (g *Gate) Wrong(ctx context.Context, host string) { g.edge.bounds.slow(ctx, host) }

// AsksProvider reports, as ErrManyLogins, that too many of a host log in with an identity provider at once. The
// provider is asked a bounded number of times for all hosts together, of which a host has a part.
func (g *Gate) AsksProvider(host string) error {
	if !g.edge.bounds.logins.of(Party(host)).Allow() {
		return ErrManyLogins
	}
	return nil
}

// ErrManyLogins is the error of a login with an identity provider beyond what its host has.
var ErrManyLogins = deployments.Errorf(deployments.CodeUnavailable,
	"too many logins with the identity provider come from your network at once: try again in a few seconds, or log in "+
		"with a token")

// Pace delays a call of a name, such as an update, that calls too often.
func (g *Gate) Pace(ctx context.Context, name string) error { return g.edge.bounds.pace(ctx, name) }

// HoldExport takes one of the places of calls that answer with a whole deployment or with the audit log; party is the
// caller's.
func (g *Gate) HoldExport(ctx context.Context, party string) (release func(), err error) {
	return g.edge.bounds.export(ctx, party)
}

// Account writes into the entry of a call that has ended to whose account it goes, and whether it was refused: before
// its method began, or by that, or because its caller never was known.
func Account(e *deployments.AuditEntry, caller deployments.Caller, before bool) {
	failed := e.Code != ""
	e.Party, e.Refused = caller.Party(""), before || failed && (e.Token == "" || refuses(e.Code))
	e.Cut()
}

// Rule is the rule of one method, for a call of another protocol that does the same.
type Rule struct {
	rule   rule
	method string
}

// RuleOf returns the rule of a method by its full name; false when there is none.
func RuleOf(method string) (Rule, bool) {
	r, ok := rules[method]
	return Rule{r, shortMethod(method)}, ok
}

// Method returns the name of the method in the audit log, such as Stacks/Export.
func (r Rule) Method() string { return r.method }

// Recorded reports whether the audit log has a call of the method that was not refused; now means that it must be
// durable before the caller is answered.
func (r Rule) Recorded() (recorded, now bool) {
	return r.rule.does == changes || r.rule.does == discloses, r.rule.does == changes
}

// ReadsSecrets reports whether a call shows secrets in plaintext.
func (r Rule) ReadsSecrets(raised bool) bool {
	return r.rule.secrets && (r.rule.raised == "" || raised)
}

// AllowIn reports, as CodeForbidden, why a caller may not make a call about anything in an organization. A call that
// shows what its caller may see is not refused.
func (r Rule) AllowIn(caller deployments.Caller, organization string) error {
	return allowIn(caller, r.method, r.rule.role, organization)
}

// Allow reports why a caller may not make a call about stacks: CodeForbidden, or CodeNotFound for a stack that they may
// not see. Raised calls need the role that the method needs when its field of that name is set.
func (r Rule) Allow(caller deployments.Caller, raised bool, stacks ...deployments.StackName) error {
	role := r.rule.role
	if raised {
		role = r.rule.to
	}
	if r.rule.scope == onAny {
		return allowAny(caller, r.method, role)
	}
	for i, name := range stacks {
		made := r.rule.scope == onNewStack && i == len(r.rule.touches)-1
		if err := allowOn(caller, r.method, role, name, made); err != nil {
			return err
		}
	}
	return nil
}

// Host returns the host of HOST:PORT.
func Host(address string) string { return hostOf(strings.TrimSpace(address)) }
