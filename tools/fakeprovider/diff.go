package fakeprovider

import (
	"context"
	"slices"

	p "github.com/pulumi/pulumi-go-provider"
)

// Diff compares the inputs. What is not known yet counts as a change.
func (f *fake) Diff(_ context.Context, req p.DiffRequest) (p.DiffResponse, error) {
	k, err := f.kindOf(req.Urn)
	if err != nil {
		return p.DiffResponse{}, err
	}
	diff := p.DiffResponse{DetailedDiff: map[string]p.PropertyDiff{}}
	for _, d := range k.inputs() {
		before, had := req.OldInputs.GetOk(d.name)
		after, has := req.Inputs.GetOk(d.name)
		if slices.Contains(req.IgnoreChanges, d.name) || !had && !has {
			continue
		}
		if had && has && !after.HasComputed() && (without(before).Equals(without(after)) ||
			d.name == document && sameDocument(without(before), without(after))) {
			continue
		}
		diff.HasChanges = true
		diff.DetailedDiff[d.name] = p.PropertyDiff{Kind: change(had, has, d.replaces), InputDiff: true}
		if d.replaces {
			diff.DeleteBeforeReplace = k.exclusive || truth(req.Inputs.Get("deleteBeforeReplace"))
		}
	}
	return diff, nil
}

func change(had, has, replaces bool) p.DiffKind {
	kinds := [...]p.DiffKind{p.Update, p.UpdateReplace}
	switch {
	case !had:
		kinds = [...]p.DiffKind{p.Add, p.AddReplace}
	case !has:
		kinds = [...]p.DiffKind{p.Delete, p.DeleteReplace}
	}
	if replaces {
		return kinds[1]
	}
	return kinds[0]
}
