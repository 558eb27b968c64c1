package deployments

import (
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/values/glob"
)

// allowance is what the grants of one list allow of a role, prepared for many stacks.
type allowance struct {
	whole map[string]bool        // organizations, or AnyOrganization, of which every stack is allowed
	some  map[string][]stackGlob // by organization or AnyOrganization, each glob once
}

// stackGlob is a glob of PROJECT/STACK.
type stackGlob struct{ project, stack glob.Compiled }

// Stacks returns May for a role and many stacks: the globs of all grants are prepared once, each of them once, however
// many teams have it.
func (a Authority) Stacks(role Role) func(StackName) bool {
	lists := make([]allowance, len(a.Grants))
	for i, list := range a.Grants {
		lists[i] = allowanceOf(list, role)
	}
	return func(s StackName) bool {
		return len(lists) > 0 && !slices.ContainsFunc(lists, func(l allowance) bool { return !l.allows(s) })
	}
}

func allowanceOf(list []Grant, role Role) allowance {
	l := allowance{whole: map[string]bool{}, some: map[string][]stackGlob{}}
	known := map[string]bool{}
	for _, g := range list {
		switch {
		case !g.Role.Includes(role):
			continue
		case len(g.Stacks) == 0:
			l.whole[g.Organization] = true
		}
		for _, text := range g.Stacks {
			project, stack, ok := strings.Cut(text, "/")
			if known[g.Organization+"/"+text] || !ok {
				continue
			}
			known[g.Organization+"/"+text] = true
			l.some[g.Organization] = append(l.some[g.Organization], stackGlob{glob.Compile(project), glob.Compile(stack)})
		}
	}
	return l
}

func (l allowance) allows(s StackName) bool {
	matches := func(g stackGlob) bool { return g.project.Match(s.Project) && g.stack.Match(s.Stack) }
	for _, organization := range []string{s.Organization, AnyOrganization} {
		if l.whole[organization] || slices.ContainsFunc(l.some[organization], matches) {
			return true
		}
	}
	return false
}
