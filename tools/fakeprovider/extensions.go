package fakeprovider

import (
	"context"
	"strings"
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
	// instead is the package that the process serves in place of fake; "" for none.
	instead tokens.Package
}

// kind returns the kind of a type of the package that the process serves.
func (x *extensions) kind(t tokens.Type) (kind, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.instead != "" {
		rest, is := strings.CutPrefix(string(t), string(x.instead)+":")
		k, ok := kinds[tokens.Type("fake:"+rest)]
		return k, is && ok
	}
	if k, ok := kinds[t]; ok {
		return k, true
	}
	k, ok := x.added[t]
	return k, ok
}

// serve makes the process serve another package.
func (x *extensions) serve(pkg tokens.Package) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.instead = pkg
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

// instead is the value of a parameter that makes the process serve another package, with the same types.
const instead = "instead"

// Parameterize extends the package by a type that is as Named: its name is the value of the extension. A process takes
// an extension only once. With the value "instead" it is no extension: the process serves the package of the parameter.
func (r *raw) Parameterize(_ context.Context, req *rpc.ParameterizeRequest) (*rpc.ParameterizeResponse, error) {
	e := req.GetValue()
	switch name := string(e.GetValue()); {
	case name == instead:
		r.fake.extensions.serve(tokens.Package(e.GetName()))
	case name == "":
		return nil, status.Error(codes.InvalidArgument, "an extension needs a value: the name of a type")
	case !r.fake.extensions.add(tokens.Type("fake:index:" + name)):
		return nil, status.Errorf(codes.AlreadyExists, "this process has been extended by %s before", name)
	}
	return &rpc.ParameterizeResponse{Name: e.GetName(), Version: e.GetVersion()}, nil
}
