package statestore

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/deployctl/deployctl/statestore/journal"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A deployment is rejected, on import and on load, if an update could not handle its content: such an update would stop
// half-way. An imported one must also be well-formed. That is not required of a checkpoint that this service wrote,
// because no update can repair a state that cannot be loaded. snapshot.Verify checks headers and their order.

// longestTimeout limits custom timeouts, in seconds: a hundred years.
const longestTimeout = 100 * 365 * 24 * 3600

// checkLoadable reports the first resource or operation of a deployment that no update could handle.
func checkLoadable(f deploymentFile, resources []storedResource) error {
	return eachStored(f, resources, (*storedResource).checkLoadable)
}

// wellFormed reports the first resource or operation of a deployment with an impossible value.
func wellFormed(f deploymentFile, resources []storedResource) error {
	return eachStored(f, resources, (*storedResource).wellFormed)
}

// eachStored checks the resources and the pending operations of a deployment, and names the first one that fails.
func eachStored(f deploymentFile, resources []storedResource, check func(*storedResource) error) error {
	for i := range resources {
		if err := check(&resources[i]); err != nil {
			return fmt.Errorf("%s: %w", resources[i].describe("resource", i), err)
		}
	}
	for i := range f.Deployment.PendingOperations {
		op := &f.Deployment.PendingOperations[i]
		if !slices.Contains(journal.Operations, op.Type) {
			return fmt.Errorf("%s: %q is no kind of operation", op.Resource.describe("pending operation on resource", i),
				op.Type)
		}
		if err := check(&op.Resource); err != nil {
			return fmt.Errorf("%s: %w", op.Resource.describe("pending operation on resource", i), err)
		}
	}
	return nil
}

// describe names a resource: by its URN, or, if it has none, by its index.
func (r *storedResource) describe(what string, i int) string {
	if r.URN == "" {
		return fmt.Sprintf("%s number %d (of type %q, id %q)", what, i+1, r.Type, r.ID)
	}
	return what + " " + printable(string(r.URN))
}

func (r *storedResource) checkLoadable() error {
	return token.CheckResource(r.URN, r.Type, r.Custom, r.Provider)
}

func (r *storedResource) wellFormed() error {
	control := func(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }
	if control(string(r.URN)) || control(string(r.Type)) || control(r.ID) {
		return errors.New("its URN, type or id has control characters")
	}
	if sig.IsUnknown(r.ID) {
		return errors.New("its id is the placeholder of an id that is not known yet")
	}
	named := slices.Concat(r.Dependencies, r.Aliases, r.ReplaceWith)
	for _, urns := range r.PropertyDependencies {
		named = append(named, urns...)
	}
	for _, u := range []urn.URN{r.Parent, r.DeletedWith, r.ViewOf} {
		if u != "" {
			named = append(named, u)
		}
	}
	for _, u := range named {
		if !token.ValidURN(u) {
			return fmt.Errorf("it names a resource %q, which is not a valid URN", printable(string(u)))
		}
	}
	return possibleTimeouts(r.CustomTimeouts)
}

func possibleTimeouts(t *engine.Timeouts) error {
	if t == nil {
		return nil
	}
	for _, seconds := range []float64{t.Create, t.Update, t.Delete, t.Read} {
		if math.IsNaN(seconds) || seconds < 0 || seconds > longestTimeout {
			return fmt.Errorf("a custom timeout of %v seconds is not possible", seconds)
		}
	}
	return nil
}

// printable returns a name for a message, without control characters and shortened.
func printable(text string) string {
	const shown = 300
	if len(text) > shown {
		text = text[:shown] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
