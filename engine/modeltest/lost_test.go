package modeltest

import (
	"maps"
	"math/rand/v2"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
)

// memory is what is known of a stack beside its state: from what its seeds are derived, and how far they are used. In
// some histories the state is lost between two updates, and this with it; the next updates take over what they find,
// until one of them succeeds.
type memory struct {
	identity    []byte // nil: seeds are of one version of the stack, and nothing is looked for
	generations map[string]int
	rebuilds    bool // the state was lost, and no update has succeeded since
}

// newMemory has some histories look for what exists. It draws from a source of its own, so the other histories are what
// they are without it.
func newMemory(rng *rand.Rand) *memory {
	m := &memory{generations: map[string]int{}}
	if rng.IntN(3) == 0 {
		m.identity = []byte("the stack")
	}
	return m
}

// lose sometimes forgets the state before an update that can make it again.
func (m *memory) lose(d *driver, rng *rand.Rand) {
	up := d.goal.Kind == engine.KindUp && !d.goal.Refresh && !d.restricted()
	if m.identity == nil || !up {
		return
	}
	if rng.IntN(3) == 0 {
		m.rebuilds, m.generations = true, map[string]int{}
		d.base, d.world, d.pending = nil, nil, nil
		d.cloud.tangled = true // what the objects use is forgotten, too
		for id := range d.cloud.objects {
			d.cloud.retained[id] = true // what is not found again stays
		}
	}
}

// goal has an update look for what exists.
func (m *memory) goal(g *engine.Goal) {
	if m.identity == nil {
		return
	}
	g.Identity, g.Look, g.Generations = m.identity, true, maps.Clone(m.generations)
	if m.rebuilds {
		g.Adopt = []string{"**"}
	}
}

// world adds to the states of an update what it will find of its program.
func (m *memory) world(d *driver) {
	if m.identity == nil || d.goal.Kind != engine.KindUp || d.restricted() {
		return
	}
	world := append([]engine.State{}, d.world...)
	for _, r := range d.program {
		if _, stored := stands(d.base, r.number); stored {
			continue
		}
		if id := m.find(d.cloud, r.urn()); id != "" {
			world = append(world, engine.State{URN: r.urn(), ID: id, Inputs: bag(d.cloud.objects[id].inputs)})
		}
	}
	d.world = world
}

// find gives the object that an update finds in the place of a resource that it does not know; "" if it finds none.
func (m *memory) find(c *cloud, u urn.URN) string {
	first := m.generations[engine.Label(u)]
	last := max(first-1, 0)
	if m.rebuilds {
		first, last = max(first, engine.LookedAt-1), 0
	}
	for g := first; g >= last; g-- {
		if id := c.find(engine.SeedOf(m.identity, u, g)); id != "" {
			return id
		}
	}
	return ""
}

// looked gives what a look of the engine finds.
func (c *cloud) looked(look *engine.Look) *engine.Found {
	if look == nil {
		return nil
	}
	for i, seed := range look.Seeds {
		if id := c.find(seed); id != "" {
			return &engine.Found{ID: id, Generation: look.First - i}
		}
	}
	return nil
}

// learn takes note of what an update has saved.
func (m *memory) learn(d engine.Delta) {
	if d.Next > 0 {
		m.generations[engine.Label(d.State.URN)] = d.Next
	}
}

// ended takes note of an update's end: what it has in its state is in nobody's way any more.
func (m *memory) ended(d *driver, states []engine.State) {
	if m.identity == nil {
		return
	}
	for _, s := range states {
		if !s.PendingReplacement {
			delete(d.cloud.retained, s.ID)
		}
	}
	if res, _ := d.run.Result(); res.Status == engine.StatusSucceeded {
		m.rebuilds = false
	}
}
