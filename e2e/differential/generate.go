package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// The types of the fake cloud's package.
const (
	autoType      = "fake:index:Auto"
	namedType     = "fake:index:Named"
	exclusiveType = "fake:index:Exclusive"
	serverType    = "fake:index:Server"
	taggedType    = "fake:index:Tagged"
	fleetType     = "fake:index:Fleet"
	opaqueType    = "fake:index:Opaque"
	renamedType   = "fake:index:Renamed"
	otherType     = "sub:index:Named" // of the package that the plugin serves with a parameter
	groupType     = "fake:index:Group"
	providerType  = "pulumi:providers:fake"
	componentType = "app:index:Owner"
	stashType     = "pulumi:index:Stash"
)

// generator makes a program: it keeps the steps of the last update and changes some of them for the next.
type generator struct {
	*rand.Rand
	steps   []step // in an order in which each comes after those that it refers to
	next    int    // number of the next name
	outputs values
	made    []change       // in the cloud, before the next update: what is imported
	used    map[string]int // options and operations of the program, by name
	// stashes: the program may have a Stash; otherwise it may call getResource.
	stashes bool
}

// generate makes the program of a seed, and says what it uses.
func generate(seed int) (program, map[string]int) {
	g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), 17)), used: map[string]int{}} //nolint:gosec // seeds repeat
	p := program{Seed: seed, Concurrent: seed%4 == 0}
	faulty := seed%3 == 0
	g.stashes = g.chance(50)
	if g.chance(15) {
		p.Root = "own-name"
		g.use("a root of another name")
	}
	g.callables()
	g.otherPackage()
	for range 3 + g.IntN(5) {
		g.add()
	}
	p.Updates = append(p.Updates, g.up())
	for n := 2 + g.IntN(3); n > 0; n-- {
		for range 1 + g.IntN(3) {
			g.mutate()
		}
		p.Updates = append(p.Updates, g.operation(faulty)...)
	}
	if g.chance(50) {
		if faulty && g.chance(30) {
			g.mutate()
			p.Updates = append(p.Updates, g.broken(g.up()))
			g.use("destroy after a failed update")
		}
		p.Updates = append(p.Updates, g.destroy())
	}
	if p.Concurrent {
		g.use("concurrency")
	}
	return p, g.used
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) use(what string) { g.used[what]++ }

// up is the update to the steps as they are now.
func (g *generator) up() update {
	u := update{Kind: "up", Outputs: maps.Clone(g.outputs), Outside: g.made}
	g.made = nil
	for _, s := range g.steps {
		u.Steps = append(u.Steps, s.clone())
	}
	return u
}

func (s step) clone() step {
	s.Fields, s.Properties, s.Options = maps.Clone(s.Fields), maps.Clone(s.Properties), maps.Clone(s.Options)
	return s
}

// pick returns one of the steps that a condition holds for, or nil.
func (g *generator) pick(holds func(step) bool) *step {
	var found []*step
	for i := range g.steps {
		if holds(g.steps[i]) {
			found = append(found, &g.steps[i])
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[g.IntN(len(found))]
}

func isRegistered(s step) bool { return s.Verb == "register" }

func isCustom(s step) bool {
	return isRegistered(s) && s.Fields["component"] == "" && s.Fields["remote"] == ""
}

// isManaged holds for what has an object in the cloud.
func isManaged(s step) bool {
	return isCustom(s) && s.Fields["type"] != providerType && s.Fields["type"] != stashType
}

// isPlain holds for what the plugin's own package manages.
func isPlain(s step) bool { return isManaged(s) && s.Fields["type"] != otherType }

func isComponent(s step) bool { return s.Fields["component"] != "" }

func isProvider(s step) bool { return s.Fields["type"] == providerType }

// before returns the step of a condition that stands before position at, or nil.
func (g *generator) before(at int, holds func(step) bool) *step {
	kept := g.steps
	g.steps = g.steps[:at]
	defer func() { g.steps = kept }()
	return g.pick(holds)
}

// index returns where a step stands.
func (g *generator) index(name string) int {
	return slices.IndexFunc(g.steps, func(s step) bool { return s.Name == name })
}

// newName is a name that no step of the program has had, and with which none begins: the former name of a parent stays
// as long as the name of a child may follow from it.
func (g *generator) newName() string {
	g.next++
	return fmt.Sprintf("r%02d", g.next)
}

// physical is a name in the cloud that nothing of the program has had.
func (g *generator) physical(name string) string {
	g.next++
	return fmt.Sprintf("%s-n%d", name, g.next)
}
