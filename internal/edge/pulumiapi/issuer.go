package pulumiapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/workload"
)

// Issuer is what the edge needs of the service as an OpenID Connect issuer.
type Issuer interface {
	// Address returns its address; empty: it is none.
	Address() string
	// Keys returns the keys that are published.
	Keys(ctx context.Context) (workload.Keys, error)
}

// issuerCache is how long clouds and proxies may keep what the issuer says of itself: far shorter than a key is
// published before it signs.
const issuerCache = "public, max-age=300"

// issuerRoutes are what clouds read to check a workload token: anybody may, and nothing of it is secret.
func issuerRoutes() []route {
	get := func(path string, document func(*call) (any, error)) route {
		return route{method: http.MethodGet, path: path, by: byAnyone, handle: func(c *call) (any, error) {
			return c.document(document)
		}}
	}
	return []route{
		get(workload.DiscoveryPath, func(c *call) (any, error) { return workload.Discovery(c.edge.Issuer.Address()), nil }),
		get(workload.KeysPath, func(c *call) (any, error) {
			keys, err := c.edge.Issuer.Keys(c.Context())
			return workload.Published(keys), err
		}),
	}
}

// document answers with a document of the issuer, which may be kept for a while.
func (c *call) document(document func(*call) (any, error)) (any, error) {
	if i := c.edge.Issuer; i == nil || i.Address() == "" {
		return nil, deployments.Errorf(deployments.CodeNotFound, "this service is no OpenID Connect issuer: the setting "+
			"issuer is not set")
	}
	answer, err := document(c)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	c.answer.Header().Set("Cache-Control", issuerCache)
	return content{"application/json", text}, nil
}
