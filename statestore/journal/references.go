package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// references are the fields of a resource that name resources. Rest holds all its fields.
type references struct {
	URN                  urn.URN              `json:"urn"`
	Type                 tokens.Type          `json:"type"`
	Parent               urn.URN              `json:"parent"`
	Provider             string               `json:"provider"`
	Dependencies         []urn.URN            `json:"dependencies"`
	PropertyDependencies map[string][]urn.URN `json:"propertyDependencies"`
	DeletedWith          urn.URN              `json:"deletedWith"`
	ReplaceWith          []urn.URN            `json:"replaceWith"`
	ViewOf               urn.URN              `json:"viewOf"`
	Aliases              []urn.URN            `json:"aliases"`
}

// tidy leads references to resources that were renamed to their new names, and, after a refresh, drops those to
// resources that are gone.
func tidy(s State, refreshed bool) (State, error) {
	renames := slices.ContainsFunc(s.Resources, func(raw json.RawMessage) bool {
		return bytes.Contains(raw, []byte(`"aliases"`))
	})
	if !renames && !refreshed {
		return s, nil
	}
	list := make([]references, len(s.Resources))
	for i, raw := range s.Resources {
		if err := rawjson.Unmarshal(raw, &list[i]); err != nil {
			return s, fmt.Errorf("resource %d: %w", i, err)
		}
	}
	before := make([]string, len(list))
	for i := range list {
		before[i] = fmt.Sprint(list[i])
	}
	if refreshed {
		dropMissing(list)
	}
	rename(list)
	s.Resources = slices.Clone(s.Resources)
	for i := range list {
		if fmt.Sprint(list[i]) == before[i] {
			continue
		}
		raw, err := list[i].into(s.Resources[i])
		if err != nil {
			return s, err
		}
		s.Resources[i] = raw
	}
	return s, nil
}

// dropMissing drops references to resources that do not come before: a refresh may have dropped those.
func dropMissing(list []references) {
	known := map[urn.URN]bool{}
	missing := func(u urn.URN) bool { return !known[u] }
	for i := range list {
		r := &list[i]
		r.Dependencies = slices.DeleteFunc(r.Dependencies, missing)
		for property, urns := range r.PropertyDependencies {
			if r.PropertyDependencies[property] = slices.DeleteFunc(urns, missing); len(urns) > 0 &&
				len(r.PropertyDependencies[property]) == 0 {
				delete(r.PropertyDependencies, property)
			}
		}
		r.ReplaceWith = slices.DeleteFunc(r.ReplaceWith, missing)
		if missing(r.DeletedWith) {
			r.DeletedWith = ""
		}
		known[r.URN] = true
	}
	for i := range list {
		if missing(list[i].Parent) {
			list[i].Parent = ""
		}
	}
}

// rename replaces former names, which are aliases of resources, by the new ones. A resource whose parent was renamed
// has another name, too, unless that is the stack.
func rename(list []references) {
	names := map[urn.URN]urn.URN{}
	for _, r := range list {
		for _, alias := range r.Aliases {
			names[alias] = r.URN
		}
		if parent := names[r.Parent]; token.ValidURN(parent) && token.ValidURN(r.URN) &&
			parent.QualifiedType() != resource.RootStackType {
			names[r.URN] = urn.New(r.URN.Stack(), r.URN.Project(), parent.QualifiedType(), r.URN.Type(), r.URN.Name())
		}
	}
	now := func(u urn.URN) urn.URN {
		if to, ok := names[u]; ok {
			return to
		}
		return u
	}
	for i := range list {
		r := &list[i]
		r.URN, r.Parent, r.DeletedWith, r.ViewOf = now(r.URN), now(r.Parent), now(r.DeletedWith), now(r.ViewOf)
		if ref, err := token.ParseReference(r.Provider); r.Provider != "" && err == nil {
			r.Provider = string(now(ref.URN())) + urn.NameDelimiter + string(ref.ID())
		}
		for j := range r.Dependencies {
			r.Dependencies[j] = now(r.Dependencies[j])
		}
		for _, urns := range r.PropertyDependencies {
			for j := range urns {
				urns[j] = now(urns[j])
			}
		}
		r.Aliases = nil
	}
}

// into returns the JSON of a resource with these references.
func (r references) into(raw json.RawMessage) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	own, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var changed map[string]json.RawMessage
	if err := json.Unmarshal(own, &changed); err != nil {
		return nil, err
	}
	for name, value := range changed {
		switch string(value) {
		case `""`, "null", "[]", "{}":
			delete(fields, name)
		default:
			fields[name] = value
		}
	}
	return json.Marshal(fields)
}
