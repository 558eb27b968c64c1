package grpcapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"google.golang.org/grpc/metadata"
)

// Authority knows access tokens.
type Authority interface {
	// Authenticate gives the caller whose token has this text, or CodeUnauthorized.
	Authenticate(ctx context.Context, text string) (deployments.Caller, error)
}

// OneToken is the authority that knows a single token, the local user's, who may do everything, and asks next about
// every other; next may be nil.
func OneToken(text string, next Authority) Authority {
	return oneToken{sha256.Sum256([]byte(text)), next, func(context.Context) (deployments.Caller, error) {
		return LocalUser(), nil
	}}
}

// LocalUser is the caller with the local user's token.
func LocalUser() deployments.Caller {
	return deployments.Caller{Token: deployments.LocalToken, Authority: deployments.Everything(), Trusted: true}
}

type oneToken struct {
	hash   [sha256.Size]byte
	next   Authority
	caller func(context.Context) (deployments.Caller, error)
}

func (o oneToken) Authenticate(ctx context.Context, text string) (deployments.Caller, error) {
	hash := sha256.Sum256([]byte(text))
	if subtle.ConstantTimeCompare(hash[:], o.hash[:]) == 1 {
		return o.caller(ctx)
	}
	if o.next == nil {
		return deployments.Caller{}, deployments.Errorf(deployments.CodeUnauthorized,
			"the service does not know this token")
	}
	return o.next.Authenticate(ctx, text)
}

// Admins is an authority that knows whether there is a token of an admin of every organization.
type Admins interface {
	Authority
	HasAdmin(ctx context.Context) (bool, error)
}

// BootstrapToken is the authority that knows the token in the settings of serve. Until there is a token of an admin of
// every organization that one may do everything; from then on it may only manage tokens and members, for when the
// admin's is lost.
func BootstrapToken(text string, next Admins, log *slog.Logger) Authority {
	b := &bootstrap{admins: next, log: log}
	return oneToken{sha256.Sum256([]byte(text)), next, b.caller}
}

type bootstrap struct {
	admins Admins
	log    *slog.Logger

	mu     sync.Mutex
	asked  time.Time
	closed bool // there is an admin
}

// bootstrapFor is how long it is believed that there is, or is not, an admin.
const bootstrapFor = 5 * time.Second

func (b *bootstrap) caller(ctx context.Context) (deployments.Caller, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.asked) >= bootstrapFor {
		closed, err := b.admins.HasAdmin(ctx)
		if err != nil {
			return deployments.Caller{}, err
		}
		b.closed, b.asked = closed, time.Now()
	}
	caller := deployments.Caller{Token: deployments.BootstrapToken, Authority: deployments.Everything(), Trusted: true,
		TokensOnly: b.closed}
	if b.closed {
		b.log.Warn("the token in the settings of serve was used though an admin's token exists: start serve without it")
	}
	return caller, nil
}

// bearer gives the text of the call's token.
func bearer(ctx context.Context) (string, error) {
	headers := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(headers) != 1 || !strings.HasPrefix(headers[0], "Bearer ") {
		return "", deployments.Errorf(deployments.CodeUnauthorized,
			"the service needs an access token: name a file that holds one with --token-file, DEPLOYCTL_TOKEN_FILE "+
				"or token-file in the configuration file, or set DEPLOYCTL_TOKEN")
	}
	return strings.TrimPrefix(headers[0], "Bearer "), nil
}

type callerKey struct{}

// callerOf gives who makes the call.
func callerOf(ctx context.Context) deployments.Caller {
	caller, _ := ctx.Value(callerKey{}).(deployments.Caller)
	return caller
}

// initiatorOf gives who a history is to name: the token, before the client, is believed about who asks.
func initiatorOf(ctx context.Context, said string) string {
	if caller := callerOf(ctx); !caller.Trusted || said == "" {
		return caller.Name()
	}
	return said
}
