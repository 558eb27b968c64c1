package engine

import (
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// An update of the kind import adopts resources that no program declares yet, as Pulumi's import does. The host
// registers each of them as a program would, with the id to import. The core treats them as an up does, except that:
//
//   - What is stored stays as it is stored, whether it is registered or not. Nothing is updated or deleted.
//   - A resource that is stored already under the id that is asked for is left alone; under another id it is an error.
//   - A registration may refer to what is stored. It names a stored provider by its URN alone.
//   - Nothing is compared with the resource that was read: its inputs are those that the provider has read.

// adopts reports whether the update is an import.
func (r *Run) adopts() bool { return r.goal.Kind == KindImport }

// decideAdoption decides an entry of an import about something that is stored. It reports whether it did: what is not
// stored is decided as in an up, once everything that it refers to stands before it.
func (r *Run) decideAdoption(e *entry, old *State) bool {
	switch {
	case !r.adopts():
		return false
	case old == nil:
		r.keepReferences(e.New)
		return false
	case e.Reg.ImportID != "" && old.AdoptedID() != e.Reg.ImportID:
		r.reject(e, "%s is in the stack already, with the id %s; import the other resource under another name", e.URN,
			old.ID)
	default:
		if e.Reg.ImportID != "" {
			r.diagnose("info", e.URN, "%s is in the stack already; it stays as it is", e.URN)
		}
		r.leaveAlone(e, old)
	}
	return true
}

// rootName returns the name of the stored root resource, which need not be called as programs call theirs; name if none
// is stored.
func (r *Run) rootName(name string) string {
	r.snap.All(func(s *State) {
		if s.Type == rootType && !s.Delete {
			name = s.URN.Name()
		}
	})
	return name
}

// adopted ends the entry of a resource that was imported: nothing follows from a goal that no program has declared. It
// holds for an entry of an earlier epoch, too, so that a later one repeats the answer.
func (r *Run) adopted(e *entry) { r.done(e, nil) }

// storedProvider completes a provider reference without an id, by which an import names a provider of the stack.
func (r *Run) storedProvider(ref string) string {
	u, id := snapshot.SplitReference(ref)
	if p := r.snap.Live(u); id == "" && p != nil {
		return snapshot.JoinReference(u, p.ID)
	}
	return ref
}

// mayName reports whether a registration may refer to a resource that is not registered: one that is stored, in an
// update of which the program need not register everything.
func (r *Run) mayName(u urn.URN) bool {
	return (r.restricted() || r.adopts()) && r.snap.Live(u) != nil
}
