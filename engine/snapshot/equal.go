package snapshot

import (
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Equal reports that nothing which a program or a provider determines differs between two headers. Not compared
// are Key and Rest, which say where a state is stored, and Created and Modified: the time alone is no reason for a
// write.
//
// Bags are compared by their digests, so an equal value in another place is equal. A nil list equals an empty one, and
// no timeouts equal zero timeouts: they are stored alike.
func Equal(a, b State) bool {
	return a.URN == b.URN && a.Type == b.Type && a.Custom == b.Custom && a.Delete == b.Delete && a.ID == b.ID &&
		a.Parent == b.Parent && a.Protect == b.Protect && a.Taint == b.Taint && a.External == b.External &&
		slices.Equal(a.Dependencies, b.Dependencies) && equalProperties(a.PropertyDependencies,
		b.PropertyDependencies) &&
		slices.Equal(a.InitErrors, b.InitErrors) && a.Provider == b.Provider &&
		a.PendingReplacement == b.PendingReplacement &&
		slices.Equal(a.AdditionalSecretOutputs, b.AdditionalSecretOutputs) && slices.Equal(a.Aliases, b.Aliases) &&
		equalTimeouts(a.Timeouts, b.Timeouts) && a.ImportID == b.ImportID && a.RetainOnDelete == b.RetainOnDelete &&
		a.DeletedWith == b.DeletedWith && slices.Equal(a.ReplaceWith, b.ReplaceWith) &&
		slices.Equal(a.IgnoreChanges, b.IgnoreChanges) && slices.Equal(a.HideDiff, b.HideDiff) &&
		slices.Equal(a.ReplaceOnChanges, b.ReplaceOnChanges) && a.RefreshBeforeUpdate == b.RefreshBeforeUpdate &&
		a.SourcePosition == b.SourcePosition && a.Inputs.Same(b.Inputs) && a.Outputs.Same(b.Outputs) &&
		a.Trigger.Same(b.Trigger) && a.TriggerValue == b.TriggerValue && a.Hooks.equal(b.Hooks) &&
		a.ViewOf == b.ViewOf && a.Snippet == b.Snippet && a.Extension.Same(b.Extension)
}

// equalProperties compares lists that are sorted by property; the order of URNs within a property counts.
func equalProperties(a, b []PropertyDependency) bool {
	return slices.EqualFunc(a, b, func(x, y PropertyDependency) bool {
		return x.Property == y.Property && slices.Equal[[]urn.URN](x.URNs, y.URNs)
	})
}

// equalTimeouts treats timeouts that are all zero like none.
func equalTimeouts(a, b *Timeouts) bool {
	if a == nil || b == nil {
		return a == b || a == nil && *b == Timeouts{} || b == nil && *a == Timeouts{}
	}
	return *a == *b
}
