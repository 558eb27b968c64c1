package pluginhost

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver"
	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	codegenrpc "github.com/pulumi/pulumi/sdk/v3/proto/go/codegen"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// loaderServer serves the schemas of packages to language hosts.
type loaderServer struct {
	codegenrpc.UnimplementedLoaderServer
	schema func(context.Context, Package) ([]byte, error)
	mu     sync.Mutex
	told   map[[sha256.Size]byte]bool // packages of which it was said that their plugin is missing
}

// mostTold bounds the packages that are remembered, which a program names.
const mostTold = 1000

func (s *loaderServer) GetSchema(
	ctx context.Context, req *codegenrpc.GetSchemaRequest,
) (*codegenrpc.GetSchemaResponse, error) {
	pkg := Package{Name: req.GetPackage(), Version: req.GetVersion(), DownloadURL: req.GetDownloadUrl()}
	if p := req.GetParameterization(); p != nil {
		pkg.Parameter = &Parameter{Name: p.GetName(), Version: p.GetVersion(), Value: p.GetValue()}
	}
	schema, err := s.schema(ctx, pkg)
	if err != nil {
		return nil, status.Error(codes.Unknown, s.sentence(pkg, err))
	}
	return &codegenrpc.GetSchemaResponse{Schema: schema}, nil
}

// sentence is the text of an error. A program asks again for each of its resources of a package; what to do about a
// missing plugin is said once.
func (s *loaderServer) sentence(pkg Package, err error) string {
	var missing *MissingPluginError
	if errors.As(err, &missing) {
		if s.saidBefore(sha256.Sum256([]byte(pkg.key()))) {
			return missing.Plugin.String() + " is not installed, as said above"
		}
	}
	return err.Error()
}

func (s *loaderServer) saidBefore(pkg [sha256.Size]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := s.told[pkg]
	if s.told == nil {
		s.told = map[[sha256.Size]byte]bool{}
	}
	if len(s.told) < mostTold {
		s.told[pkg] = true
	}
	return said
}

// maxSchemas bounds the schemas that are kept, with what they are of, in bytes.
const maxSchemas = 256 << 20

// schemaCache keeps the answers of GetSchema: schemas are large and constant, and requested once per resource type.
type schemaCache struct {
	intake *intake.Intake // of which they take room, too

	mu     sync.Mutex
	known  map[string][]byte
	bytes  int
	forget []func()
}

// add keeps a schema, if there is room.
func (c *schemaCache) add(key string, schema []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(key) + len(schema)
	if _, ok := c.known[key]; ok || c.bytes+n > maxSchemas {
		return
	}
	forget, ok := c.intake.Keep(n)
	if !ok {
		return
	}
	c.known[key], c.forget = schema, append(c.forget, forget)
	c.bytes += n
}

// drop forgets all schemas.
func (c *schemaCache) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, forget := range c.forget {
		forget()
	}
	c.known, c.forget, c.bytes = map[string][]byte{}, nil, maxSchemas // and keeps no further ones
}

// schema returns the schema of a package from any of its providers. If there is none, it starts one, which the first
// instance of the package takes over.
func (h *Host) schema(ctx context.Context, pkg Package) ([]byte, error) {
	key := pkg.key()
	h.schemas.mu.Lock()
	schema, ok := h.schemas.known[key]
	h.schemas.mu.Unlock()
	if ok {
		return schema, nil
	}
	provider, err := h.anyProvider(ctx, pkg)
	if err != nil {
		return nil, err
	}
	req, err := schemaRequest(pkg)
	if err != nil {
		return nil, err
	}
	resp, err := provider.GetSchema(ctx, req)
	if err != nil {
		return nil, err
	}
	h.schemas.add(key, resp.Schema)
	return resp.Schema, nil
}

func schemaRequest(pkg Package) (req plugin.GetSchemaRequest, err error) {
	if pkg.Parameter != nil {
		version, err := semver.ParseTolerant(pkg.Parameter.Version)
		if err != nil {
			return req, err
		}
		req.SubpackageName, req.SubpackageVersion = pkg.Parameter.Name, &version
	}
	return req, nil
}

// key returns a string that identifies a package: its name, version, parameter and the names in Env.
func (p Package) key() string {
	parts := []string{p.Name, strings.TrimPrefix(p.Version, "v")}
	if p.Parameter != nil {
		parts = append(parts, p.Parameter.Name, p.Parameter.Version, string(p.Parameter.Value))
	}
	for _, from := range slices.Sorted(maps.Keys(p.Env)) {
		parts = append(parts, from, p.Env[from])
	}
	return strings.Join(parts, "\x00")
}
