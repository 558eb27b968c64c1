package engine

import (
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// A selection restricts an update to some resources: to those that --target names, or to all but those that --exclude
// names. With --target-dependents or --exclude-dependents, what depends on a named resource is named as well, however
// far. A goal has one of the two options, or none. --exclude-protected names the protected resources.

// restricted reports whether the update leaves resources alone.
func (r *Run) restricted() bool { return len(r.goal.Targets) > 0 || r.excludes() }

// excludes reports whether the named resources are those that the update leaves alone. Without targets, resources of
// snippets are among them.
func (r *Run) excludes() bool { return r.excludesByOption() || r.snippets && len(r.goal.Targets) == 0 }

func (r *Run) excludesByOption() bool { return len(r.goal.Excludes) > 0 || r.goal.ExcludeProtected }

// takesPart reports whether a resource takes part in the update, from whether it is named.
func (r *Run) takesPart(named bool) bool { return !r.restricted() || named != r.excludes() }

// names reports whether an option names a URN.
func (r *Run) names(u urn.URN) bool {
	if r.ofSnippet(u) {
		return r.excludes()
	}
	return r.targets.match(u) || r.excluded.match(u) ||
		r.goal.ExcludeProtected && r.protects(u)
}

// protects reports whether a stored resource is protected.
func (r *Run) protects(u urn.URN) bool {
	live := r.snap.Live(u)
	return live != nil && live.Protect
}

// namesOneOf reports whether dependents are named as well, and one of the URNs is named. Providers and resources that
// the program does not register have no mark, so the patterns are asked, too.
func (r *Run) namesOneOf(us []urn.URN) bool {
	return (r.goal.TargetDependents || r.goal.ExcludeDependents) && slices.ContainsFunc(us, func(u urn.URN) bool {
		now := r.current(u)
		return r.marked(u).Named || r.marked(now).Named || r.names(u) || r.names(now)
	})
}

// selected reports whether an entry takes part in the update. Providers, reads and the stack always do.
func (r *Run) selected(e *entry) bool {
	return e.Read || alwaysSelected(e) || r.takesPart(r.isNamed(e))
}

// alwaysSelected reports that an entry takes part in every update.
func alwaysSelected(e *entry) bool { return snapshot.IsProvider(e.New.Type) || e.New.Type == rootType }

// isNamed reports whether an entry is named. markNamed must have run for what the entry refers to: the marks make it
// transitive.
func (r *Run) isNamed(e *entry) bool { return r.names(e.URN) || r.namesOneOf(e.New.References()) }

// markNamed records whether an entry is named, for those that depend on it. What an entry refers to then precedes it,
// although the program may not register it. A provider that depends on an excluded resource is updated all the same, so
// what uses it is not excluded.
func (r *Run) markNamed(e *entry) {
	if !r.restricted() {
		return
	}
	is := r.isNamed(e) && !(r.excludes() && alwaysSelected(e))
	// A mark of an earlier epoch may say otherwise, because the references of the goal may differ.
	if is != r.marked(e.URN).Named {
		r.mark(e.URN).Named = is
	}
	if r.selected(e) {
		r.markKept(r.keepReferences(e.New))
	}
}

// mayChange reports whether the update may delete, refresh or replace a stored resource. It marks what is named only as
// a dependent, for its own dependents: go through states in snapshot order. A copy that waits for its deletion is named
// by the name that it had when the update began, as in Pulumi.
func (r *Run) mayChange(s *State) bool {
	if !r.restricted() {
		return true
	}
	if r.snippets && s.Snippet != "" {
		return false
	}
	named := r.names(s.URN) || !s.Delete && r.names(r.current(s.URN))
	if !named && r.namesOneOf(s.References()) {
		named = true
		r.mark(s.URN).Named = true
	}
	return r.takesPart(named)
}

// leftOutBy names the option that leaves resources alone, and says how to include one.
func (r *Run) leftOutBy() (option, advice string) {
	switch {
	case r.excludesByOption():
		return "--exclude", "do not exclude it"
	case r.excludes():
		return "deployctl, which does not run snippets,", "update it with the Pulumi CLI"
	}
	return "--target", "target it as well"
}
