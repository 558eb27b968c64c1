package grpcapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/grpcapi/wire"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Authority knows access tokens.
type Authority interface {
	// Authenticate gives the token with this text, or CodeUnauthorized. An empty name is the local user's own token: what
	// that client says about who asks is believed.
	Authenticate(ctx context.Context, text string) (deployments.Token, error)
}

// OneToken is the authority that knows a single token, the local user's, and asks next about every other; next may be nil.
func OneToken(text string, next Authority) Authority {
	return oneToken{sha256.Sum256([]byte(text)), next}
}

type oneToken struct {
	hash [sha256.Size]byte
	next Authority
}

func (o oneToken) Authenticate(ctx context.Context, text string) (deployments.Token, error) {
	hash := sha256.Sum256([]byte(text))
	if subtle.ConstantTimeCompare(hash[:], o.hash[:]) == 1 {
		return deployments.Token{}, nil
	}
	if o.next == nil {
		return deployments.Token{}, deployments.Errorf(deployments.CodeUnauthorized, "the service does not know this token")
	}
	return o.next.Authenticate(ctx, text)
}

type callerKey struct{}

// callerOf gives the name of the token that a call was made with.
func callerOf(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

// interceptors authenticate every call but health and translate every error.
type interceptors struct {
	authority Authority
	log       *slog.Logger
	streams   context.Context // ends when streams shall end
}

func (i *interceptors) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	ctx, err := i.authenticate(ctx, info.FullMethod)
	if err != nil {
		return nil, wire.FromError(err)
	}
	if err := validate(req); err != nil {
		return nil, wire.FromError(err)
	}
	resp, err := handle(ctx, req)
	return resp, i.translate(info.FullMethod, err)
}

func (i *interceptors) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx, err := i.authenticate(s.Context(), info.FullMethod)
	if err != nil {
		return wire.FromError(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(i.streams, cancel)()
	err = handle(srv, &validatingStream{ServerStream: s, ctx: ctx})
	if i.streams.Err() != nil && s.Context().Err() == nil {
		return status.Error(codes.Unavailable, "the service is stopping")
	}
	return i.translate(info.FullMethod, err)
}

// authenticate checks the call's bearer token and remembers its name.
func (i *interceptors) authenticate(ctx context.Context, method string) (context.Context, error) {
	if strings.HasPrefix(method, "/grpc.health.v1.") {
		return ctx, nil
	}
	headers := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(headers) != 1 || !strings.HasPrefix(headers[0], "Bearer ") {
		return ctx, deployments.Errorf(deployments.CodeUnauthorized, "the service needs an access token: set DEPLOYCTL_TOKEN, or token in the configuration file")
	}
	token, err := i.authority.Authenticate(ctx, strings.TrimPrefix(headers[0], "Bearer "))
	if err != nil {
		return ctx, err
	}
	return context.WithValue(ctx, callerKey{}, token.Name), nil
}

// translate makes a status of an error; what it hides from the caller is logged.
func (i *interceptors) translate(method string, err error) error {
	translated := wire.FromError(err)
	if status.Code(translated) == codes.Internal {
		i.log.Error("call failed", "method", method, "error", err)
	}
	return translated
}
