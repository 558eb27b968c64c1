package console

import (
	"encoding/json"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// stored is a resource of a stack without its values, which may be large.
type stored struct {
	URN                  urn.URN                            `json:"urn"`
	Type                 string                             `json:"type"`
	ID                   string                             `json:"id"`
	Custom               bool                               `json:"custom"`
	Parent               urn.URN                            `json:"parent"`
	Dependencies         []urn.URN                          `json:"dependencies"`
	PropertyDependencies map[resource.PropertyKey][]urn.URN `json:"propertyDependencies"`
	Provider             string                             `json:"provider"`
	Protect              bool                               `json:"protect"`
	External             bool                               `json:"external"`
	Delete               bool                               `json:"delete"`
	Taint                bool                               `json:"taint"`
	InitErrors           []string                           `json:"initErrors"`
}

// Name is the resource's name.
func (s stored) Name() string { return s.URN.Name() }

// values are the values of one resource. Secrets are ciphertexts.
type values struct {
	Inputs  map[string]any `json:"inputs"`
	Outputs map[string]any `json:"outputs"`
}

// state is what a stack has, at its version. Nothing large is a copy.
type state struct {
	Version   int
	resources []stored
	raw       [][]byte // of each
}

// readState reads the state of the stack. Who reads a whole deployment has one of the places for that until the call
// ends.
func (c *call) readState() (s state, err error) {
	release, err := c.console.gate.HoldExport(c.Context(), c.party())
	c.release = append(c.release, release)
	if err != nil {
		return s, err
	}
	info, err := c.console.Service.Stack(c.Context(), c.stack)
	if err != nil || info.Version == 0 {
		return s, err
	}
	return c.readVersion(info.Version)
}

// readVersion reads the state at a version. The caller has one of the places for that.
func (c *call) readVersion(version int) (s state, err error) {
	s.Version = version
	untyped, err := c.console.Service.Export(c.Context(), c.stack, version, deployments.SecretsProvider{}, false)
	if err != nil {
		return s, err
	}
	size := 0
	for raw := range rawjson.Elements(rawjson.Member(untyped.Deployment, "resources")) {
		if size += headerCost; size >= mempool.Step {
			if err := mempool.Take(c.Context(), int64(size)); err != nil {
				return s, err
			}
			size = 0
		}
		var r stored
		if err := json.Unmarshal(raw, &r); err != nil {
			return s, deployments.Errorf(deployments.CodeFormat, "the stack's deployment cannot be read: %w", err)
		}
		s.resources, s.raw = append(s.resources, r), append(s.raw, raw)
	}
	return s, nil
}

// headerCost is about what a resource takes in memory without its values.
const headerCost = 2 << 10

// values returns the values of a resource by its index.
func (s state) values(c *call, i int) (v values, err error) {
	if err := mempool.Take(c.Context(), rawjson.Cost(s.raw[i])); err != nil {
		return v, err
	}
	err = json.Unmarshal(s.raw[i], &v)
	return v, err
}

// root returns the index of the resource that stands for the stack; -1: there is none.
func (s state) root() int {
	for i, r := range s.resources {
		if r.Type == string(resource.RootStackType) && r.Parent == "" {
			return i
		}
	}
	return -1
}

// byURN returns the indices of the resources by URN. Of several copies it is the last one, which references are about.
func (s state) byURN() map[urn.URN]int {
	known := make(map[urn.URN]int, len(s.resources))
	for i, r := range s.resources {
		known[r.URN] = i
	}
	return known
}
