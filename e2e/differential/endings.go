package main

import (
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// ending is an intended difference after which the engines' states are not comparable any more: it ends the comparison
// of a program.
type ending struct {
	name, reason string
	happened     func(u update, ours, stock *side) bool
	// fault: it is a fault of this version of the stock engine, and so none of the intended differences.
	fault bool
}

// endings are those that docs/compatibility.md lists.
var endings = []ending{
	{
		name:     "a view of what is renamed",
		reason:   "it stays a view of that; the stock engine leaves it with the former name",
		happened: func(_ update, ours, stock *side) bool { return !losesOwner(ours) && losesOwner(stock) },
		fault:    true,
	},
	{
		name: "views of a copy",
		reason: "they wait for their deletion with it; the stock engine takes them for those of the new resource, and may " +
			"end by that later",
		happened: func(_ update, ours, stock *side) bool { return copiesViews(ours, stock) },
		fault:    true,
	},
	{
		name:   "the stock engine breaks its state",
		reason: "it ends with a state that its own check refuses: after an exclude, a resource may be there twice",
		happened: func(_ update, _, stock *side) bool {
			return slices.ContainsFunc(stock.errors, func(e string) bool {
				return strings.Contains(e, "failed to verify snapshot") || strings.Contains(e, "snapshot integrity failure")
			})
		},
		fault: true,
	},
	{
		name: "what a replaced provider manages",
		reason: "it is replaced with the provider, also when that is renamed in the same update, or when an earlier one " +
			"has replaced the provider and failed; the stock engine gives it to the new provider, which may know " +
			"nothing of it, and so loses it",
		happened: func(u update, ours, stock *side) bool {
			return replacesRenamedProvider(u, ours, stock) || goesOnReplacing(ours, stock)
		},
		fault: true,
	},
	{
		name: "a stored provider that the stock engine does not find, or finds twice",
		reason: "it is loaded with what it manages, once; the stock engine errs when targets or excludes leave the " +
			"provider or what it manages out",
		happened: func(_ update, ours, stock *side) bool {
			return !ours.failed && slices.ContainsFunc(stock.errors, func(e string) bool {
				return strings.Contains(e, "unknown provider '") ||
					strings.Contains(e, "Duplicate resource URN '") && strings.Contains(e, "::pulumi:providers:")
			})
		},
		fault: true,
	},
	{
		name: "a resource that is renamed by the update which names it",
		reason: "it is meant by its new name, with its dependents and its copies; the stock engine looks for some of " +
			"these under the new name, and for others under the former one",
		happened: namesRenamed,
		fault:    true,
	},
	{
		name:     "an import of what is left out",
		reason:   "it is left out, as everything else would be; the stock engine imports it",
		happened: importsWhatIsLeftOut,
		fault:    true,
	},
	{
		name:   "another provider of what a restricted update leaves alone",
		reason: "the resource keeps the provider that it has; the stock engine refuses the update",
		happened: func(_ update, _, stock *side) bool {
			return slices.ContainsFunc(stock.errors, func(e string) bool {
				return strings.Contains(e, "due to a change of providers mixed with --target")
			})
		},
	},
	{
		name: "what is left out is needed",
		reason: "the update is refused; the stock engine stores a state that it cannot read, or replaces what is " +
			"left out",
		happened: refusesWhatIsLeftOut,
	},
	{
		name: "a deletion beside excluded resources and their dependents",
		reason: "what does not depend on an excluded resource is deleted; the stock engine keeps whatever has the same " +
			"parent or provider",
		happened: deletesBesideExcluded,
	},
	{
		name: "what a provider does not find",
		reason: "a read or an import of it fails; the stock engine takes an empty object without an id, as providers " +
			"made with pulumi-go-provider return it, for the resource",
		happened: findsNothing,
	},
	{
		name: "a refusal in an update that goes on after errors",
		reason: "what does not depend on it is still done; the stock engine goes on after steps that failed only, and " +
			"what it has done until then depends on chance",
		happened: goesOnAfterRefusal,
		fault:    true,
	},
	{
		name: "a read that fails in an update that goes on after errors",
		reason: "the program's call fails; in the stock engine the program goes on, with a resource of which nothing is " +
			"known",
		happened: goesOnAfterRead,
		fault:    true,
	},
	{
		name: "a copy that is still used",
		reason: "it stays until what could not be replaced is; the stock engine deletes it, when it goes on after " +
			"errors",
		happened: deletesWhatIsUsed,
		fault:    true,
	},
	{
		name:     "a replacement that has the id of what it replaces",
		reason:   "it stays; the stock engine deletes it with what it replaces",
		happened: func(_ update, ours, stock *side) bool { return replacesWithSameID(ours, stock) },
		fault:    true,
	},
	{
		name:     "a secret trigger that changes",
		reason:   "it replaces its resource; the stock CLI, which has stored a secret null, does not see the change",
		happened: seesSecretTrigger,
		fault:    true,
	},
	{
		name:     "an error hook repeats a create that did not initialise",
		reason:   "the resource is kept and repaired later; the stock engine creates another one and forgets the first",
		happened: func(u update, _, stock *side) bool { return repeatsInitialisation(u, stock) },
	},
}

// ends returns the name of the intended difference that ends the comparison with this update; "" if none does.
func ends(u update, sides []*side) string {
	for _, e := range endings {
		if e.happened(u, sides[0], sides[1]) {
			return e.name
		}
	}
	return ""
}

// goesOnAfterRead reports whether a read has failed on both engines, after which the stock engine alone went on.
func goesOnAfterRead(u update, ours, stock *side) bool {
	return u.ContinueOnError && slices.ContainsFunc(ours.steps, func(done string) bool {
		return strings.HasPrefix(done, "failed read ") && slices.Contains(stock.steps, done)
	}) && slices.ContainsFunc(stock.steps, func(done string) bool { return !slices.Contains(ours.steps, done) })
}

// losesOwner reports whether a view in the state is one of a resource that is not there.
func losesOwner(s *side) bool {
	return slices.ContainsFunc(s.state.Resources, func(view apitype.ResourceV3) bool {
		return view.ViewOf != "" && !slices.ContainsFunc(s.state.Resources, func(r apitype.ResourceV3) bool {
			return r.URN == view.ViewOf
		})
	})
}

// copiesViews reports whether a view waits for its deletion with its owner in our state alone.
func copiesViews(ours, stock *side) bool {
	waits := func(s *side, u resource.URN) bool {
		return slices.ContainsFunc(s.state.Resources, func(r apitype.ResourceV3) bool { return r.URN == u && r.Delete })
	}
	return slices.ContainsFunc(ours.state.Resources, func(r apitype.ResourceV3) bool {
		return r.ViewOf != "" && r.Delete && waits(stock, r.ViewOf) && !waits(stock, r.URN)
	})
}

// seesSecretTrigger reports whether one engine alone has replaced a resource whose trigger the stock CLI has stored as
// a secret null.
func seesSecretTrigger(_ update, ours, stock *side) bool {
	return slices.ContainsFunc(stock.base.Resources, func(r apitype.ResourceV3) bool {
		replaces := "replace " + string(r.URN)
		return strings.Contains(jsonText(r.ReplacementTrigger), `"plaintext":"null"`) &&
			slices.Contains(ours.steps, replaces) != slices.Contains(stock.steps, replaces)
	})
}

// replacesWithSameID reports whether both engines have replaced a resource, created the new one first, and the new one
// got the id of the old one.
func replacesWithSameID(ours, stock *side) bool {
	return slices.ContainsFunc(ours.base.Resources, func(old apitype.ResourceV3) bool {
		created := slices.Index(stock.steps, "create-replacement "+string(old.URN))
		deleted := slices.Index(stock.steps, "delete-replaced "+string(old.URN))
		return !old.Delete && created >= 0 && created < deleted &&
			slices.Contains(ours.steps, "create-replacement "+string(old.URN)) &&
			slices.ContainsFunc(ours.state.Resources, func(r apitype.ResourceV3) bool {
				return r.URN == old.URN && r.ID == old.ID && !r.Delete
			})
	})
}

// replacesRenamedProvider reports whether both engines have replaced a provider under a new name, and deployctl alone
// what it manages.
func replacesRenamedProvider(u update, ours, stock *side) bool {
	return slices.ContainsFunc(u.Steps, func(s step) bool {
		urn := u.urn(stock.stack, s.Name)
		return isProvider(s) && slices.Contains(stock.steps, "replace "+urn) &&
			!slices.Contains(stock.steps, "delete-replaced "+urn)
	}) && slices.ContainsFunc(ours.steps, func(done string) bool {
		done = strings.TrimPrefix(done, "failed ")
		return strings.HasPrefix(done, "create-replacement ") && !slices.Contains(stock.steps, done)
	})
}

// goesOnReplacing reports whether deployctl alone replaces something that is managed by a copy of a provider, which was
// replaced earlier.
func goesOnReplacing(ours, stock *side) bool {
	live := map[string]bool{}
	for _, r := range ours.base.Resources {
		if !r.Delete && isProvider(step{Fields: values{"type": string(r.Type)}}) {
			live[string(r.URN)+"::"+string(r.ID)] = true
		}
	}
	return slices.ContainsFunc(ours.base.Resources, func(r apitype.ResourceV3) bool {
		replaces := func(s *side) bool {
			return slices.ContainsFunc(s.steps, func(done string) bool {
				return strings.HasSuffix(done, "create-replacement "+string(r.URN)) ||
					strings.HasSuffix(done, "delete-replaced "+string(r.URN))
			}) || slices.ContainsFunc(s.errors, func(e string) bool {
				return strings.Contains(e, string(r.URN)+" still says that it is imported")
			})
		}
		return r.Provider != "" && !live[r.Provider] && !r.Delete && replaces(ours) && !replaces(stock)
	})
}

// namesRenamed reports whether the engines disagree about an update that names a resource which it also renames: about
// what changes, or about what of a dependent is stored. That deployctl alone fails is meant only of one that it would
// have to delete first, before it knows the new name, and of dependents that the program does not register any more.
func namesRenamed(u update, ours, stock *side) bool {
	refuses := slices.ContainsFunc(ours.errors, func(e string) bool {
		return strings.Contains(e, "would have to be replaced with it, and is not a target") ||
			strings.Contains(e, "would be deleted, because it depends on a target")
	})
	disagree := !slices.Equal(ours.changing(), stock.changing()) || storesOneOnly(ours, stock)
	if ours.failed && !stock.failed {
		disagree = refuses
	}
	if !disagree {
		return false
	}
	return slices.ContainsFunc(slices.Concat(u.Targets, u.Excludes), func(name string) bool {
		return slices.ContainsFunc(u.Steps, func(s step) bool { return s.Name == name && s.Options["aliases"] != "" }) &&
			!slices.ContainsFunc(ours.base.Resources, func(r apitype.ResourceV3) bool {
				return string(r.URN) == u.urn(ours.stack, name)
			})
	})
}

// storesOneOnly reports whether one engine alone has stored new inputs of a resource that depends on another one.
func storesOneOnly(ours, stock *side) bool {
	us, them := ours.stored(), stock.stored()
	return slices.ContainsFunc(ours.base.Resources, func(r apitype.ResourceV3) bool {
		return len(r.Dependencies)+len(r.ReplaceWith) > 0 && us[r.URN] != them[r.URN]
	})
}

// stored returns the resources of which an update has stored new inputs.
func (s *side) stored() map[resource.URN]bool {
	was, changed := map[resource.URN]string{}, map[resource.URN]bool{}
	for _, r := range s.base.Resources {
		was[r.URN] = jsonText(r.Inputs)
	}
	for _, r := range s.state.Resources {
		changed[r.URN] = was[r.URN] != jsonText(r.Inputs)
	}
	return changed
}

// changing returns the steps of an update that change something, in alphabetical order.
func (s *side) changing() []string {
	return sorted(slices.DeleteFunc(slices.Clone(s.steps), func(done string) bool {
		return strings.HasPrefix(done, "same ") || strings.HasPrefix(done, "refresh ")
	}))
}

// importsWhatIsLeftOut reports whether the stock engine alone has imported something in a restricted update.
func importsWhatIsLeftOut(u update, ours, stock *side) bool {
	return len(u.Targets)+len(u.Excludes) > 0 && slices.ContainsFunc(stock.steps, func(done string) bool {
		return strings.HasPrefix(done, "import ") && !slices.Contains(ours.steps, done)
	})
}

// refusesWhatIsLeftOut reports whether deployctl alone has refused an update because of what an exclude leaves out.
func refusesWhatIsLeftOut(u update, ours, stock *side) bool {
	return len(u.Excludes) > 0 && ours.failed && !stock.failed && slices.ContainsFunc(ours.errors, func(e string) bool {
		return strings.Contains(e, "exclude")
	})
}

// deletesBesideExcluded reports whether deployctl has deleted what the stock engine keeps, beside excluded resources
// and their dependents.
func deletesBesideExcluded(u update, ours, stock *side) bool {
	return u.ExcludeDependents && slices.ContainsFunc(ours.steps, func(done string) bool {
		op, _, _ := strings.Cut(strings.TrimPrefix(done, "failed "), " ")
		return (strings.HasPrefix(op, "delete") || op == "discard") && !slices.Contains(stock.steps, done)
	})
}

// findsNothing reports whether deployctl alone has found that there is no resource under an id.
func findsNothing(_ update, ours, stock *side) bool {
	missing := func(e string) bool {
		return strings.HasPrefix(e, "resource '") && strings.Contains(e, "' does not exist")
	}
	return slices.ContainsFunc(ours.errors, missing) && !slices.ContainsFunc(stock.errors, missing)
}

// goesOnAfterRefusal reports whether the stock engine has ended an update that goes on after errors, because of an
// error that is no failed step, and deployctl has done more.
func goesOnAfterRefusal(u update, ours, stock *side) bool {
	failed := 0
	for _, done := range stock.steps {
		if strings.HasPrefix(done, "failed ") {
			failed++
		}
	}
	return u.ContinueOnError && ours.failed && stock.failed && len(stock.errors) > failed &&
		slices.ContainsFunc(ours.steps, func(done string) bool { return !slices.Contains(stock.steps, done) })
}

// deletesWhatIsUsed reports whether the stock engine alone has deleted a copy, in an update that goes on after errors.
func deletesWhatIsUsed(u update, ours, stock *side) bool {
	return u.ContinueOnError && ours.failed && stock.failed && slices.ContainsFunc(stock.steps, func(done string) bool {
		return strings.HasPrefix(done, "delete-replaced ") && !slices.Contains(ours.steps, done)
	})
}

// repeatsInitialisation reports whether a resource with an error hook has not initialised.
func repeatsInitialisation(u update, stock *side) bool {
	return slices.ContainsFunc(u.Steps, func(s step) bool {
		return s.Properties["failInit"] != "" && strings.Contains(s.Options["hooks"], "onError") &&
			slices.ContainsFunc(stock.steps, func(done string) bool {
				return strings.HasPrefix(done, "failed ") && strings.HasSuffix(done, " "+u.urn(stock.stack, s.Name))
			})
	})
}
