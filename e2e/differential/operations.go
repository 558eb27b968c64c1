package main

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// kindOfOperation makes the updates that come after some changes of the program; nil if there is nothing to do it to.
type kindOfOperation struct {
	weight  int
	updates func(g *generator, u update) []update
}

var operations = []kindOfOperation{
	{50, func(_ *generator, u update) []update { return []update{u} }},
	{8, (*generator).refreshFirst},
	{8, (*generator).refresh},
	{5, (*generator).replacing},
	{12, (*generator).targeted},
	{12, (*generator).excluding},
	{3, (*generator).cancelled},
	{3, (*generator).ignoringProtect},
	{4, (*generator).importing},
}

// operation is what comes after some changes of the program: mostly an up, at times with flags, a refresh, or an update
// that fails and the same once more when nothing is in its way.
func (g *generator) operation(faulty bool) []update {
	u := g.up()
	if faulty && g.chance(60) {
		again := u
		again.Outside = nil
		broken := g.broken(u)
		if g.chance(40) {
			g.mutate()
			again = g.up()
		}
		return []update{broken, again}
	}
	total := 0
	for _, o := range operations {
		total += o.weight
	}
	n, i := g.IntN(total), 0
	for ; n >= operations[i].weight; i++ {
		n -= operations[i].weight
	}
	if all := operations[i].updates(g, u); all != nil {
		return all
	}
	return []update{u}
}

func (g *generator) refreshFirst(u update) []update {
	u.Refresh = true
	u.Outside = append(u.Outside, g.outside()...)
	g.use("up --refresh")
	return []update{u}
}

// refresh is a refresh, at times of some resources, or with the program.
func (g *generator) refresh(u update) []update {
	again := u
	again.Outside = nil
	r := update{Kind: "refresh", Steps: u.Steps, Outside: append(u.Outside, g.outside()...)}
	g.use("refresh")
	switch n := g.IntN(10); {
	case n < 3:
		r.RunProgram, r.Outputs = true, u.Outputs
		g.use("refresh --run-program")
		if renamed := g.renamed(u); renamed != nil {
			r.Steps, again = renamed, g.up()
		}
	case n < 5:
		g.some(&r.Targets, &r.TargetDependents, "refresh --target")
	case n < 7:
		g.some(&r.Excludes, &r.ExcludeDependents, "refresh --exclude")
	}
	if r.RunProgram || len(r.Targets)+len(r.Excludes) > 0 {
		// What the stack has not yet cannot be named: the refresh is of the program as it was deployed.
		deployed := u
		return []update{deployed, r, again}
	}
	return []update{r, again}
}

// some names one or two resources by an option.
func (g *generator) some(names *[]string, dependents *bool, what string) bool {
	for range 1 + g.IntN(2) {
		if r := g.pick(isManaged); r != nil && !slices.Contains(*names, r.Name) {
			*names = append(*names, r.Name)
		}
	}
	if len(*names) == 0 {
		return false
	}
	g.use(what)
	if *dependents = g.chance(50); *dependents {
		g.use(what + " with dependents")
	}
	return true
}

func (g *generator) replacing(u update) []update {
	again := u
	again.Outside = nil
	r := g.pick(isCustom)
	if r == nil {
		return nil
	}
	again.Replace = []string{r.Name}
	g.use("up --replace")
	return []update{u, again}
}

// restricted is the program as it is, then an update of a part of its changes, then one of all of them.
func (g *generator) restricted(u update, restrict func(*update) bool) []update {
	for range 1 + g.IntN(3) {
		g.mutate()
	}
	part := g.up()
	all := part
	all.Outside = nil
	if !restrict(&part) {
		return []update{u, all}
	}
	return []update{u, part, all}
}

func (g *generator) targeted(u update) []update {
	return g.restricted(u, func(part *update) bool {
		return g.some(&part.Targets, &part.TargetDependents, "up --target")
	})
}

func (g *generator) excluding(u update) []update {
	return g.restricted(u, func(part *update) bool {
		return g.some(&part.Excludes, &part.ExcludeDependents, "up --exclude")
	})
}

// cancelled is an update that is cancelled while a request is under way, and the same update to its end.
func (g *generator) cancelled(u update) []update {
	// What is replaced with something is not, if that was replaced before the cancel.
	if len(u.Outside) > 0 || slices.ContainsFunc(u.Steps, func(s step) bool {
		return s.Options["replaceWith"] != "" || s.Options["deletedWith"] != ""
	}) {
		return nil
	}
	cancelled := u
	op := []fakecloud.Op{fakecloud.Create, fakecloud.Update, fakecloud.Delete}[g.IntN(3)]
	cancelled.CancelAt = &fakecloud.Fault{Name: "gate", Do: fakecloud.Hold, At: fakecloud.Before, Op: op, Skip: g.IntN(2)}
	g.use("a cancel")
	return []update{cancelled, u}
}

func (g *generator) ignoringProtect(u update) []update {
	u.IgnoreProtect = true
	g.use("up --ignore-protect")
	return []update{u}
}

