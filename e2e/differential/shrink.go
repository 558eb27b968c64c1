package main

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// shrink returns a smaller program in which the engines differ likewise, and how. Each try plays a program; at most
// tries are played.
func (a *arena) shrink(ctx context.Context, p program, differs string, tries int) (program, string) {
	kind := kindOf(differs)
	for {
		smaller, text, found := a.firstThatDiffers(ctx, candidates(p), kind, &tries)
		if !found {
			return p, differs
		}
		p, differs = smaller, text
	}
}

// firstThatDiffers plays programs until one differs likewise.
func (a *arena) firstThatDiffers(
	ctx context.Context, all []program, kind string, tries *int,
) (p program, differs string, found bool) {
	for _, p := range all {
		if *tries == 0 || ctx.Err() != nil {
			return p, "", false
		}
		*tries--
		o, err := a.compare(ctx, p)
		if err == nil && o.Differs != "" && kindOf(o.Differs) == kind {
			return p, o.Differs, true
		}
	}
	return p, "", false
}

// kindOf is the kind of the first difference in a text: its first words.
func kindOf(differs string) string {
	_, rest, _ := strings.Cut(differs, "):\n  ")
	words := strings.Fields(rest)
	return strings.Join(words[:min(2, len(words))], " ")
}

// candidates are the programs that a little is missing from, those first that lack most.
func candidates(p program) (all []program) {
	for i := range p.Updates {
		if len(p.Updates) > 1 {
			q := p
			q.Updates = slices.Delete(slices.Clone(p.Updates), i, i+1)
			all = append(all, q)
		}
	}
	for _, name := range p.stepNames() {
		all = append(all, p.each(func(u *update) {
			for range 2 {
				u.Steps = withoutStep(u.Steps, name)
			}
			u.Outputs = u.Outputs.within(u.Steps)
			for _, list := range []*[]string{&u.Targets, &u.Replace, &u.Excludes} {
				*list = lacking(*list, []string{name})
			}
			u.Outside = slices.DeleteFunc(slices.Clone(u.Outside), func(c change) bool { return c.Step == name })
		}))
	}
	for _, name := range p.stepNames() {
		for _, key := range p.keys(name) {
			all = append(all, p.each(func(u *update) {
				for i := range u.Steps {
					if u.Steps[i].Name == name {
						s := u.Steps[i].clone()
						delete(s.Options, key)
						delete(s.Properties, key)
						u.Steps[i] = s
					}
				}
			}))
		}
	}
	all = append(all, p.each(func(u *update) { u.Outputs = nil }))
	usual := p
	usual.Root = ""
	all = append(all, usual)
	return slices.DeleteFunc(all, func(q program) bool { return q.text() == p.text() })
}

// each is the program with something done to a copy of each update.
func (p program) each(do func(*update)) program {
	p.Updates = slices.Clone(p.Updates)
	for i := range p.Updates {
		u := p.Updates[i]
		u.Steps = slices.Clone(u.Steps)
		do(&u)
		p.Updates[i] = u
	}
	return p
}

func (p program) stepNames() []string {
	found := map[string]bool{}
	for _, u := range p.Updates {
		for _, s := range u.Steps {
			found[s.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// keys are the options and properties that a step can do without.
func (p program) keys(name string) []string {
	found := map[string]bool{}
	for _, u := range p.Updates {
		for _, s := range u.Steps {
			if s.Name == name {
				maps.Insert(found, maps.All(set(s.Options)))
				maps.Insert(found, maps.All(set(s.Properties)))
			}
		}
	}
	delete(found, "name")
	return slices.Sorted(maps.Keys(found))
}

func set(v values) map[string]bool {
	keys := map[string]bool{}
	for key := range v {
		keys[key] = true
	}
	return keys
}

// text is the program for people: a script for each update.
func (p program) text() string {
	var b strings.Builder
	if p.Root != "" {
		b.WriteString("root: " + p.Root + "\n")
	}
	for _, u := range p.Updates {
		b.WriteString(u.Kind + flags(u) + "\n")
		for _, f := range u.allFaults() {
			b.WriteString("  fault: " + jsonText(f) + "\n")
		}
		for _, c := range u.Outside {
			b.WriteString("  outside: " + jsonText(c) + "\n")
		}
		for _, s := range u.Steps {
			b.WriteString("  " + s.yaml() + "\n")
		}
		if len(u.Outputs) > 0 {
			b.WriteString("  outputs: " + u.Outputs.yaml() + "\n")
		}
	}
	return b.String()
}
