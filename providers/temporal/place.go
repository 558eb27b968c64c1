package temporal

import (
	"errors"
	"strings"
)

// place is where a thing of a namespace is. Its text is the thing's ID.
type place struct{ namespace, name string }

func (p place) id() string { return p.namespace + "/" + p.name }

// place is the one that an ID names, or, without an ID, inputs.
func (o *opened) place(id, namespace, name string) (place, error) {
	if id != "" {
		namespace, name, ok := strings.Cut(id, "/")
		if !ok {
			return place{}, errors.New("the ID " + id + " is not NAMESPACE/NAME")
		}
		return place{namespace, name}, nil
	}
	if namespace == "" {
		namespace = o.namespace
	}
	if namespace == "" {
		return place{}, errors.New("namespace must be given, here or as deployctl:temporalNamespace in the configuration")
	}
	return place{namespace, name}, nil
}

// declared is the namespace as inputs give it: none for the one that is configured, unless it was named.
func (o *opened) declared(p place, was string) string {
	if p.namespace == o.namespace && was == "" {
		return ""
	}
	return p.namespace
}