// destroy is a destroy of everything, or of a part and then of the rest.
func (g *generator) destroy() update {
	d := update{Kind: "destroy", Steps: g.up().Steps}
	if slices.ContainsFunc(g.steps, func(s step) bool { return s.Options["protect"] == "true" }) {
		g.use("destroy of a protected resource")
		if d.IgnoreProtect = g.chance(40); d.IgnoreProtect {
			g.use("destroy --ignore-protect")
		}
	}
	switch n := g.IntN(10); {
	case n < 3:
		d.RunProgram = true
		g.use("destroy --run-program")
	case n < 5:
		g.some(&d.Targets, &d.TargetDependents, "destroy --target")
		if r := g.pick(func(s step) bool { return s.Verb == "read" }); r != nil && g.chance(50) {
			d.Targets = append(d.Targets, r.Name)
			g.use("destroy --target of what is read")
		}
	case n < 7:
		g.some(&d.Excludes, &d.ExcludeDependents, "destroy --exclude")
	}
	return d
}

// broken is an update in which something fails.
func (g *generator) broken(u update) update {
	u.ContinueOnError = g.chance(25)
	if u.ContinueOnError {
		g.use("up --continue-on-error")
	}
	r := g.pick(isManaged)
	n := g.IntN(100)
	switch {
	case r == nil || n < 15:
		g.use("the program fails")
		at := g.IntN(len(u.Steps) + 1)
		u.Steps = slices.Insert(slices.Clone(u.Steps), at, step{Verb: "fail", Name: "broken"})
	case n < 25:
		g.use("a failing check")
		u.set(r.Name, "size", "-1")
	case n < 35:
		g.use("a resource that does not initialise")
		u.set(r.Name, "failInit", "true")
	case n < 40:
		g.refused(&u)
	case n < 55 && g.pick(isFleet) != nil:
		g.use("a failing view")
		u.set(g.pick(isFleet).Name, "settings", "{a: 1, broken: new}")
	case n < 65 && g.pick(isProvider) != nil:
		g.use("a failing configuration of a provider")
		u.set(g.pick(isProvider).Name, "endpoint", "nowhere")
	default:
		u.Faults = []fakecloud.Fault{g.fault(u, r)}
	}
	return u
}

// fault makes an operation fail: of a resource, or every one.
func (g *generator) fault(u update, r *step) fakecloud.Fault {
	op := []fakecloud.Op{fakecloud.Create, fakecloud.Update, fakecloud.Delete, fakecloud.Read}[g.IntN(4)]
	g.use("a failing " + string(op))
	f := fakecloud.Fault{Name: "broken", Do: fakecloud.Fail, At: fakecloud.Before, Op: op, Status: http.StatusBadRequest}
	if g.chance(60) {
		f.Object = u.logical(r.Name)
	}
	if g.chance(20) {
		f.Times = 1 + g.IntN(2) // an error hook may have it repeated
	}
	return f
}

// set gives a step of the update another property.
func (u *update) set(name, property, value string) {
	u.Steps = slices.Clone(u.Steps)
	for i := range u.Steps {
		if u.Steps[i].Name == name && u.Steps[i].Verb == "register" {
			u.Steps[i] = u.Steps[i].clone()
			u.Steps[i].Properties[property] = value
		}
	}
}

// outside are changes that somebody makes in the cloud.
func (g *generator) outside() (all []change) {
	r := g.pick(isManaged)
	if r == nil {
		return nil
	}
	c := change{Step: r.Name}
	if g.chance(60) {
		c.Size = 50 + g.IntN(9)
	}
	g.use("drift")
	return []change{c}
}

// callables adds hooks and transforms before the program's resources.
func (g *generator) callables() {
	if g.chance(60) {
		return
	}
	for range 1 + g.IntN(2) {
		g.next++
		s := step{Verb: "hook", Name: fmt.Sprintf("hook%d", g.next), Fields: values{}, Properties: values{},
			Options: values{}}
		switch n := g.IntN(10); {
		case n < 2:
			s.Verb, s.Fields["retries"] = "errorHook", fmt.Sprint(g.IntN(3))
			g.use("error hook")
		case n < 5:
			s.Verb, s.Name = "transform", fmt.Sprintf("transform%d", g.next)
			g.transform(&s)
		case n < 6:
			s.Fields["fails"] = "refused"
			if g.chance(50) {
				s.Fields["ignoreErrors"] = "true"
			}
			g.use("a failing hook")
		default:
			g.use("hook")
		}
		g.steps = append(g.steps, s)
	}
}

// transform makes a step a transform, of the stack or of resources.
func (g *generator) transform(s *step) {
	if g.chance(50) {
		s.Fields["stack"] = "true"
		g.use("stack transform")
	}
	s.Fields["type"] = []string{autoType, serverType, namedType}[g.IntN(3)]
	if g.chance(60) {
		s.Properties["settings"] = fmt.Sprintf("{transformed: %d}", g.IntN(3))
	} else {
		option := []string{"protect", "retainOnDelete", "deleteBeforeReplace"}[g.IntN(3)]
		s.Options[option] = []string{"true", "false"}[g.IntN(2)]
	}
	g.use("transform")
}

func isHook(s step) bool { return s.Verb == "hook" }

func isErrorHook(s step) bool { return s.Verb == "errorHook" }

func isTransform(s step) bool { return s.Verb == "transform" && s.Fields["stack"] == "" }
