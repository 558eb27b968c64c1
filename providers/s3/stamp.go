package s3

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/deployctl/deployctl/provider"
)

// stamp says which resource of which stack a physical thing is.
type stamp struct {
	owner string // Identity.Owner
	stack string // PROJECT/STACK, and where the stack has an id "@" and a digest of that
}

func stampOf(who provider.Identity) stamp {
	stack := who.Stack()
	if who.StackID != "" {
		sum := sha256.Sum256([]byte(who.StackID))
		stack += "@" + hex.EncodeToString(sum[:8])
	}
	return stamp{who.Owner(), stack}
}

// sameStack goes by the ids, since names may be those of other stacks and change; by the names only where neither has
// one.
func (s stamp) sameStack(other stamp) bool {
	name, id, _ := strings.Cut(s.stack, "@")
	otherName, otherID, _ := strings.Cut(other.stack, "@")
	return id == otherID && (id != "" || name == otherName)
}

// admits says whether a create of that identity may go on with the thing that carries the stamp: its own, or one of
// another resource of the same stack, which it takes over.
func (s stamp) admits(who provider.Identity) bool {
	want := stampOf(who)
	return s.owner != "" && (s.owner == want.owner || s.sameStack(want))
}

// of says whether the thing is one of the stack of that identity, whose resource is not known.
func (s stamp) of(stack provider.Identity) bool {
	return s.owner != "" && stack.StackID != "" && s.sameStack(stampOf(stack))
}

// ownership is the answer to a Read; remembered is the owner in the state, which an alias may have moved to another
// URN.
func (s stamp) ownership(who provider.Identity, remembered string) provider.Ownership {
	if s.owner != "" && (s.owner == who.Owner() || s.owner == remembered) {
		return provider.Owned
	}
	return provider.Unowned
}

// lookedUp is the answer to a Read without an id. What another resource of the same stack has is left to the create,
// which takes it over.
func (s stamp) lookedUp(who provider.Identity) provider.Ownership {
	if of := s.ownership(who, ""); of == provider.Owned || !s.admits(who) {
		return of
	}
	return provider.Undecidable
}

// people says for people whose the thing is.
func (s stamp) people() string {
	owner, _, _ := strings.Cut(s.stack, "@")
	if owner != "" {
		owner = "stack " + owner
	}
	return owner
}

// lost says whether the thing has been taken over by another resource since it was remembered.
func (s stamp) lost(who provider.Identity, remembered string) bool {
	return s.owner != "" && remembered != "" && s.ownership(who, remembered) == provider.Unowned
}

// refuses says whether a create or an update may not go on with the thing. One that is known by its id may carry no
// mark, or the one that is remembered, but not that of another stack which took it over since.
func (s stamp) refuses(who provider.Identity, known bool, remembered string) bool {
	return !s.admits(who) && (!known || s.lost(who, remembered))
}

// kept is the owner that a Read leaves in the state: one that was remembered stays while the thing is another's, or a
// later Delete would not know that it is lost.
func (s stamp) kept(who provider.Identity, remembered string) string {
	if remembered != "" && s.ownership(who, remembered) == provider.Unowned {
		return remembered
	}
	return s.owner
}

func (s stamp) foreign(thing, id string) error {
	return &provider.Foreign{Thing: thing, Owner: s.people(), ID: id}
}
