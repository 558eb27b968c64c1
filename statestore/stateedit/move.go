package stateedit

import (
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Movement is what a move makes of two states.
type Movement struct {
	// Left are the states that stay, without references to those that go.
	Left []engine.State
	// Added are the states to be appended to the other stack's, with the names of that stack. Their keys and values are
	// those of the first stack.
	Added []engine.State
	// Names are the new URNs of what moves.
	Names map[urn.URN]urn.URN
	// Changes has a line for each change.
	Changes []string
}

// Stacks are the states of the two stacks of a move.
type Stacks struct {
	From, To []engine.State
	// Same reports whether a provider of From is configured as one of To.
	Same func(from, to engine.State) (bool, error)
}

// Move plans to move resources with all that is below them. Their providers are copied, unless the other stack has the
// same. References between what moves and what stays are removed. What the other stack has already, with the same id,
// is only removed from the first one, so an interrupted move can be repeated.
func Move(s Stacks, r deployments.MoveRequest) (Movement, error) {
	m := mover{Stacks: s, request: r, moving: map[urn.URN]bool{}, kept: map[string]string{}}
	m.Names = map[urn.URN]urn.URN{}
	if err := m.choose(); err != nil {
		return Movement{}, err
	}
	for i := range s.From {
		if err := m.place(s.From[i]); err != nil {
			return Movement{}, err
		}
	}
	return m.Movement, nil
}

// mover is a Move at work.
type mover struct {
	Stacks
	Movement
	request   deployments.MoveRequest
	moving    map[urn.URN]bool
	providers map[string]bool   // the provider references of what moves
	kept      map[string]string // provider references that become others of the other stack
}

// choose finds what moves: the named resources, what is below them, and with Parents what is above them.
func (m *mover) choose() error {
	at := make(map[urn.URN]int, len(m.From))
	for i, s := range m.From {
		at[s.URN] = i
	}
	for _, name := range m.request.Resources {
		i, ok := at[urn.URN(name)]
		if !ok {
			return deployments.Errorf(deployments.CodeNotFound, "the state has no resource %s", name)
		}
		switch s := m.From[i]; {
		case s.Type == rootType:
			return deployments.Errorf(deployments.CodeInvalid, "%s is the stack itself, which cannot be moved: "+
				"`deployctl stack rename` renames it", name)
		case snapshot.IsProvider(s.Type):
			return deployments.Errorf(deployments.CodeInvalid, "%s is a provider: move the resources that use it, "+
				"and it is copied", name)
		}
		m.moving[urn.URN(name)] = true
		for u := m.From[i].Parent; m.request.Parents && token.ValidURN(u) && u.Type() != rootType &&
			!m.moving[u]; u = m.From[at[u]].Parent {
			m.moving[u] = true
		}
	}
	m.providers = map[string]bool{}
	for _, s := range m.From { // parents stand first
		if m.moving[s.Parent] && s.Parent != "" {
			m.moving[s.URN] = true
		}
		if m.moving[s.URN] && s.Provider != "" {
			m.providers[s.Provider] = true
		}
	}
	return nil
}

// place decides about one state, after all that it refers to.
func (m *mover) place(s engine.State) error {
	copied := snapshot.IsProvider(s.Type) && m.providers[snapshot.JoinReference(s.URN, s.ID)]
	if !m.moving[s.URN] {
		m.stay(s)
		if !copied {
			return nil
		}
	}
	moved := m.moved(s)
	there := m.find(moved)
	switch {
	case there == nil:
		m.add(s, moved)
	case snapshot.IsProvider(s.Type):
		same, err := m.Same(s, *there)
		if err != nil {
			return err
		}
		if !same {
			return deployments.Errorf(deployments.CodeInvalid, "%s has a provider %s with another configuration: "+
				"rename one of the two, or make them equal, first", m.request.To, there.URN)
		}
		m.kept[snapshot.JoinReference(s.URN, s.ID)] = snapshot.JoinReference(there.URN, there.ID)
	case there.ID != s.ID:
		return deployments.Errorf(deployments.CodeExists, "%s has a resource %s already: rename one of the two first",
			m.request.To, there.URN)
	default:
		m.Changes = append(m.Changes, fmt.Sprintf("remove %s, which %s has already", s.URN, m.request.To))
	}
	return nil
}

// stay keeps a state, without its references to what moves.
func (m *mover) stay(s engine.State) {
	gone := func(u urn.URN) bool { return m.moving[u] }
	if cut := withoutReferences(s, gone); len(cut.References()) != len(s.References()) {
		m.Changes = append(m.Changes, fmt.Sprintf("%s no longer depends on what moves", s.URN))
		s = cut
	}
	m.Left = append(m.Left, s)
}

// moved returns a state as it is in the other stack.
func (m *mover) moved(s engine.State) engine.State {
	parent := tokens.Type("")
	if up, ok := m.Names[s.Parent]; ok && s.Parent != "" {
		parent = up.QualifiedType()
	}
	to := urn.New(tokens.QName(m.request.To.Stack), tokens.PackageName(m.request.To.Project), parent, s.Type,
		s.URN.Name())
	m.Names[s.URN] = to
	stays := func(u urn.URN) bool { _, ok := m.Names[u]; return u != "" && !ok }
	cut := withoutReferences(s, stays)
	root := s.Parent != "" && cut.Parent == ""
	if cut.Parent = s.Parent; len(cut.References()) != len(s.References()) {
		m.Changes = append(m.Changes, fmt.Sprintf("%s no longer depends on what stays", to))
	}
	if ref, ok := m.kept[cut.Provider]; ok {
		cut.Provider = ref
	}
	cut = withNames(cut, m.Names)
	if root {
		cut.Parent = m.root()
	}
	return cut
}

// add appends a state to those of the other stack.
func (m *mover) add(s, moved engine.State) {
	verb := "move"
	if !m.moving[s.URN] {
		verb = "copy"
	}
	m.Added = append(m.Added, moved)
	m.Changes = append(m.Changes, fmt.Sprintf("%s %s to %s", verb, s.URN, moved.URN))
}

// root returns the root of the other stack, which is added if that has none.
func (m *mover) root() urn.URN {
	to := m.request.To
	u := urn.New(tokens.QName(to.Stack), tokens.PackageName(to.Project), "", rootType, to.Project+"-"+to.Stack)
	if root := (engine.State{URN: u, Type: rootType}); m.find(root) == nil {
		m.Added = append(m.Added, root)
	}
	return u
}

// find returns the state that the other stack has, or is about to have, in the place of a moved one; nil if there is
// none. Of copies that wait for their deletion there may be several, with different ids.
func (m *mover) find(moved engine.State) *engine.State {
	equal := func(s engine.State) bool {
		return s.URN == moved.URN && s.Delete == moved.Delete && (!s.Delete || s.ID == moved.ID)
	}
	for _, list := range [][]engine.State{m.To, m.Added} {
		if i := slices.IndexFunc(list, equal); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// withoutReferences returns a state without its references to some URNs, except its provider. The receiver's slices are
// not changed.
func withoutReferences(s engine.State, gone func(urn.URN) bool) engine.State {
	if s.Parent != "" && gone(s.Parent) {
		s.Parent = ""
	}
	if s.DeletedWith != "" && gone(s.DeletedWith) {
		s.DeletedWith = ""
	}
	if s.ViewOf != "" && gone(s.ViewOf) {
		s.ViewOf = ""
	}
	s.Dependencies = slices.DeleteFunc(slices.Clone(s.Dependencies), gone)
	s.ReplaceWith = slices.DeleteFunc(slices.Clone(s.ReplaceWith), gone)
	s.PropertyDependencies = slices.Clone(s.PropertyDependencies)
	for i, p := range s.PropertyDependencies {
		s.PropertyDependencies[i].URNs = slices.DeleteFunc(slices.Clone(p.URNs), gone)
	}
	return s
}
