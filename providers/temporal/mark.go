package temporal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/deployctl/deployctl/provider"
)

// The names under which a mark is kept.
const (
	ownerKey = "deployctl-owner"
	stackKey = "deployctl-stack"
)

// mark says which resource of which stack something is.
type mark struct {
	owner string // Identity.Owner
	stack string // PROJECT/STACK, and where the stack has an id "@" and a digest of that
}

func markOf(who provider.Identity) mark {
	stack := who.Stack()
	if who.StackID != "" {
		stack += "@" + digest(who.StackID)
	}
	return mark{who.Owner(), stack}
}

func digest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// pairs are the mark as it is kept.
func (m mark) pairs() map[string]string {
	return map[string]string{ownerKey: m.owner, stackKey: m.stack}
}

// people says for people whose it is.
func (m mark) people() string {
	name, _, _ := strings.Cut(m.stack, "@")
	if name == "" {
		return ""
	}
	return "stack " + name
}

// of says whether it is one of the stack of that identity.
func (m mark) of(stack provider.Identity) bool {
	_, id, _ := strings.Cut(m.stack, "@")
	return id != "" && stack.StackID != "" && id == digest(stack.StackID)
}

// ownership is the answer to a Read; remembered is the owner in the state, which an alias may have moved.
func (m mark) ownership(who provider.Identity, remembered string) provider.Ownership {
	if m.owner != "" && (m.owner == who.Owner() || m.owner == remembered) {
		return provider.Owned
	}
	return provider.Unowned
}

// lost says whether somebody else has taken over what is remembered.
func (m mark) lost(who provider.Identity, remembered string) bool {
	return m.owner != "" && remembered != "" && m.ownership(who, remembered) == provider.Unowned
}

// refuses is an error if a create, or an update of what is known by its ID, may not go on with what bears the mark.
func (m mark) refuses(who provider.Identity, thing, id string, known bool, remembered string) error {
	if known && !m.lost(who, remembered) || !known && m.ownership(who, "") == provider.Owned {
		return nil
	}
	return &provider.Foreign{Thing: thing, Owner: m.people(), ID: id}
}

// kept is the owner that a Read leaves in the state: while it is lost, the one that is remembered, or a later Delete
// would not know that it is.
func (m mark) kept(who provider.Identity, remembered string) string {
	if m.lost(who, remembered) {
		return remembered
	}
	return m.owner
}
