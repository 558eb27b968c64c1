package engine

import (
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
)

// compare starts the comparison of the entry's provider with the one that manages the old resource; it reports whether
// the answer is awaited. If it is not, e.Changed says whether the resource must be replaced.
//
// As in Pulumi, a resource may move to another provider, such as the default provider of a new plugin version, without
// being replaced, unless the DiffConfig of the new provider calls for a replacement. There is nothing to compare for a
// provider resource, for what was only read, and for what was just imported with the new provider.
//
// Each pair of references is compared once per update, for all resources that move from one to the other. The reference
// contains the provider's id, so a provider that was replaced makes another pair.
func (r *Run) compare(e *entry, old *State) bool {
	was, now := r.snap.Renamed(*old).Provider, e.New.Provider
	if was == now || snapshot.IsProvider(e.New.Type) || old.External || e.Imported {
		return false
	}
	// One of the two cannot be asked: the resource was or becomes one without a provider, or the old provider is gone.
	if was == "" || now == "" || r.snap.Provider(was) == nil {
		e.Changed = true
		return false
	}
	pair := was + " " + now
	if replace, known := r.Compared[pair]; known {
		e.Changed = replace
		return false
	}
	e.pair = pair
	r.become(e, stageComparing, 0)
	// Another entry has asked already; providerDiffed goes on with both.
	for _, op := range r.comparing {
		if r.Ops[op].Pair == pair {
			return true
		}
	}
	op := r.newQuery(&operation{URN: e.URN, Pair: pair, For: forCompare})
	r.comparing = append(r.comparing, op)
	r.ready.Start = append(r.ready.Start, Compare{Op: op, Old: *r.providerOf(was), New: *r.providerOf(now)})
	return true
}

// providerDiffed goes on with every entry that waited for this comparison; those that wait for another are left alone.
// An error is not remembered: the next epoch compares again.
func (r *Run) providerDiffed(ev ProviderDiffed) {
	op := r.takeQuery(ev.Op)
	if op == nil {
		return
	}
	r.comparing = slices.DeleteFunc(r.comparing, func(o int) bool { return o == ev.Op })
	if ev.Error == "" {
		r.Compared[op.Pair] = ev.Replace
	}
	for _, e := range r.Entries {
		if e.Stage != stageComparing || e.pair != op.Pair {
			continue
		}
		if ev.Error != "" {
			r.reject(e, "the provider of %s could not compare its configuration with the one before: %s", e.URN,
				ev.Error)
			continue
		}
		r.become(e, stageHeld, 0)
		r.decide(e)
	}
}
