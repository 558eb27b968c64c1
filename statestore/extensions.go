package statestore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// A deployment holds the extensions of its providers' packages once, by a digest of their content, and each resource
// names its own. In a header the extension is a bag, whose digest is that name.

// extension returns the values of a resource's extension.
func (c *Checkpoint) extension(r *storedResource) (resource.PropertyMap, error) {
	raw, ok := c.file.Deployment.Extensions[r.ExtensionRef]
	if !ok {
		return nil, deployments.Errorf(deployments.CodeFormat, "%s has no extension %q, which %s needs: run the program "+
			"that declares the resource, or repair the state with `deployctl state edit`", c.name, r.ExtensionRef, r.URN)
	}
	var e apitype.Extension
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, c.invalid(fmt.Errorf("extension %s: %w", r.ExtensionRef, err))
	}
	return bags.ExtensionValues(e), nil
}

// take adds an extension of another deployment, if that has it and this one does not.
func (d *deployment) take(ref string, of *deployment) {
	raw, ok := of.Extensions[ref]
	if _, has := d.Extensions[ref]; !ok || has {
		return
	}
	if d.Extensions == nil {
		d.Extensions = map[string]json.RawMessage{}
	}
	d.Extensions[ref] = raw
}

// extensions returns the extensions that the resources and the pending operations of a draft name. One that the base
// has lost is missing here, too.
func (d *draft) extensions(ctx context.Context) (map[string]json.RawMessage, error) {
	var out deployment
	add := func(s engine.State) error {
		ref := s.Extension.Digest
		if _, done := out.Extensions[ref]; done || ref == "" {
			return nil
		}
		if stored, _ := d.base.find(s.Extension.Ref); stored != nil || d.base.file.Deployment.Extensions[ref] != nil {
			out.take(ref, &d.base.file.Deployment)
			return nil
		}
		e, err := d.codec.DecodeExtension(ctx, s.Extension)
		if err != nil {
			return fmt.Errorf("the extension of %s: %w", s.URN, err)
		}
		raw, err := json.Marshal(e)
		out.take(ref, &deployment{Extensions: map[string]json.RawMessage{ref: raw}})
		return err
	}
	for _, s := range d.states {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	for _, op := range d.pending {
		if err := add(op.State); err != nil {
			return nil, err
		}
	}
	return out.Extensions, nil
}
