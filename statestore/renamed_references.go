package statestore

import (
	"bytes"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// renames returns the new URNs of the states of a base that have another one now.
func renames(base, now []engine.State) map[urn.URN]urn.URN {
	names := map[urn.URN]urn.URN{}
	for _, s := range now {
		if j, ok := s.Key.Base(); ok && j < len(base) && base[j].URN != s.URN {
			names[base[j].URN] = s.URN
		}
	}
	return names
}

// renamed returns the new URN of a resource, or the one that it has.
func renamed(u urn.URN, names map[urn.URN]urn.URN) urn.URN {
	if to, ok := names[u]; ok {
		return to
	}
	return u
}

// mayName reports that JSON of the base may refer to a resource that was renamed: openly, or in a secret.
func (d *draft) mayName(raw []byte) bool {
	if len(d.names) > 0 && bytes.Contains(raw, []byte(sig.Secret)) {
		return true
	}
	for from := range d.names {
		if bytes.Contains(raw, []byte(from)) {
			return true
		}
	}
	return false
}

// withNames returns values whose references to resources have the new URNs. What it is given is not changed.
func (d *draft) withNames(values resource.PropertyMap) resource.PropertyMap {
	if len(d.names) == 0 {
		return values
	}
	return d.named(resource.NewProperty(values)).ObjectValue()
}

// named is withNames of one value.
func (d *draft) named(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsResourceReference():
		ref := v.ResourceReferenceValue()
		ref.URN = renamed(ref.URN, d.names)
		return resource.NewProperty(ref)
	case v.IsSecret():
		return resource.MakeSecret(d.named(v.SecretValue().Element))
	case v.IsArray():
		all := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, e := range v.ArrayValue() {
			all[i] = d.named(e)
		}
		return resource.NewProperty(all)
	case v.IsObject():
		all := resource.PropertyMap{}
		for key, e := range v.ObjectValue() {
			all[key] = d.named(e)
		}
		return resource.NewProperty(all)
	}
	return v
}
