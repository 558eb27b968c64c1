// Package stamp marks what providers make: a stamp says which resource of which stack a physical thing is. Where it is
// kept, in tags, metadata or a comment, is each provider's.
package stamp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/deployctl/deployctl/provider"
)

// Stamp says which resource of which stack a physical thing is.
type Stamp struct {
	Owner string // Identity.Owner
	Stack string // PROJECT/STACK, and where the stack has an id "@" and a digest of that
}

// For is the stamp of a resource.
func For(who provider.Identity) Stamp {
	stack := who.Stack()
	if who.StackID != "" {
		sum := sha256.Sum256([]byte(who.StackID))
		stack += "@" + hex.EncodeToString(sum[:8])
	}
	return Stamp{who.Owner(), stack}
}

// sameStack goes by the ids, since names may be those of other stacks and change; by the names only where neither has
// one.
func (s Stamp) sameStack(other Stamp) bool {
	name, id, _ := strings.Cut(s.Stack, "@")
	otherName, otherID, _ := strings.Cut(other.Stack, "@")
	return id == otherID && (id != "" || name == otherName)
}

// Admits says whether a create of that identity may go on with the thing that carries the stamp: its own, or one of
// another resource of the same stack, which it takes over.
func (s Stamp) Admits(who provider.Identity) bool {
	want := For(who)
	return s.Owner != "" && (s.Owner == want.Owner || s.sameStack(want))
}

// Of says whether the thing is one of the stack of that identity, whose resource is not known.
func (s Stamp) Of(stack provider.Identity) bool {
	return s.Owner != "" && stack.StackID != "" && s.sameStack(For(stack))
}

// Ownership is the answer to a Read; remembered is the owner in the state, which an alias may have moved to another
// URN.
func (s Stamp) Ownership(who provider.Identity, remembered string) provider.Ownership {
	if s.Owner != "" && (s.Owner == who.Owner() || s.Owner == remembered) {
		return provider.Owned
	}
	return provider.Unowned
}

// LookedUp is the answer to a Read without an id. What another resource of the same stack has is left to the create,
// which takes it over.
func (s Stamp) LookedUp(who provider.Identity) provider.Ownership {
	if of := s.Ownership(who, ""); of == provider.Owned || !s.Admits(who) {
		return of
	}
	return provider.Undecidable
}

// People says for people whose the thing is.
func (s Stamp) People() string {
	owner, _, _ := strings.Cut(s.Stack, "@")
	if owner != "" {
		owner = "stack " + owner
	}
	return owner
}

// Lost says whether the thing has been taken over by another resource since it was remembered.
func (s Stamp) Lost(who provider.Identity, remembered string) bool {
	return s.Owner != "" && remembered != "" && s.Ownership(who, remembered) == provider.Unowned
}

// Refuses says whether a create or an update may not go on with the thing. One that is known by its id may carry no
// mark, or the one that is remembered, but not that of another stack which took it over since.
func (s Stamp) Refuses(who provider.Identity, known bool, remembered string) bool {
	return !s.Admits(who) && (!known || s.Lost(who, remembered))
}

// Kept is the owner that a Read leaves in the state: one that was remembered stays while the thing is another's, or a
// later Delete would not know that it is lost.
func (s Stamp) Kept(who provider.Identity, remembered string) string {
	if remembered != "" && s.Ownership(who, remembered) == provider.Unowned {
		return remembered
	}
	return s.Owner
}

// Foreign is the error about a thing that carries the stamp of another owner.
func (s Stamp) Foreign(thing, id string) error {
	return &provider.Foreign{Thing: thing, Owner: s.People(), ID: id}
}
