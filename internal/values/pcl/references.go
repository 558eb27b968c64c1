package pcl

import "slices"

// minID is the length below which an id is not looked for in the properties of other resources: short texts are equal
// by chance.
const minID = 4

// references finds which values of properties are the ids of other resources.
type references struct {
	owners map[string]int // by id: the resource, or ambiguous
	needs  [][]int        // by resource: those that it refers to
	all    []Resource
}

const ambiguous = -1

func newReferences(all []Resource) *references {
	refs := &references{owners: map[string]int{}, needs: make([][]int, len(all)), all: all}
	variables := map[string]int{}
	for n, r := range all {
		variables[r.Variable] = n
		if len(r.ID) < minID {
			continue
		}
		if _, taken := refs.owners[r.ID]; taken {
			refs.owners[r.ID] = ambiguous
		} else {
			refs.owners[r.ID] = n
		}
	}
	for n, r := range all {
		for _, name := range []string{r.Parent, r.Provider} {
			if needed, listed := variables[name]; listed && name != "" {
				refs.needs[n] = append(refs.needs[n], needed)
			}
		}
	}
	return refs
}

// to returns the variable of the resource whose id a text in resource n is; "" if there is none, or if n could not
// refer to it because it refers to n.
func (refs *references) to(n int, text string) string {
	owner, known := refs.owners[text]
	if !known || owner == ambiguous || owner == n || refs.reaches(owner, n, map[int]bool{}) {
		return ""
	}
	if !slices.Contains(refs.needs[n], owner) {
		refs.needs[n] = append(refs.needs[n], owner)
	}
	return refs.all[owner].Variable
}

// reaches reports whether a resource refers to another, over any number of others.
func (refs *references) reaches(from, to int, seen map[int]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(refs.needs[from], func(next int) bool { return next == to || refs.reaches(next, to, seen) })
}
