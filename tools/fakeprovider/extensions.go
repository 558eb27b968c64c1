package fakeprovider

import (
	"context"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// extensions are the types that extensions of the package have added to this process.
type extensions struct {
	mu    sync.Mutex
	added map[tokens.Type]kind
}

func (x *extensions) kind(t tokens.Type) (kind, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	k, ok := x.added[t]
	return k, ok
}

// add adds a type; it reports whether the process did not have it.
func (x *extensions) add(t tokens.Type) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, has := x.added[t]; has {
		return false
	}
	if x.added == nil {
		x.added = map[tokens.Type]kind{}
	}
	x.added[t] = kind{cloud: "named", naming: named}
	return true
}

// Parameterize extends the package by a type that is as Named: its name is the value of the extension. A process takes
// an extension only once.
func (r *raw) Parameterize(_ context.Context, req *rpc.ParameterizeRequest) (*rpc.ParameterizeResponse, error) {
	e := req.GetValue()
	switch name := string(e.GetValue()); {
	case name == "":
		return nil, status.Error(codes.InvalidArgument, "an extension needs a value: the name of a type")
	case !r.fake.extensions.add(tokens.Type("fake:index:" + name)):
		return nil, status.Errorf(codes.AlreadyExists, "this process has been extended by %s before", name)
	}
	return &rpc.ParameterizeResponse{Name: e.GetName(), Version: e.GetVersion()}, nil
}
