package engine

import (
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// sweep deletes, ahead of a cascade, the copies from earlier updates that wait for their deletion and depend on what the
// cascade deletes: a provider may refuse to delete a resource while they are there, and the live members of the cascade
// would then be gone for nothing. It reports whether there are any; the entry goes on when they are gone.
func (r *Run) sweep(e *entry, members []Dependent, group []*deletion) bool {
	names := map[urn.URN]bool{r.current(r.snap.Get(e.Old).URN): true}
	for _, d := range group {
		names[r.current(d.URN)] = true
	}
	var copies []*deletion
	for _, k := range r.dependents(e.Old) {
		s := r.snap.Get(k)
		if !s.Delete || r.condemned[k] != nil || r.replacedNow(s.URN) {
			continue
		}
		if !slices.ContainsFunc(s.References(), func(u urn.URN) bool { return names[u] || names[r.current(u)] }) {
			continue
		}
		names[r.current(s.URN)] = true
		d := &deletion{Key: k, URN: s.URN, Kind: StepDeleteReplaced, For: e.URN}
		if s.External {
			d.Kind = StepDiscardReplaced
		}
		copies = append(copies, d)
	}
	if len(copies) == 0 {
		return false
	}
	if r.leavesMember(e, copies) {
		return true
	}
	e.Op, e.Members, r.sweeper = 0, members, e
	r.enter(e, stageSweeping)
	r.condemn(copies)
	return true
}

// replacedNow reports that what stands for a URN was made in this update: then its copies are needed until everything that
// depends on them has been registered.
func (r *Run) replacedNow(u urn.URN) bool {
	live := r.snap.Live(r.current(u))
	return live != nil && strings.HasPrefix(string(live.Key), "o")
}

// swept goes on with a cascade once the copies in its way are gone; it reports whether they are.
func (r *Run) swept(e *entry) bool {
	for _, d := range r.Deletions {
		if d.For == e.URN && r.condemned[d.Key] == d {
			return false
		}
	}
	r.clear(e, e.Members)
	return true
}
